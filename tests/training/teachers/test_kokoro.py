"""The natural teacher's network, weights and batches, with weights made up."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from training import state as states
from training.data.speakers import TIMBRES
from training.data.speech_format import FRAME, PHONE_STEP
from training.teachers import kokoro, kokoro_weights
from training.teachers.finishing import silence_after
from training.teachers.kokoro import Kokoro
from training.teachers.kokoro_weights import Graph, of_node, of_product, of_recurrent
from training.teachers.phonemes import align_words
from training.teachers.speak import LabelledSpeech, PlannedJob, Teacher, batches
from training.teachers.synthesize import draw_jobs, shard_arrays


@pytest.fixture(scope="module")
def network() -> Kokoro:
    torch.manual_seed(1)
    network = Kokoro().eval().requires_grad_(False)
    torch.nn.init.constant_(network.predictor.duration_proj.bias, -3.0)  # few frames a phoneme
    torch.nn.init.constant_(network.decoder.generator.conv_post.weight, 1e-3)
    return network


@torch.no_grad()
def test_rows_of_a_batch_do_not_hear_each_other(network: Kokoro) -> None:
    ids, style = torch.randint(1, 170, (2, 5)), torch.randn(2, 2 * kokoro.STYLE) * 0.1
    both = network.plan(ids, style)
    alone = network.plan(ids[1:], style[1:])
    torch.testing.assert_close(both.durations[1:], alone.durations, rtol=1e-4, atol=1e-4)
    frames = torch.tensor([1, 2, 1, 1, 1])
    prosody, sounds = (
        torch.stack([kokoro.lay_out(row, frames) for row in rows])
        for rows in (both.prosody, both.sounds)
    )
    pitch, energy = network.contours(prosody, style)
    assert pitch.shape == (2, 12)
    pitch = pitch.abs() * 1000
    waves = network.speak(sounds, pitch, energy, style, noise=False)
    assert waves.shape == (2, 6 * kokoro.FRAME)
    one = network.speak(sounds[1:], pitch[1:], energy[1:], style[1:], noise=False)
    torch.testing.assert_close(waves[1:], one, rtol=1e-3, atol=1e-4)


def test_harmonics_are_multiples_of_the_pitch() -> None:
    sines = kokoro.harmonics(torch.full((1, 80), 240.0), noise=False)[0]
    for multiple in (1, 3):
        spectrum = torch.fft.rfft(sines[:, multiple - 1]).abs()
        assert int(spectrum.argmax()) == 240 * multiple
    silent = kokoro.harmonics(torch.zeros(1, 4), noise=False)
    assert not silent.any()


def test_pitch_moves_by_a_factor_and_its_liveliness_about_the_middle() -> None:
    pitch = torch.tensor([[11.0, 100.0, 400.0, 200.0]])
    one = torch.ones(1)
    higher = kokoro.move_pitch(pitch, one * 1.2, one)
    torch.testing.assert_close(higher, torch.tensor([[11.0, 120.0, 480.0, 240.0]]))
    flat = kokoro.move_pitch(pitch, one, one * 0)
    torch.testing.assert_close(flat, torch.tensor([[11.0, 200.0, 200.0, 200.0]]))


def test_frames_are_whole_and_evened_in_the_closing_silence() -> None:
    frames = kokoro.frames_of(torch.tensor([[0.2, 3.6, 2.0]]), torch.tensor([2.0]))[0]
    assert frames.tolist() == [1, 7, 4]
    assert kokoro.even(frames, 15).tolist() == [1, 7, 7]


def graph(arrays: dict[str, Any]) -> Graph:
    made = Graph.__new__(Graph)
    made._arrays, made.nodes = arrays, []
    return made


def test_weights_of_eight_bits_are_numbers_again() -> None:
    arrays = {
        "w_quantized": np.array([[1, -2], [3, 4], [0, 5]], np.int8),
        "w_scale": np.array([0.5, 2.0], np.float32),
        "zero": np.array([1, 0], np.int8),
    }
    node = SimpleNamespace(
        op_type="MatMulInteger",
        name="/encoder/bert_encoder/MatMul_quant",
        input=["x", "w_quantized", "x_zero", "zero"],
    )
    found = of_product(graph(arrays), node)
    np.testing.assert_array_equal(
        found["bert_encoder.weight"], [[0.0, 1.0, -0.5], [-4.0, 8.0, 10.0]]
    )


def test_nodes_name_modules_of_the_network(network: Kokoro) -> None:
    modules = {name.rpartition(".")[0] + "." for name in network.state_dict()}
    for name in (
        "/encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant",
        "/encoder/F0.1/conv1x1/Conv_quant",
        "/encoder/predictor/duration_proj/linear_layer/MatMul_quant",
        "/encoder/bert/encoder/albert_layer_groups.0/albert_layers.0/ffn/MatMul_quant",
        "/decoder/decoder/generator/m_source/l_linear/MatMul",
        "/decoder/decoder/generator/resblocks.4/convs1.2/Conv_quant",
        "/decoder/decoder/asr_res/asr_res.0/Conv_quant",
    ):
        assert of_node(name) in modules, name


def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1 / (1 + np.exp(-x))


def test_a_recurrent_layer_has_its_gates_in_the_order_of_torch() -> None:
    random = np.random.default_rng(1)
    inputs, width = 3, 2
    arrays: dict[str, Any] = {"zero": np.zeros(2, np.int8)}
    for name, rows in (("w", inputs), ("r", width)):
        arrays[f"{name}_quantized"] = random.integers(-99, 99, (2, rows, 4 * width)).astype(np.int8)
        arrays[f"{name}_scale"] = np.array([0.01, 0.02], np.float32)
    arrays["b"] = random.normal(size=(2, 8 * width)).astype(np.float32)
    node = SimpleNamespace(
        name="/encoder/shared/LSTM_quant",
        input=[
            "x",
            "w_quantized",
            "r_quantized",
            "b",
            "",
            "h",
            "c",
            "",
            "ws",
            "zero",
            "rs",
            "zero",
        ],
    )
    found = of_recurrent(graph(arrays), node)
    lstm = torch.nn.LSTM(inputs, width, batch_first=True, bidirectional=True)
    lstm.load_state_dict(
        {n.removeprefix("predictor.shared."): torch.from_numpy(v) for n, v in found.items()}
    )
    x = random.normal(size=inputs).astype(np.float32)
    ours = lstm(torch.from_numpy(x)[None, None])[0][0, 0].detach().numpy()
    for direction in range(2):
        product = x @ (arrays["w_quantized"][direction] * arrays["w_scale"][direction])
        bias = arrays["b"][direction].reshape(2, -1).sum(0)
        i, o, _, c = np.split(product + bias, 4)  # ONNX's order; nothing to forget at first
        expected = sigmoid(o) * np.tanh(sigmoid(i) * np.tanh(c))
        got = ours[direction * width : (direction + 1) * width]
        np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_what_the_file_lacks_is_an_error(network: Kokoro) -> None:
    with pytest.raises(ValueError, match="no weights for"):
        kokoro_weights.load(network, {})


def test_batches_take_every_job_once_and_keep_to_the_room() -> None:
    empty = torch.zeros(0)
    lengths = (10, 12, 300, 1200, 3000, 3100, 3150, 9000)
    planned = [
        PlannedJob(n, torch.tensor([length]), *[empty] * 3) for n, length in enumerate(lengths)
    ]
    found = list(batches(planned))
    assert [each.number for batch in found for each in batch] == list(range(len(lengths)))
    assert [len(batch) for batch in found] == [2, 1, 1, 2, 1, 1]
    assert all(len(batch) == 1 or len(batch) * batch[-1].length <= 8000 for batch in found)


def test_what_evened_a_row_is_not_heard() -> None:
    rows = silence_after(torch.ones(2, 5), torch.tensor([2, 9]))
    assert rows.sum(1).tolist() == [2, 5]


@pytest.fixture(scope="module")
def teacher(network: Kokoro, tmp_path_factory: pytest.TempPathFactory) -> Teacher:
    path: Path = tmp_path_factory.mktemp("teacher") / "kokoro.pt"
    tokens = {letter: 50 + index for index, letter in enumerate("ɐlˈæmp .")}
    state = {
        "network": states.to_half(network.state_dict()),
        "names": list(TIMBRES),
        "styles": torch.randn(len(TIMBRES), 510, 256) * 0.1,
        "tokens": tokens,
    }
    states.save(state, path)
    return Teacher(path, torch.device("cpu"))


def test_jobs_become_a_shard(teacher: Teacher) -> None:
    texts = [align_words("A lamp.", "A lamp.", ["ɐ", "lˈæmp."]), align_words("A.", "A.", ["ɐ."])]
    jobs = draw_jobs([each for each in texts if each], seed=1, shard=0, count=3)
    spoken: dict[int, LabelledSpeech] = dict(teacher.speak([job for _, job in jobs]))
    assert sorted(spoken) == [0, 1, 2]
    for number, message in spoken.items():
        assert len(message.wave) % FRAME == 0
        assert len(message.phones) == len(message.places) == len(message.wave) // PHONE_STEP
        assert (np.diff(message.places.astype(int)) >= 0).all()
        assert message.places.max() <= len(jobs[number][0].text)
        assert math.isfinite(float(np.abs(message.wave).max()))
    shard = shard_arrays([(what, spoken[number]) for number, (what, _) in enumerate(jobs)])
    assert shard["offsets"][-1] == len(shard["samples"])
    assert [job for _, job in jobs] == [job for _, job in draw_jobs(
        [each for each in texts if each], seed=1, shard=0, count=3)]  # fmt: skip
