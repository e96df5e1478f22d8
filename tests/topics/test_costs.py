"""What byhand.costs predicts, against what real ranks hold and send, and against print."""

from __future__ import annotations

import gc
from dataclasses import is_dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from byhand import launch
from byhand.communication_cost.model import AlphaBeta, bus_factor
from byhand.context_parallel.gpt import CONTEXT_GROUPS, ContextHybrid, context_parallel_parts
from byhand.costs import (
    Layout,
    Machine,
    Model,
    Part,
    estimate,
    gpt,
    held,
    layouts,
    seconds,
    sent,
)
from byhand.costs.counting import chunks, in_flight
from byhand.costs.timing import Step
from byhand.expert_parallel.layer import ExpertParallelMLP
from byhand.expert_parallel.router import Router
from byhand.expert_parallel.training import ExpertParallelTraining, random_experts, with_mixtures
from byhand.hybrid_parallel import HybridParallel, chunks_of
from byhand.memory.recompute import Recomputed
from byhand.model.gpt import costs_of, gpt_layers, next_token_loss, random_gpt
from byhand.model.mlp import MLP, mean_squared_error, random_weights
from byhand.model.optimizers import AdamW
from byhand.model.transformer import Residual
from byhand.pipeline_schedules import interleaved, one_forward_one_backward, zero_bubble_h1
from byhand.pipeline_schedules.actions import Schedule
from byhand.rank_groups.grid import RankGrid
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.runtime.ledger import sent_bytes as ledgers_bytes
from byhand.sequence_parallel.gpt import next_token_loss as split_loss
from byhand.sequence_parallel.gpt import sequence_parallel_parts
from byhand.sequence_parallel.layers import sum_partial_gradients
from byhand.tensor_parallel.gpt import tensor_parallel_parts
from byhand.tools.asleep import stretches
from byhand.zero import lab as zero_lab

V, S, D, H, BLOCKS, BATCH = 48, 16, 32, 8, 4, 16
FULL = {"weights": 4, "gradients": 4, "optimizer": 8}  # float32 and AdamW's two averages


# The course's own GPT and MLP, in each layout that the course has a program for


def num_bytes(saved: Any) -> int:
    """Of what the tensors in it lie in, each storage once: views share theirs."""
    found = {tensor.untyped_storage().data_ptr(): tensor for tensor in tensors_in(saved)}
    return sum(tensor.untyped_storage().nbytes() for tensor in found.values())


def tensors_in(saved: Any) -> list[Tensor]:
    if isinstance(saved, Tensor):
        return [saved]
    if is_dataclass(saved):
        saved = list(vars(saved).values())
    return (
        [t for item in saved for t in tensors_in(item)] if isinstance(saved, list | tuple) else []
    )


class Weighed:
    """What a chunk's `saved` holds, over all micro-batches in flight: `most` bytes at once."""

    def __init__(self, chunks_here: list[Any]):
        self.held: dict[int, Any] = {}  # kept alive, so that no other has its id
        self.most = 0
        for chunk in chunks_here:
            self._watch(chunk)

    def _watch(self, chunk: Any) -> None:
        forward, whole, first = chunk.forward, chunk.backward, chunk.backward_first
        half, other_half = chunk.backward_input, chunk.backward_weight

        def watched_forward(x: Tensor) -> Any:
            y, saved = forward(x)
            self._hold(saved)
            return y, saved

        def watched_half(grad_y: Tensor, saved: Any) -> Any:
            self.held.pop(id(saved), None)
            grad_x, kept = half(grad_y, saved)
            self._hold(kept)
            return grad_x, kept

        def letting_go(call: Any) -> Any:
            def watched(*args: Any) -> Any:
                self.held.pop(id(args[-1]), None)
                return call(*args)

            return watched

        chunk.forward, chunk.backward_input = watched_forward, watched_half
        chunk.backward, chunk.backward_first = letting_go(whole), letting_go(first)
        chunk.backward_weight = letting_go(other_half)

    def _hold(self, saved: Any) -> None:
        self.held[id(saved)] = saved
        self.most = max(self.most, num_bytes(list(self.held.values())))


