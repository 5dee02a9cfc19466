"""`python -m bench.gpu.kernels`: compares the predictor's kernels with the plain form on a GPU.

Random weights of the published shapes. First correctness (codes, sums, error against float64, a row
alone as in a batch, two equal runs), then ms per frame as graphs.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from bench.random_checkpoint import scatter
from bench.random_config import config
from engine.model.configs import TalkerConfig
from engine.model.predictor import Predictor
from engine.worker.kernels.cuda.predictor_kernels import PredictorKernels
from engine.worker.kernels.cuda.predictor_persistent import PersistentPredictor, last_logits
from engine.worker.kernels.verify import SampleFrame, plain_logits
from engine.worker.state.sampling import CANDIDATES, SamplingTensors, pick

FORMS = ("persistent", "partitioned", "tiled")
ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class Inputs:
    hidden: Tensor
    first: Tensor
    own: SamplingTensors
    uniforms: Tensor

    @classmethod
    def random(cls, rows: int, width: int) -> Inputs:
        hidden, first = torch.randn(2, rows, width, device="cuda").bfloat16()
        ones = torch.ones(rows, 1, device="cuda")
        sampling = SamplingTensors(ones / 0.9, ones * 50, ones, ones)
        return cls(hidden, first, sampling, torch.rand(rows, 15, device="cuda"))

    def __getitem__(self, rows: slice) -> Inputs:
        sampling = SamplingTensors(*(column[rows] for column in self.own.tensors))
        return Inputs(self.hidden[rows], self.first[rows], sampling, self.uniforms[rows])

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.hidden, self.first, self.own, self.uniforms, CANDIDATES


def published(size: str) -> Predictor:
    shape = TalkerConfig.from_dict(config(size, "custom_voice")["talker_config"])
    with torch.device("cuda"):
        network = Predictor(shape)
    return scatter(network, torch.Generator("cuda").manual_seed(0)).bfloat16().requires_grad_(False)


def check(network: Predictor, kernel: PersistentPredictor, rows: int) -> dict[str, Any]:
    inputs = Inputs.random(rows, network.model.codec_embedding[0].embedding_dim)
    codes, total = kernel(*inputs.arguments)
    own_logits = last_logits(kernel.scratch, rows).clone()
    again, _ = kernel(*inputs.arguments)
    alone, _ = kernel(*inputs[rows - 1 : rows].arguments)
    logits, sums = plain_given(network, inputs, codes)
    exact, _ = plain_given(copy.deepcopy(network).double(), inputs, codes)
    drawn = [
        pick(each, inputs.own, inputs.uniforms[:, at : at + 1], CANDIDATES)
        for at, each in enumerate(logits)
    ]
    wanted = pick(own_logits, inputs.own, inputs.uniforms[:, -1:], CANDIDATES)
    return dict(
        rows=rows,
        sums_equal=torch.equal(total, sums),
        twice_equal=torch.equal(codes, again),
        alone_equal=torch.equal(codes[rows - 1 :], alone),
        draw_equal=bool((value(own_logits, wanted) == value(own_logits, codes[:, -1])).all()),
        codes_as_plain=(torch.stack(drawn, 1) == codes).float().mean().item(),
        error=error(own_logits, exact[-1]),
        plain_error=error(logits[-1], exact[-1]),
    )


def check_draws(network: Predictor, kernel: SampleFrame, rows: int) -> dict[str, Any]:
    """Check that samples agree with float64 about as often as the plain form's do."""
    inputs = Inputs.random(rows, network.model.codec_embedding[0].embedding_dim)
    codes, total = kernel(*inputs.arguments)
    again, _ = kernel(*inputs.arguments)
    logits, sums = plain_given(network, inputs, codes)
    exact, _ = plain_given(copy.deepcopy(network).double(), inputs, codes)

    def agreed(each: Sequence[Tensor]) -> float:
        drawn = [pick(one, inputs.own, inputs.uniforms[:, at : at + 1], CANDIDATES)
                 for at, one in enumerate(each)]  # fmt: skip
        return (torch.stack(drawn, 1) == codes).float().mean().item()

    return dict(
        rows=rows,
        sums_equal=torch.equal(total, sums),
        twice_equal=torch.equal(codes, again),
        codes_as_plain=agreed(logits),
        codes_as_exact=agreed(exact),
    )


def plain_given(
    network: Predictor, inputs: Inputs, codes: Tensor
) -> tuple[tuple[Tensor, ...], Tensor]:
    """The plain logits of every codebook given the codes before it, and the sum."""
    like = network.lm_head[0].weight
    logits, total = plain_logits(network, inputs.hidden.to(like), inputs.first.to(like), codes)
    return logits.unbind(1), total


def value(logits: Tensor, ids: Tensor) -> Tensor:
    return logits.gather(1, ids[:, None])[:, 0]


def error(found: Tensor, wanted: Tensor) -> float:
    return ((found.double() - wanted.double()).norm() / wanted.double().norm()).item()


def graphed(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """A graph of one call."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        call()
    return graph


def milliseconds(graph: torch.cuda.CUDAGraph, repeats: int = 30) -> float:
    """The median of single replays on the device, without launch time."""
    times = []
    for _ in range(repeats + 5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times[5:])[repeats // 2]


def plain(network: Predictor, inputs: Inputs) -> Any:
    def choose(book: int, logits: Tensor) -> Tensor:
        return pick(logits, inputs.own, inputs.uniforms[:, book - 1 : book], CANDIDATES)

    return network.sample(inputs.hidden, inputs.first, choose)


def timed(
    network: Predictor, kernels: PredictorKernels, rows: int, beside_plain: bool
) -> dict[str, Any]:
    inputs = Inputs.random(rows, network.model.codec_embedding[0].embedding_dim)
    forms: dict[str, Any] = {name: getattr(kernels, name) for name in FORMS}
    found = {
        name: milliseconds(graphed(partial(form, *inputs.arguments)))
        for name, form in forms.items()
        if form and rows <= getattr(form, "max_rows", rows)
    }
    if beside_plain:
        found["plain"] = milliseconds(graphed(lambda: plain(network, inputs)))
    return {"rows": rows} | {f"{name}_ms": round(ms, 3) for name, ms in found.items()}


@torch.inference_mode()
def main(
    size: str = "1.7B",
    rows: Annotated[str, typer.Option(help="as 1,2,4")] = ",".join(map(str, ROWS)),
    beside_plain: Annotated[bool, typer.Option(help="time the plain form too")] = True,
    checked: Annotated[bool, typer.Option(help="check before timing")] = True,
) -> None:
    network = published(size)
    kernels = PredictorKernels(network)
    counts = [int(count) for count in rows.split(",")]
    for count in counts if checked else ():
        for name in FORMS:
            kernel = getattr(kernels, name)
            if isinstance(kernel, PersistentPredictor) and count <= kernel.max_rows:
                print(json.dumps({"form": name} | check(network, kernel, count)))
        if kernels.tiled:
            print(json.dumps({"form": "tiled"} | check_draws(network, kernels.tiled, count)))
    for count in counts:
        print(json.dumps(timed(network, kernels, count, beside_plain)))


if __name__ == "__main__":
    typer.run(main)
