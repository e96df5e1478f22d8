"""What byhand.costs says that a rank holds, against figures, tables and peaks in print."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import loss_parallel
from torch.nn import functional as F

from byhand import launch
from byhand.costs import Layout, Model, Part, gpt, held
from byhand.costs.moments import LOGIT, moments, peak

GIB = 2**30

# Korthikanti et al. 2022, arXiv:2205.05198: table 3, figure 1 (GiB: of parameters and optimizer; of
# activations, all and selectively recomputed over sequence-parallel ranks) and figure 7 (per cent
# of what tensor parallelism saves: sequence, selective, both, full). Values as calculon has them.

KORTHIKANTI = {
    "22B": (
        (48, 6144, 64),
        {"rows": 4},
        4,
        (45.5625, 59.25, 9.5625),
        (66.84, 49.42, 16.18, 7.64),
    ),
    "175B": (
        (96, 12288, 96),
        {"pp": 8, "chunks": 3},
        64,
        (45.5625, 66.84375, 12.3515625),
        (62.04, 56.53, 18.49, 8.71),
    ),
    "530B": (
        (105, 20480, 128),
        {"pp": 35, "chunks": 3},
        280,
        (31.640625, 114.0234375, 23.076171875),
        (58.31, 62.04, 20.27, 9.42),
    ),
    "1T": (
        (128, 25600, 160),
        {"pp": 64},
        512,
        (32.958984375, 131.25, 26.5625),
        (58.31, 62.04, 20.27, 9.42),
    ),
}
EIGHTEEN = {"weights": 2, "gradients": 4, "optimizer": 12}  # bytes a parameter: Megatron's


def blocks_alone(sizes: tuple[int, int, int]) -> Model:
    """Tables and head are left out of both figures."""
    model = gpt(*sizes, 51200, 2048, scores=5)
    return replace(model, parts=tuple(part for part in model.parts if part.half))


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_korthikantis_figure_1(name):
    sizes, how, num_sequences, printed, _ = KORTHIKANTI[name]
    model, found = blocks_alone(sizes), []
    for layout in Layout(tp=8, **how), Layout(tp=8, sequence=True, recompute="selective", **how):
        *state, saved = held(model, layout, num_sequences, state=EIGHTEEN).values()
        found += [sum(state) / GIB, saved / GIB]
    assert found[0] == found[2]
    assert (found[0], found[1], found[3]) == pytest.approx(printed, rel=0.001)


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_korthikantis_figure_7(name):
    sizes, *_, printed = KORTHIKANTI[name]
    model = blocks_alone(sizes)

    def saved(**how: Any) -> float:
        return held(model, Layout(tp=8, **how), 1)["activations"]

    block = saved() / sizes[0]
    full = saved(recompute="full") - block  # the figure leaves out the block that backward is at
    ways = (
        saved(sequence=True),
        saved(recompute="selective"),
        saved(sequence=True, recompute="selective"),
    )
    per_cent = [100 * way / saved() for way in (*ways, full)]
    assert printed == pytest.approx(per_cent, rel=0.011)


# Rajbhandari et al. 2020, arXiv:1910.02054, table 1: GB of weights, gradients and optimizer, for
# models of 7.5, 128 and 1000 billion parameters, sharded in stages 1, 2 and 3 over that many ranks.
ZEROS_TABLE_1 = """
1    120  120  120   2048 2048 2048 16000 16000 16000
4    52.5 41.3 30    896  704  512  7000  5500  4000
16   35.6 21.6 7.5   608  368  128  4750  2875  1000
64   31.4 16.6 1.88  536  284  32   4187  2218  250
256  30.4 15.4 0.47  518  263  8    4046  2054  62.5
1024 30.1 15.1 0.12  513  257  2    4011  2013  15.6
"""


@pytest.mark.parametrize("line", ZEROS_TABLE_1.strip().splitlines())
def test_zeros_table_1_to_the_printed_digit(line):
    num_ranks, *printed = line.split()
    for place, text in enumerate(printed):
        model = Model((Part("all", split=(7.5, 128, 1000)[place // 3]),), 1, 1)
        found = held(model, Layout(int(num_ranks), zero=place % 3 + 1), int(num_ranks))
        digit = 10.0 ** -len(text.partition(".")[2])  # the paper cuts some, and rounds others
        assert abs(sum(found.values()) - float(text)) < digit, text


# Measured peaks: all that torchtitan's benchmarks print, in GiB reserved on the fullest rank.


def llama(num_layers: int, num_features: int, num_heads: int, width: int, positions: int) -> Model:
    how = {"num_key_heads": 8, "width": width, "gated": True, "tied": False}
    return gpt(num_layers, num_features, num_heads, 128256, positions, **how)


def per_operation(model: Model) -> Model:
    """What torchtitan's selective recomputation keeps: x, every other product, attention's y."""
    d, v, wide = model.num_features, 1024, 14336  # of Llama 3.1 8B
    attention = (2 * d + 2 * v + 2 * d + 4 * model.num_heads, 2 * d)  # q, v, y and its sums; x
    kept = {"attention": attention, "mlp": (2 * wide, 2 * d)}
    parts = (replace(p, saved=kept.get(p.name, p.saved)) for p in model.parts)
    return replace(model, parts=tuple(parts))


def eight_billion(positions: int) -> Model:
    return llama(32, 4096, 32, 14336, positions)


EIGHT = per_operation(eight_billion(8192))
SEVENTY = llama(80, 8192, 64, 28672, 8192)
LLAMA_405 = {s: llama(126, 16384, 128, 53248, s) for s in (8192, 32768, 65536, 131072, 262144)}
FULL: dict[str, Any] = {"zero": 3, "recompute": "full"}
SPLIT: dict[str, Any] = {**FULL, "tp": 8, "sequence": True}
PEAKS: list[tuple[str, Model, Layout, int, str, list[float]]] = [
    # pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: H100 of 96 GB.
    ("table 1", EIGHT, Layout(8, zero=3, rows=2), 16, "eager", [82.4, 77.0, 76.8]),
    ("table 2, cp 1", eight_billion(32768), Layout(8, **FULL), 8, "eager", [83.9]),
    ("table 2, cp 2", eight_billion(65536), Layout(4, cp=2, **FULL), 4, "eager", [84.2]),
    ("table 2, cp 4", eight_billion(131072), Layout(2, cp=4, **FULL), 2, "eager", [84.0]),
    ("table 2, cp 8", eight_billion(262144), Layout(1, cp=8, **FULL), 1, "eager", [84.5]),
    ("table 3", EIGHT, Layout(128, zero=3, rows=2), 256, "eager", [67.0, 62.0, 61.8]),
    ("table 4", SEVENTY, Layout(32, rows=16, **SPLIT), 512, "parallel", [71.9, 67.6]),
    ("table 5", LLAMA_405[8192], Layout(8, pp=8, rows=4, **SPLIT), 256, "parallel", [82.5]),
    (
        "table 5, interleaved",
        LLAMA_405[8192],
        Layout(8, pp=8, rows=4, chunks=2, **SPLIT),
        256,
        "parallel",
        [72.7],
    ),
    ("table 6, cp 1", LLAMA_405[32768], Layout(8, pp=8, **SPLIT), 64, "parallel", [75.3]),
    ("table 6, cp 2", LLAMA_405[65536], Layout(4, pp=8, cp=2, **SPLIT), 32, "parallel", [75.9]),
    ("table 6, cp 4", LLAMA_405[131072], Layout(2, pp=8, cp=4, **SPLIT), 16, "parallel", [77.1]),
    ("table 6, cp 8", LLAMA_405[262144], Layout(1, pp=8, cp=8, **SPLIT), 8, "parallel", [84.9]),
    # The same, llama3-8b_h200_202506_trainy-whitefiber.md: the loss is compiled by then.
    ("h200, 32 ranks", EIGHT, Layout(32, zero=3, rows=2), 64, "compiled", [47.96]),
    ("h200, 64 ranks", EIGHT, Layout(64, zero=3, rows=2), 128, "compiled", [46.97]),
]


def test_measured_peaks_of_torchtitan():
    errors = {}
    for name, model, layout, num_sequences, loss, printed in PEAKS:
        found = peak(model, layout, num_sequences, logit=LOGIT[loss]) / GIB
        errors |= {(name, each): abs(found / each - 1) for each in printed}
    assert len(errors) == 20
    assert statistics.mean(errors.values()) <= 0.15, errors
    assert statistics.median(errors.values()) <= 0.10, errors


def loss_of(logits: Any, targets: Any) -> None:
    """As torchtitan's step has it; who calls it keeps no logits."""
    loss = F.cross_entropy(logits.pop().float(), targets)
    loss.backward()