def nbytes(tensors: list[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def state_of(layers: list[Any], *optimizers: AdamW) -> dict[str, int]:
    """Bytes of what these layers and optimizers hold."""
    return {
        "weights": sum(nbytes(layer.parameters()) for layer in layers),
        "gradients": sum(nbytes(layer.gradients()) for layer in layers),
        "optimizer": sum(nbytes(o.mean) + nbytes(o.square) for o in optimizers),
    }


RESIDUALS = {"none": Residual, "full": lambda layers: Recomputed(Residual(layers))}  # half a block


def hybrid(layout: Layout, schedule: Schedule | None) -> dict[str, int]:
    """A step over dp x cp x tp x pp on this rank: what it holds."""
    weights, tokens = random_gpt(V, S, D, H, BLOCKS), torch.arange(BATCH * S).view(BATCH, S) % V
    groups = groups_for_this_rank(layout.groups, CONTEXT_GROUPS)
    equal = [0.0, *[1.0] * (2 * BLOCKS), 0.0, 0.0]
    parts = replace(tensor_parallel_parts(groups["tp"]), residual=RESIDUALS[layout.recompute])
    if layout.cp > 1:
        parts = context_parallel_parts(parts, groups["cp"])
    here = chunks_of(weights, groups, layout.chunks, equal, parts)
    make = HybridParallel if layout.cp == 1 else ContextHybrid
    model = make(here, groups, schedule, (S, D))
    weighed = Weighed(model.pipeline.chunks)
    dist.barrier()
    model.step(tokens, tokens)
    return state_of(model.pipeline.chunks, model.optimizer) | {"activations": weighed.most}


def in_turn(
    model: Any, tokens: Tensor, loss: Any, num_micro_batches: int, weighed: Weighed
) -> None:
    """Micro-batches one after the other, forward and backward."""
    for rows in tokens.tensor_split(num_micro_batches):
        y, saved = model.forward(rows)
        model.backward_first(loss(y, rows)[1], saved)


def by_token(layout: Layout, _: None) -> dict[str, int]:
    """Sequence parallelism: tp splits everything."""
    weights, tokens = random_gpt(V, S, D, H, BLOCKS), torch.arange(BATCH * S).view(BATCH, S) % V
    parts = replace(sequence_parallel_parts(), residual=RESIDUALS[layout.recompute])
    model = MLP(gpt_layers(weights, parts=parts))
    weighed, optimizer = Weighed([model]), AdamW(model.parameters())
    dist.barrier()
    loss = lambda logits, rows: split_loss(logits, rows, vocabulary=V)  # noqa: E731
    in_turn(model, tokens, loss, layout.num_micro_batches(BATCH), weighed)
    sum_partial_gradients(model)
    return state_of([model], optimizer) | {"activations": weighed.most}


WIDTHS = [D, 64, 64, D]


def mlp_model() -> Model:
    """The parts of an MLP: each row saves its x, or a ReLU's y, which is the next layer's x."""
    pairs = list(pairwise(WIDTHS))
    parts = (Part("linear", whole=i * o + o, saved=(0, 4 * i), half=True) for i, o in pairs)
    return Model(tuple(parts), D, 1, 4)


def zero(layout: Layout, _: None) -> dict[str, int]:
    """A stage of ZeRO on an MLP, on real ranks."""
    layers = MLP.from_weights(random_weights(WIDTHS)).layers
    return zero_step(layout, layers, torch.ones(BATCH // layout.dp, D), mean_squared_error)


def zero_tied(layout: Layout, _: None) -> dict[str, int]:
    """The same on a GPT, whose embedding and head are two units with one table."""
    tokens = torch.arange(BATCH // layout.dp * S).view(-1, S) % V
    return zero_step(layout, gpt_layers(random_gpt(V, S, D, H, BLOCKS)), tokens, next_token_loss)


def zero_step(layout: Layout, layers: list[Any], x: Tensor, loss: Any) -> dict[str, int]:
    model = zero_lab.VARIANTS[f"stage {layout.zero}"](layers, AdamW)
    dist.barrier()
    for rows in map(torch.clone, x.tensor_split(layout.num_micro_batches(BATCH))):
        y, saved = model.forward(rows)
        found = {"activations": num_bytes(saved)}
        model.backward(loss(y, rows, BATCH)[1], saved)
    found |= zero_lab.held(model)
    if layout.zero == 3:  # the shards are the weights
        shards = nbytes([flat.shard for flat in model.flats])
        found |= {"weights": shards, "optimizer": found["optimizer"] - shards}
    model.step()
    return found


class Evenly(Router):
    """Sends token t to experts t, t + 1, ...: to each as many."""

    def forward(self, x: Tensor) -> Any:
        (weights, chosen), saved = super().forward(x)
        start = torch.arange(len(chosen))[:, None] + torch.arange(chosen.shape[1])
        return (weights, start % len(self.weight)), saved


NUM_EXPERTS, WIDTH, TOP_K = 8, 64, 2


def experts(layout: Layout, _: None) -> dict[str, int]:
    """Experts over ep, and copies of them over expert-dp; all else over all ranks."""
    weights, tokens = random_gpt(V, S, D, H, BLOCKS), torch.arange(BATCH * S).view(BATCH, S) % V
    group = groups_for_this_rank(layout.groups, ["ep"])["ep"]

    def mixture(number: int) -> ExpertParallelMLP:
        router, pairs = random_experts(NUM_EXPERTS, D, WIDTH, number)
        return ExpertParallelMLP(Evenly(router, TOP_K), pairs, group=group)

    model = with_mixtures(weights, mixture)
    if layout.recompute == "full":
        halves = model.layers[1 : 1 + 2 * BLOCKS]
        model.layers[1 : 1 + 2 * BLOCKS] = map(Recomputed, halves)
    training = ExpertParallelTraining(model)
    weighed = Weighed([model])
    dist.barrier()
    training.step(tokens, tokens)
    optimizers = training.optimizer, *training.expert_optimizers
    return state_of([model], *optimizers) | {"activations": weighed.most}


def experts_model() -> Model:
    model, k = costs_of(random_gpt(V, S, D, H, BLOCKS)), TOP_K
    each = 2 * D * WIDTH + WIDTH + D
    experts_part = Part(
        "experts",
        by_token=2 * D + NUM_EXPERTS * D,
        experts=NUM_EXPERTS * each,
        # float32: x normed; x, the router's choice; rows that went and came back; both sides of the
        # GELU. Whole numbers of eight bytes: the choice, and an exchange's three for each row.
        saved=(0, 4 * (2 * D + 1 + NUM_EXPERTS + k + 2 * k * (D + WIDTH)) + 8 * 4 * k),
        routed=k,
        half=True,
    )
    parts = (experts_part if part.name == "mlp" else part for part in model.parts)
    return replace(model, parts=tuple(parts))


def plain(*, vocabulary_parallel: bool = False) -> Model:
    return costs_of(random_gpt(V, S, D, H, BLOCKS), vocabulary_parallel)


ROWS = 2  # of a micro-batch
ONE_F_ONE_B, H1 = one_forward_one_backward, zero_bubble_h1
CASES: list[tuple[Any, Model, Layout, Any, dict[str, int]]] = []
for dp, tp, pp in (
    *((2, 1, 1), (1, 2, 1), (1, 1, 2), (4, 2, 1), (2, 2, 2), (1, 4, 2), (2, 1, 4), (1, 2, 4)),
    *((1, 1, 8), (8, 1, 1), (1, 8, 1)),
):
    rows = ROWS if pp > 1 else BATCH // dp
    CASES.append((hybrid, plain(), Layout(dp, tp, pp, rows=rows), ONE_F_ONE_B, FULL))
for dp, tp, pp in (1, 1, 2), (2, 1, 2), (1, 2, 2), (2, 2, 2), (1, 1, 4):
    CASES.append((hybrid, plain(), Layout(dp, tp, pp, rows=ROWS, chunks=2), interleaved, FULL))
for dp, tp, pp in (1, 1, 2), (1, 2, 2), (2, 1, 4):
    CASES.append((hybrid, plain(), Layout(dp, tp, pp, rows=ROWS), H1, FULL))
for dp, tp, pp, cp in (
    (1, 1, 1, 2),
    (1, 1, 1, 4),
    (2, 1, 1, 2),
    (1, 2, 1, 2),
    (1, 1, 2, 2),
    (1, 2, 2, 2),
):
    layout = Layout(dp, tp, pp, cp, rows=ROWS if pp > 1 else BATCH // dp)
    CASES.append((hybrid, plain(), layout, ONE_F_ONE_B, FULL))
for tp, rows in (2, 16), (4, 4), (8, 16):
    layout = Layout(tp=tp, rows=rows, sequence=True)
    CASES.append((by_token, plain(vocabulary_parallel=True), layout, None, FULL))
for stage in 1, 2, 3:
    for dp, rows in (2, 8), (4, 2):
        for program, model in (zero, mlp_model()), (zero_tied, plain()):
            CASES.append((program, model, Layout(dp, zero=stage, rows=rows), None, FULL))
for dp in 2, 4, 8:
    CASES.append((experts, experts_model(), Layout(dp, ep=dp, rows=BATCH // dp), None, FULL))


def named(case: Any) -> str:
    program, _, layout, make, _ = case
    schedule = f" {make.__name__}" if make and layout.pp > 1 else ""
    return f"{program.__name__}: {layout}{schedule}"


def counted(run: Any, rank: int, groups: dict[str, list[list[int]]]) -> dict[str, dict[str, int]]:
    """By group and op: what a rank sent since its last barrier. Not counted: numbers alone, such
    as norms and losses, and whole numbers: tokens, how many rows are to come."""
    found: dict[str, dict[str, int]] = {}
    for call in stretches(run, rank)[-1].calls:
        alone = call.op == "all_reduce" and call.shape == ()
        if not call.sent_bytes or alone or call.dtype == "int64":
            continue
        name = group_of(call, rank, groups)
        of = found.setdefault(name, {})
        of[call.op] = of.get(call.op, 0) + call.sent_bytes
    return found


def group_of(call: Any, rank: int, groups: dict[str, list[list[int]]]) -> str:
    names = {"send": ("cp", "pp"), "all_to_all": ("ep",)}
    for name in names.get(call.op, ("tp", "embedding", "dp-cp")):
        if any(rank in ranks and set(call.group) == set(ranks) for ranks in groups[name]):
            return name
    return str(call.group)


def on_rank(rank: int, world_size: int, program: Any, layout: Layout, schedule: Any) -> Any:
    return program(layout, schedule)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_step_holds_and_sends_what_is_predicted(case):
    program, model, layout, make, state = case
    m = layout.num_micro_batches(BATCH)
    schedule = None
    if make:
        schedule = make(layout.pp, m, 2) if make is interleaved else make(layout.pp, m)
    run = launch(on_rank, layout.num_ranks, (program, layout, schedule))
    groups = layout.groups
    for rank, found in enumerate(run.results):
        stage = next(pipe.index(rank) for pipe in groups["pp"] if rank in pipe)
        assert counted(run, rank, groups) == sent(model, layout, BATCH, stage), rank
        predicted = held(model, layout, BATCH, stage, state=state, schedule=schedule)
        saved = found.pop("activations")
        assert saved == pytest.approx(predicted.pop("activations"), rel=0.02), rank
        assert found == predicted, rank


AGAIN = [
    (hybrid, plain(), Layout(tp=2, rows=4), ONE_F_ONE_B),
    (hybrid, plain(), Layout(cp=2, rows=4), ONE_F_ONE_B),
    (hybrid, plain(), Layout(tp=2, pp=2, cp=2, rows=ROWS), ONE_F_ONE_B),
    (by_token, plain(vocabulary_parallel=True), Layout(tp=4, rows=4, sequence=True), None),
    (experts, experts_model(), Layout(4, ep=4, rows=BATCH // 4), None),
]


@pytest.mark.parametrize(("program", "model", "layout", "make"), AGAIN)
def test_a_step_that_recomputes_its_blocks_sends_what_is_predicted(program, model, layout, make):
    layout, m = replace(layout, recompute="full"), layout.num_micro_batches(BATCH)
    arguments = program, layout, make and make(layout.pp, m)
    run = launch(on_rank, layout.num_ranks, arguments)
    for rank in range(layout.num_ranks):
        stage = next(pipe.index(rank) for pipe in layout.groups["pp"] if rank in pipe)
        assert counted(run, rank, layout.groups) == sent(model, layout, BATCH, stage), rank


# On paper


@pytest.mark.parametrize(
    ("billions", "sizes", "more"),
    [
        (174.6, (96, 12288, 96, 50257, 2048), {}),  # GPT-3: arXiv:2005.14165
        (8.03, (32, 4096, 32, 128256, 8192), {"num_key_heads": 8, "width": 14336}),  # Llama 3
        (70.6, (80, 8192, 64, 128256, 8192), {"num_key_heads": 8, "width": 28672}),
        (405.9, (126, 16384, 128, 128256, 8192), {"num_key_heads": 8, "width": 53248}),
        (46.7, (32, 4096, 32, 32000, 4096), {"num_key_heads": 8, "width": 14336, "num_experts": 8}),
    ],
)
def test_published_models_have_the_parameters_that_they_say(billions, sizes, more):
    llama = {"gated": True, "tied": False} if more else {}
    routed = {"experts_per_token": 2} if "num_experts" in more else {}
    found = gpt(*sizes, **more, **llama, **routed).parameters
    assert found / 1e9 == pytest.approx(billions, abs=0.06)


@pytest.mark.parametrize("sequence", [False, True])
def test_a_layer_saves_what_korthikanti_says(sequence):
    s, d, h, t = 32, 64, 8, 4
    model = gpt(1, d, h, 10, s, scores=5)
    halves = replace(model, parts=tuple(part for part in model.parts if part.half))
    found = held(halves, Layout(tp=t, sequence=sequence), 1)["activations"]
    units = (34 / t if sequence else 10 + 24 / t) + 5 * h * s / d / t
    assert found == pytest.approx(s * d * units)
    selective = Layout(tp=t, sequence=sequence, recompute="selective")
    assert held(halves, selective, 1)["activations"] == found - 5 * h * s * s / t


def test_recomputing_everything_keeps_blocks_inputs_and_one_block_at_work():
    model = gpt(6, 64, 8, 10, 32, scores=5)
    halves = replace(model, parts=tuple(part for part in model.parts if part.half))
    one = held(replace(halves, parts=halves.parts[:2]), Layout(), 1)["activations"]
    found = held(halves, Layout(recompute="full"), 1)["activations"]
    assert found == 6 * 2 * 32 * 64 + one


@pytest.mark.parametrize("v", [1, 2, 3])
@pytest.mark.parametrize("p", [1, 2, 4])
def test_what_1f1b_has_in_flight_is_what_its_schedule_has(p, v):
    for m in (p, 2 * p, 5 * p):
        schedule = interleaved(p, m, v) if v > 1 else one_forward_one_backward(p, m)
        for stage, actions in enumerate(schedule):
            now = most = 0
            for action in actions:
                now += 1 if action.kind == "forward" else -1
                most = max(most, now)
            assert in_flight(Layout(pp=p, chunks=v), m, stage) == most, (m, stage)


def test_every_part_is_on_one_stage_and_blocks_are_shared_equally():
    model = gpt(7, 8, 2, 16, 4)
    for p, v in (1, 1), (2, 1), (3, 1), (2, 3), (7, 2):
        found = [chunks(model, Layout(pp=p, chunks=v), stage) for stage in range(p)]
        in_order = [found[c % p][c // p] for c in range(p * v)]
        assert sum(in_order, ()) == model.parts
        halves = [sum(part.half for part in chunk) for chunk in in_order]
        assert max(halves) - min(halves) <= 1


def test_zero_shards_over_all_who_hold_the_same():
    model = gpt(2, 8, 2, 16, 4, gated=True, num_experts=4, experts_per_token=1)
    whole = held(model, Layout(dp=8, ep=4), 8, state={"weights": 1})["weights"]
    sharded = held(model, Layout(dp=8, ep=4, zero=3), 8, state={"weights": 1})["weights"]
    experts = sum(part.experts for part in model.parts)
    dense = model.parameters - experts
    assert (whole, sharded) == (dense + experts / 4, dense / 8 + experts / 4 / 2)


def test_one_rank_alone_sends_nothing():
    assert sent(gpt(2, 8, 2, 16, 4), Layout(), 4) == {}


def test_layouts_are_all_of_them_once():
    found = layouts(24)
    assert len(found) == len(set(found)) == 30  # 24 = 2^3 * 3: 10 * 3 ways
    assert {layout.num_ranks for layout in found} == {24}
    assert all(layout.tp <= 4 and layout.cp <= 2 for layout in layouts(24, tp=4, cp=2))
    assert {layout.cp for layout in layouts(24, cp=4)} == {1, 2, 3, 4}
    assert {layout.ep for layout in layouts(4, ep=4)} == {1, 2, 4}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: Layout(dp=0), "dp is 0: it must be at least 1"),
        (lambda: Layout(dp=2, ep=8), "2 ranks of dp 2 × cp 1 cannot share experts by ep 8"),
        (lambda: Layout(dp=3, cp=2, ep=4), "6 ranks of dp 3 × cp 2 cannot share experts by ep 4"),
        (lambda: Layout(zero=4), "zero is 4"),
        (lambda: Layout(recompute="some"), "known are none, selective, full"),
        (lambda: layouts(8, tq=2), "no degree is called tq"),
        (lambda: held(gpt(1, 8, 2, 4, 4), Layout(dp=3), 4), "4 sequences do not make micro-batch"),
        (lambda: held(gpt(1, 8, 2, 4, 4), Layout(pp=4), 4), "2 halves of blocks cannot make 4"),
        (lambda: sent(gpt(1, 8, 2, 4, 4), Layout(pp=2), 4, stage=2), "there is no stage 2"),
        (lambda: gpt(1, 10, 4, 4, 4), "10 features do not make 4 heads"),
        (lambda: gpt(1, 8, 4, 4, 4, num_key_heads=3), "4 heads cannot share 3 key heads"),
        (lambda: held(gpt(1, 8, 2, 4, 4), Layout(), -8), "-8 sequences do not make micro-batches"),
        (lambda: gpt(0, 8, 4, 4, 4), "num_layers is 0"),
        (lambda: gpt(1, 8, 4, 4, 4, num_key_heads=-4), "num_key_heads is -4: it must be at least"),
        (lambda: gpt(1, 8, 4, 4, 4, width=-5), "width is -5"),
        (lambda: gpt(1, 8, 4, 4, 4, itemsize=0), "itemsize is 0"),
        (lambda: gpt(1, 8, 4, 4, 4, num_experts=2), "a token cannot visit 0 of 2 experts"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        wrong()


# How long it takes, on paper


def even(num_halves: int = 16, **more: Any) -> Model:
    """Halves of blocks alone, all alike."""
    half = Part("half", split=1e6, flops=2e6, enters=1, leaves=1, half=True, **more)
    return Model((half,) * num_halves, num_features=64, num_positions=8)


FREE = Machine(flops=1e9)
HOST = AlphaBeta(0.0, 1e-9)


def test_one_rank_alone_only_computes_and_a_backward_is_two_forwards():
    found = seconds(even(), Layout(rows=2), FREE, 4)
    assert found["computing"] == pytest.approx(3 * 16 * 2e6 * 8 * 4 / 1e9)
    assert sum(found.values()) == found["computing"]
    again = seconds(even(), Layout(rows=2, recompute="full"), FREE, 4)
    assert again["computing"] == pytest.approx(4 / 3 * found["computing"])
    scores = seconds(even(square=5e5), Layout(rows=2, recompute="selective"), FREE, 4)
    assert scores["computing"] == pytest.approx((3 + 1 / 4) / 3 * found["computing"])


@pytest.mark.parametrize("of", [seconds, estimate])
@pytest.mark.parametrize(("p", "v"), [(2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (2, 4)])
def test_a_pipeline_idles_as_long_as_lectures_9_and_10_say(of, p, v):
    m = 8
    found = of(even(), Layout(pp=p, chunks=v), FREE, m)
    turn = found["computing"] / m
    assert found["idle"] == pytest.approx((p - 1) * turn / v)


def test_sequence_parallelism_takes_what_its_all_reduces_took_and_gathers_once_more():
    machine = replace(FREE, inside=HOST)
    whole, shared = (
        seconds(even(), Layout(tp=4, sequence=sequence), machine, 4) for sequence in (False, True)
    )
    message, times = 8 * 64 * 2 * 1e-9, 16 * 4
    assert whole["tp"] == pytest.approx(times * 2 * 1.5 * message)
    assert shared["tp"] == pytest.approx(times * 5 * 0.75 * message)
    assert whole["computing"] == shared["computing"]


def test_to_the_next_stage_a_rank_of_tp_sends_its_share():
    hosts = Machine(between=1e6, ranks_per_host=4, links_per_host=4)
    steps = [Step(even(), Layout(tp=t, pp=2), hosts, 4) for t in (1, 4)]
    alone, shared = (step.to_next(0, 1) for step in (steps[0], steps[1]))
    assert alone == 0  # both stages on one host
    assert shared == pytest.approx(8 * 64 * 2 / 4 / 1e6)


def test_a_group_with_several_ranks_a_host_uses_as_many_cards():
    machine = Machine(between=1e9, ranks_per_host=8, links_per_host=8)
    times = [Step(even(), Layout(dp, tp), machine, dp).sums(0) * tp for dp, tp in ((16, 1), (2, 8))]
    # All ranks of a host in one group: eight cards carry the ring of 15/8. One each: one card.
    assert times[0] == pytest.approx(2 * 15 / 16 * 16e6 * 2 / 8e9)
    assert times[1] == pytest.approx(2 * 1 / 2 * 16e6 * 2 / 1e9)


def test_a_rings_messages_hide_behind_long_blocks():
    for square, hidden in (0.0, False), (2e6, True):
        model = even(square=square, keys=64)
        found = seconds(model, Layout(cp=4), replace(FREE, inside=HOST), 1)
        assert (found["cp"] == 0) == hidden


def test_sums_of_gradients_and_the_optimizer_come_last():
    machine = replace(FREE, inside=AlphaBeta(0.0, 1e-3), memory_rate=1e9)
    found = seconds(even(), Layout(dp=2), machine, 2)
    backward = 2 / 3 * found["computing"]
    assert found["sums"] == pytest.approx(16e6 * 2 * 1e-3 - backward)
    assert found["optimizer"] == pytest.approx(16e6 * 2 * 16 / 1e9)
    sharded = seconds(even(), Layout(dp=2, zero=1), machine, 2)
    assert sharded["optimizer"] == found["optimizer"] / 2
    assert sharded["sums"] == pytest.approx(found["sums"])


def test_a_narrow_product_is_slower():
    machine = replace(FREE, narrow=64)
    assert machine.rate(64) == FREE.flops / 2
    both = [seconds(even(), Layout(tp=t), machine, 1)["computing"] for t in (1, 4)]
    assert both[1] == pytest.approx(both[0] / 4 * (1 + 64 / 16) / 2)


def test_an_estimate_remembers_seconds_and_no_ranks():
    """It is asked of thousands of layouts, each of thousands of ranks."""
    layout, machine = Layout(dp=96, tp=8, pp=8), Machine(between=1e9, ranks_per_host=8)
    for count in (estimate, seconds):
        count(gpt(8, 64, 8, 100, 16), layout, machine, 96)
    gc.collect()
    assert not [kept for kept in gc.get_objects() if type(kept) is RankGrid and kept.dp == 96]


def test_experts_rows_travel_four_times():
    machine = replace(FREE, inside=HOST)
    found = seconds(even(routed=2), Layout(dp=4, ep=4), machine, 4)
    assert found["ep"] == pytest.approx(16 * 4 * 2 * 0.75 * 8 * 64 * 2 * 1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
def test_the_ledgers_table_is_the_bus_factors(n):
    payload, ranks = 840 * 4, tuple(range(n))
    for op in "all_reduce", "all_gather", "reduce_scatter", "all_to_all":
        assert ledgers_bytes(op, payload, ranks, 0) == round(bus_factor(op, n) * payload), op
    if n > 1:
        assert ledgers_bytes("send", payload, ranks, 0) == bus_factor("send", n) * payload
        root = ranks[-1]
        scatter = ledgers_bytes("scatter", payload, ranks, root, root)
        assert scatter == round(bus_factor("scatter", n) * payload)
        every = [ledgers_bytes("gather", payload, ranks, rank, root) for rank in ranks]
        assert sum(every) == round(bus_factor("gather", n) * payload)
        for op in "broadcast", "reduce":
            passed = [ledgers_bytes(op, payload, ranks, rank, root) for rank in ranks]
            assert sorted(passed) == [0] + [bus_factor(op, n) * payload] * (n - 1)