def eager(rank: int, world_size: int, tokens: int, vocabulary: int) -> None:
    head = torch.randn(vocabulary, 2).bfloat16().requires_grad_()
    loss_of([F.linear(torch.ones(tokens, 2).bfloat16(), head)], torch.arange(tokens))


def parallel(rank: int, world_size: int, tokens: int, vocabulary: int) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    head = torch.randn(vocabulary // world_size, 2).bfloat16().requires_grad_()
    local = [F.linear(torch.ones(tokens, 2).bfloat16(), head)]
    logits = [DTensor.from_local(local.pop(), mesh, [Shard(1)], run_check=False)]
    targets = DTensor.from_local(torch.arange(tokens), mesh, [Replicate()], run_check=False)
    with loss_parallel():
        loss_of(logits, targets)


@pytest.mark.parametrize(("step", "world_size"), [(eager, 1), (parallel, 2), (parallel, 4)])
def test_a_loss_takes_the_bytes_a_logit_that_are_counted(step, world_size):
    tokens, vocabulary = 64, 2048 * world_size
    run = launch(step, world_size, (tokens, vocabulary), memory=True)
    logits = tokens * vocabulary / world_size
    freed = 2  # the logits themselves, which stay reserved on a GPU
    for num_bytes in run.peak_bytes:
        assert num_bytes / logits == pytest.approx(LOGIT[step.__name__] - freed, rel=0.05)


# Moments


def test_recomputed_blocks_move_the_fullest_moment_from_the_loss_into_a_block():
    small, wide = (gpt(4, 64, 4, tokens, 32) for tokens in (100, 10_000))
    layout = Layout(4, zero=3, recompute="full")
    for model, fullest in (small, "block"), (wide, "loss"):
        found = moments(model, layout, 4)
        assert max(found, key=found.__getitem__) == fullest
        assert peak(model, layout, 4) == max(found.values())


@pytest.mark.parametrize("layout", [Layout(4, zero=3), Layout(pp=2), Layout(2, tp=2)], ids=str)
def test_a_moment_holds_no_less_than_what_lies_all_the_while(layout):
    model = gpt(4, 64, 4, 100, 32)
    for stage in range(layout.pp):
        state = {"weights": 4, "gradients": 4, "optimizer": 8}
        lies = held(model, layout, 4, stage, state=state)
        assert moments(model, layout, 4, stage, logit=6)["loss"] >= sum(lies.values())


def test_a_pipelines_rank_holds_its_stage_and_the_sum_of_its_gradients_whole():
    model = blocks_alone((4, 64, 4))
    apart, whole = (moments(model, Layout(4, pp=2, zero=z), 8)["loss"] for z in (3, 0))
    size = model.parameters / 2
    assert whole - apart == pytest.approx(16 * size * 3 / 4)


# llm-foundry, scripts/train/benchmarking/README.md at 8c8dd48f7216, lines 136, 189 and 272: of its
# layouts those that leave least free. Its loss is fused: llmfoundry/models/mpt/modeling_mpt.py.
TIGHTEST = [
    (80, (24, 2048, 16, 50368, 2048), Layout(32, zero=3, rows=20), 640),
    (80, (32, 2560, 20, 50368, 8192), Layout(8, zero=3, rows=3), 144),
    (40, (24, 2048, 16, 50368, 2048), Layout(32, zero=3, rows=10), 320),
]


@pytest.mark.parametrize(("memory", "sizes", "layout", "num_sequences"), TIGHTEST)
def test_layouts_that_ran_are_not_refused(memory, sizes, layout, num_sequences):
    found = peak(gpt(*sizes), layout, num_sequences, logit=LOGIT["compiled"]) / GIB
    assert 0.9 * memory < found < memory
