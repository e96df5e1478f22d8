"""Every stage of ZeRO equals one device, and torch's own; it holds and sends what formulas say."""

import functools
from functools import partial

import pytest
import torch
import torch.distributed as dist
from cases import parted
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.device_mesh import init_device_mesh

from byhand import RankError, launch
from byhand.collectives.with_torch import ALL_GATHER
from byhand.data_parallel.lab import LINK
from byhand.model.gpt import gpt_layers, next_token_loss, random_gpt
from byhand.model.mlp import GELU, MLP, Linear, ReLU, random_weights, softmax_cross_entropy
from byhand.model.optimizers import SGD, AdamW
from byhand.model.shards import shard, views
from byhand.model.training import train_alone
from byhand.runtime.trace.memory import held_bytes
from byhand.zero import (
    ShardedGradients,
    ShardedOptimizer,
    ShardedParameters,
    bytes_held,
    bytes_sent,
    clip,
    flatten,
    lab,
    units,
)
from byhand.zero.exchange import BLOCK_BYTES, exchange
from byhand.zero.paper import GATHER, REDUCE, WATCHED, step_on_paper

WORLD_SIZES = (1, 2, 3, 4)
STAGES = {1: ShardedOptimizer, 2: ShardedGradients, 3: ShardedParameters}
NO_PREFETCH = partial(ShardedParameters, prefetch=False)
KEPT = partial(ShardedParameters, reshard=False)
EXCHANGED = partial(ShardedGradients, reduce_scatter=exchange)
VARIANTS = {**STAGES, "3 without prefetch": NO_PREFETCH, "3 kept": KEPT, "2 exchanged": EXCHANGED}
SIZES = (6, 5, 7, 3)  # 35, 42 and 24 parameters: none a multiple of 4, 24 of 2 and 3
TIGHT = {"rtol": 1e-10, "atol": 1e-10}
ADAM = partial(AdamW, lr=0.01)
MAX_NORM = 0.05  # less than the gradients' in every step


def data(num_rows, sizes=SIZES, dtype=torch.float64, steps=5):
    """Batches of x and labels."""
    generator = torch.Generator().manual_seed(num_rows)
    x = torch.randn(steps, num_rows, sizes[0], dtype=dtype, generator=generator)
    labels = torch.randint(sizes[-1], (steps, num_rows), generator=generator)
    return list(zip(x, labels, strict=True))


def build(seed, sizes=SIZES, dtype=torch.float64):
    return MLP.from_weights(random_weights(sizes, seed, dtype), GELU).layers


def tiny_gpt(seed):
    """Two units use its tied table."""
    return gpt_layers(random_gpt(7, 3, 8, 2, 2, seed, torch.float64))


def text(steps=2):
    generator = torch.Generator().manual_seed(0)
    return torch.randint(7, (steps, 2, 5, 3), generator=generator).unbind()


def close(mine, theirs, **tolerance):
    torch.testing.assert_close(mine, theirs, **(tolerance or TIGHT))


def whole_gradients(model):
    """All gradients, whole, whatever the stage: the shards' are gathered."""
    model.sum_gradients()
    for flat in model.flats:
        whole = flat.grad_shard.new_empty(flat.num_ranks * len(flat.grad_shard))
        ALL_GATHER(whole, flat.grad_shard)
        yield from (view.clone() for view in views(whole, flat.shapes))


def one_step(model, x, targets, loss, micro_batches=1):
    """Forward and backward of this rank's rows; its share of the loss."""
    total = 0
    rows = zip(*(shard(t).tensor_split(micro_batches) for t in (x, targets)), strict=True)
    for part, answer in rows:
        y, saved = model.forward(part)
        value, grad_y = loss(y, answer, len(x))
        model.backward(grad_y, saved)
        total += value
    return total


def train(rank, world_size, variant, build, batches, loss, micro_batches=1):
    """Ranks begin unequal. Shares of the losses, norms, the last step's gradients, weights."""
    model = VARIANTS[variant](build(rank), ADAM)
    losses, norms = [], []
    for x, targets in batches:
        losses.append(one_step(model, x, targets, loss, micro_batches))
        norms.append(model.step(MAX_NORM))
    one_step(model, *batches[0], loss, micro_batches)
    gradients = list(whole_gradients(model))
    return torch.stack(losses), torch.stack(norms), gradients, model.parameters()


def alone(layers, batches, loss):
    """What train returns, but of one device, and without the norms."""
    model = MLP(layers)
    losses = train_alone(model, ADAM(model.parameters()), batches, loss, MAX_NORM)
    model.zero_gradients()
    y, saved = model.forward(batches[0][0])
    model.backward_first(loss(y, batches[0][1])[1], saved)
    return torch.tensor(losses, dtype=torch.float64), model.gradients(), model.parameters()


def assert_equals_one_device(results, wanted):
    losses, gradients, parameters = wanted
    close(sum(result[0] for result in results), losses)
    for _, norms, mine, weights in results:
        assert all(norm > MAX_NORM for norm in norms)
        close(mine, gradients)
        close(weights, parameters)


TRAINED = {  # by name: what is built and trained, on which data, by which loss
    "an MLP": (
        build,
        data(11, steps=3),
        softmax_cross_entropy,
    ),  # 11 rows divide by none of 2, 3, 4
    "a GPT": (tiny_gpt, text(), next_token_loss),
}
CASES = [(variant, "an MLP", n) for variant in VARIANTS for n in WORLD_SIZES]
CASES += [(variant, "a GPT", n) for variant in VARIANTS for n in (1, 3)]


@functools.cache
def every_variant(world_size):
    """What `train` returned, [rank][variant, what], all in one launch."""
    cases = [(variant, what) for variant, what, n in CASES if n == world_size]

    def all_of_them(rank, world_size):
        return {
            (variant, what): train(rank, world_size, variant, *TRAINED[what])
            for variant, what in cases
        }

    return launch(all_of_them, world_size).results


@functools.cache
def trained_alone(what):
    built, batches, loss = TRAINED[what]
    return alone(built(0), batches, loss)


@pytest.mark.parametrize(("variant", "what", "world_size"), CASES)
def test_clipped_steps_on_uneven_shards_equal_one_device(variant, what, world_size):
    results = [result[variant, what] for result in every_variant(world_size)]
    assert_equals_one_device(results, trained_alone(what))


@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.integers(3, 9),
    st.integers(1, 3),
    st.sampled_from(list(VARIANTS)),
)
@settings(max_examples=5, derandomize=True)
def test_any_shapes_and_micro_batches_equal_one_device(sizes, rows, micro_batches, variant):
    batches = data(rows, (*sizes, 4), steps=1)
    made = partial(build, sizes=(*sizes, 4))
    run = launch(train, 3, (variant, made, batches, softmax_cross_entropy, micro_batches))
    wanted = alone(made(0), batches, softmax_cross_entropy)
    close(sum(result[0] for result in run.results), wanted[0])
    for result in run.results:
        close(result[2], wanted[1])


@pytest.mark.parametrize("kind", [list, iter])
def test_clipped_shards_have_the_norm_that_is_asked_for(kind):
    def drive(rank, world_size):
        shards = [torch.full((2,), 3.0 + rank), torch.zeros(1)]
        return clip(kind(shards), max_norm=1.0).item(), shards[0].square().sum().item()

    norms, squares = zip(*launch(drive, 2).results, strict=True)
    assert norms == (50**0.5, 50**0.5)
    assert sum(squares) == pytest.approx(1)


# The flat parameter


@given(st.lists(st.lists(st.integers(1, 4), max_size=3), min_size=1, max_size=4), st.integers(1, 7))
def test_a_flat_tensor_holds_every_number_once_and_then_zeros(shapes, num_ranks):
    tensors = [1 + torch.rand(shape) for shape in shapes]
    whole = flatten(tensors, num_ranks)
    found = list(views(whole, [tensor.shape for tensor in tensors]))
    close(found, tensors, rtol=0, atol=0)
    numbers = sum(tensor.numel() for tensor in tensors)
    assert len(whole) % num_ranks == 0 <= len(whole) - numbers < num_ranks
    assert not whole[numbers:].any()


def test_a_unit_is_a_layer_with_parameters_and_those_without_that_follow():
    found = [[type(layer).__name__ for layer in unit.layers] for unit in units([GELU(), *build(0)])]
    assert found == [["GELU", "Linear", "GELU"], ["Linear", "GELU"], ["Linear"]]
    tied = [[type(layer).__name__ for layer in unit.layers] for unit in units(tiny_gpt(0))]
    assert tied == [["Embedding"], *4 * [["Residual"]], ["LayerNorm"], ["TiedHead"]]


def test_what_cannot_be_sharded_is_refused():
    with pytest.raises(ValueError, match="no layer has parameters"):
        list(units([ReLU(), GELU()]))
    with pytest.raises(ValueError, match=r"torch.float32, torch.float64: a flat tensor has one"):
        flatten([torch.ones(2), torch.ones(2, dtype=torch.float64)], 2)


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("num_steps", [0, 1])
def test_a_step_without_a_backward_is_refused(stage, num_steps):
    def drive(rank, world_size, batches):
        model = STAGES[stage](build(0), ADAM)
        for x, labels in batches:
            one_step(model, x, labels, softmax_cross_entropy)
            model.step()
        model.step()

    with pytest.raises(RankError, match="3 of 3 units have no gradient: call backward before step"):
        launch(drive, 2, (data(4, steps=num_steps),))


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_gradients_that_were_summed_before_the_step_are_not_summed_again(stage):
    def drive(rank, world_size, x, labels, times):
        model = STAGES[stage](build(0), ADAM)
        y, saved = model.forward(shard(x))
        _, grad = softmax_cross_entropy(y, shard(labels), len(x))
        model.backward(grad, saved, **({} if stage == 1 else {"synchronise": False}))
        for _ in range(times):
            model.sum_gradients()
        return model.step(max_norm=1e9)

    runs = [launch(drive, 2, (*data(4, steps=1)[0], times)) for times in (0, 1, 2)]
    close([run.results[0] for run in runs], [runs[0].results[0]] * 3)
    assert {run.ledger.count("reduce_scatter", rank=0) for run in runs} == {3}


def test_padding_does_not_count_in_the_norm_and_stays_zero():
    def drive(rank, world_size, x, labels):
        model = ShardedParameters(build(0), ADAM)
        one_step(model, x, labels, softmax_cross_entropy)
        norm = model.step(max_norm=1e9)
        return norm, [flat.shard[-1].item() for flat in model.flats]

    ((x, labels),) = data(8, steps=1)
    _, gradients, _ = alone(build(0), [(x, labels)], softmax_cross_entropy)
    model = MLP(build(0))
    y, saved = model.forward(x)
    model.backward_first(softmax_cross_entropy(y, labels)[1], saved)
    wanted = torch.stack([g.norm() for g in model.gradients()]).norm()
    results = launch(drive, 4, (x, labels)).results
    close([norm for norm, _ in results], [wanted] * 4)
    assert results[-1][1][:2] == [0, 0]  # 35 and 42 numbers leave 1 and 2 of the last rank's
    assert sum(g.numel() for g in gradients) == 101


# What is sent


def steps_of(cases, world_size, sizes=(8, 16, 8)):
    """The ledger of a step for each (variant, micro-batches), all in one launch."""

    def drive(rank, world_size):
        ((x, labels),) = data(8, sizes, steps=1)
        for variant, micro_batches in cases:
            model = VARIANTS[variant](build(0, sizes), ADAM)
            dist.barrier()
            one_step(model, x, labels, softmax_cross_entropy, micro_batches)
            model.step(max_norm=1.0)
            dist.barrier()

    return parted(launch(drive, world_size))[1::2]


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_a_step_sends_what_the_formula_says(world_size):
    padded = [-(-count // world_size) * world_size for count in (8 * 16 + 16, 16 * 8 + 8)]
    cases = [(stage, micro_batches) for stage in STAGES for micro_batches in (1, 2)]
    steps = steps_of(cases, world_size)
    for (stage, micro_batches), step in zip(cases, steps, strict=True):
        wanted = bytes_sent(stage, 8 * sum(padded), world_size, micro_batches)
        for rank in range(world_size):
            shards = [step.sent_bytes(op, rank) for op in ("all_gather", "reduce_scatter")]
            assert sum(shards) == wanted, (stage, micro_batches)
            assert [e.payload_bytes for e in step.select("all_reduce", rank)] == [8]  # the norm


def test_an_exchange_sends_as_much_as_a_reduce_scatter():
    own, exchanged = steps_of([(2, 1), ("2 exchanged", 1)], 4)
    assert exchanged.count("reduce_scatter") == 0
    assert exchanged.sent_bytes("send") == own.sent_bytes("reduce_scatter") > 0


def test_an_exchange_of_many_blocks_sums_them_in_the_room_of_two():
    def drive(rank, world_size, k):
        group = dist.new_group([1, 2, 3])
        if rank == 0:
            return None
        numbers = torch.arange(3 * k) % 1000  # rank r's term of them: r times as much
        wholes = [rank * numbers, 10 * rank * numbers]
        sums = [torch.empty_like(numbers[:k]), wholes[1].chunk(3)[rank - 1]]
        before = held_bytes()
        works = [exchange(*pair, group) for pair in zip(sums, wholes, strict=True)]
        room = held_bytes() - before
        for work in works:
            work.wait()
        mine = numbers.chunk(3)[rank - 1]
        return room, [
            bool((total == f * mine).all()) for total, f in zip(sums, (6, 60), strict=True)
        ]

    run = launch(drive, 4, (300_000,), memory=True)  # 2.4 MB: three blocks from each other rank
    assert run.results == [None] + [(2 * 2 * BLOCK_BYTES, [True, True])] * 3


def test_an_exchange_of_what_is_not_equal_shards_is_refused_with_the_numbers():
    def drive(rank, world_size, elements):
        mine, whole = torch.zeros(elements // 2), torch.ones(elements)
        exchange(mine, whole).wait()
        return mine.tolist()

    with pytest.raises(RankError, match="whole has 7 elements, and mine 3: 2 ranks with"):
        launch(drive, 2, (7,))
    assert launch(drive, 2, (0,)).results == [[], []]


def test_weights_that_stay_whole_are_gathered_once():
    steps = steps_of([(1, 1), (2, 1), (3, 1), ("3 kept", 1)], 2)
    assert [step.count("all_gather", 0) for step in steps] == [2, 2, 4, 2]


def test_micro_batches_that_do_not_synchronise_send_nothing():
    def drive(rank, world_size, variant, x, labels):
        model = STAGES[variant](build(rank), ADAM)
        dist.barrier()
        for number in range(3):
            y, saved = model.forward(x)
            model.backward(softmax_cross_entropy(y, labels, 60)[1], saved, number == 2)
        return list(whole_gradients(model))

    ((x, labels),) = data(10, steps=1)
    runs = {stage: launch(drive, 2, (stage, x, labels)) for stage in (2, 3)}
    _, gradients, _ = alone(build(0), [(x, labels)], softmax_cross_entropy)
    model = MLP(build(0))
    y, saved = model.forward(x)
    model.backward_first(softmax_cross_entropy(y, labels)[1], saved)
    for run in runs.values():
        close(run.results[0], model.gradients())
        assert run.ledger.count("reduce_scatter", 0) == 3
    assert len(gradients) == 6


class Marked(Linear):
    """A linear layer whose computing shows in the ledger: a barrier."""

    def forward(self, x):
        dist.barrier()
        return super().forward(x)

    def backward(self, grad_y, saved):
        dist.barrier()
        return super().backward(grad_y, saved)

    def backward_first(self, grad_y, saved):
        self.backward(grad_y, saved)


@pytest.mark.parametrize(
    ("variant", "order"),
    [
        ("3 without prefetch", "g| g| g|  g|r g|r g|r"),
        (3, "gg| g| |  gg|r g|r |r"),
        ("3 kept", "gg| g| |  |r |r |r"),
        (2, "| | |  |r |r |r"),
        (1, "| | |  | | |"),
    ],
)
def test_the_next_units_weights_are_asked_for_before_this_one_computes(variant, order):
    def drive(rank, world_size):
        layers = [Marked(*pair) for pair in random_weights([4, 4, 4, 4])]
        model = VARIANTS[variant](layers, ADAM)
        dist.reduce(torch.ones(1), 0)
        y, saved = model.forward(torch.ones(2, 4))
        model.backward(y, saved)

    events = launch(drive, 2).ledger.select(rank=0)
    begin = next(i for i, event in enumerate(events) if event.op == "reduce")
    sign = {"all_gather": "g", "barrier": "|", "reduce_scatter": "r"}
    assert "".join(sign[e.op] for e in events[begin + 1 :]) == order.replace(" ", "")


# What is held


def states_held(model):
    """Bytes of weights, gradients and optimizer on this rank."""
    flats, optimizer = model.flats, model.optimizer
    return {
        "weights": sum(f.whole.nbytes for f in flats if f.whole is not None),
        "gradients": sum(
            t.nbytes for f in flats for t in (f.grad_whole, f.grad_shard) if t is not None
        ),
        "optimizer": sum(f.shard.nbytes for f in flats)
        + sum(t.nbytes for t in optimizer.mean + optimizer.square),
    }


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_kept_in_mixed_precision_is_what_the_papers_table_says(stage):
    sizes = (16, 48, 16)

    def drive(rank, world_size):
        model = STAGES[stage](build(0, sizes, torch.float32), ADAM, dtype=torch.bfloat16)
        y, saved = model.forward(torch.ones(4, 16, dtype=torch.bfloat16))
        model.backward(y, saved)
        return states_held(model)

    parameters = 16 * 48 + 48 + 48 * 16 + 16
    wanted = bytes_held(stage, parameters, 4, weight=2 if stage < 3 else 0)
    assert launch(drive, 4).results == [wanted] * 4


WIDTH, DEPTH = 64, 8


def peak(variant, world_size=4, steps=1):
    """The most bytes held, by one rank, in units of a layer's; layers are made one by one."""

    def drive(rank, world_size):
        weight, bias = torch.zeros(WIDTH, WIDTH), torch.zeros(WIDTH)
        model = VARIANTS[variant](
            (Linear(weight, bias) for _ in range(DEPTH)), partial(SGD, lr=0.1)
        )
        for _ in range(steps):
            y, saved = model.forward(torch.ones(1, WIDTH))
            model.backward(y, saved)
            model.step()

    run = launch(drive, world_size, memory=True)
    return lab.least_peak(run) / (4 * WIDTH * (WIDTH + 1))


def test_stage_3_holds_one_whole_unit_or_two_and_shards():
    shards = DEPTH / 4
    copied = 1  # the weight of which all layers have a copy
    held = {variant: peak(variant) - copied for variant in VARIANTS}
    # Whole in backward: weights of one unit, gradients of two, and gloo's own copy of what it sums.
    assert held["3 without prefetch"] == pytest.approx(2 * shards + 1 + 2 + 1, abs=0.3)
    assert held[3] == pytest.approx(2 * shards + 2 + 2 + 1, abs=0.6)
    assert held["3 kept"] == pytest.approx(shards + DEPTH + 2, abs=0.6)
    assert held[2] == pytest.approx(shards + DEPTH + 2 + 1, abs=0.3)
    # A shard of weights that stay whole is a view of them; so is one of gradients that stay.
    assert held[1] == pytest.approx(2 * DEPTH + 1, abs=0.3)


def test_nothing_stays_whole_between_steps_of_stage_3():
    def drive(rank, world_size):
        model = ShardedParameters(build(0), ADAM)
        model.forward(torch.ones(1, 6, dtype=torch.float64))
        return [p.numel() for unit in model.units for p in unit.parameters()], model.parameters()

    run = launch(drive, 2)
    for held, parameters in run.results:
        assert set(held) == {0}
        close(parameters, MLP(build(0)).parameters())


# Hybrid sharding


def hybrid(rank, world_size, variant, build, batches, loss):
    mesh = init_device_mesh("cpu", (2, world_size // 2), mesh_dim_names=("replicate", "shard"))
    groups = {"group": mesh["shard"].get_group(), "replicas": mesh["replicate"].get_group()}
    model = VARIANTS[variant](build(rank), ADAM, **groups)
    dist.barrier()
    losses = []
    for x, targets in batches:
        losses.append(one_step(model, x, targets, loss))
        model.step(MAX_NORM)
    return torch.stack(losses), model.parameters()


@pytest.mark.parametrize("variant", [1, 2, 3])
def test_shards_within_and_replicas_across_equal_one_device(variant):
    batches = data(11, steps=3)
    run = launch(hybrid, 4, (variant, build, batches, softmax_cross_entropy))
    losses, _, parameters = alone(build(0), batches, softmax_cross_entropy)
    close(sum(result[0] for result in run.results), losses)
    for result in run.results:
        close(result[1], parameters)


def test_replicas_send_only_their_shards_once_a_step():
    run = launch(hybrid, 4, (3, build, data(8, steps=1), softmax_cross_entropy))
    calls = parted(run)[-1].select("all_reduce", 0)
    shards = [8 * -(-count // 2) for count in (35, 42, 24)]
    assert [e.payload_bytes for e in calls] == [*shards, 8]
    assert [e.group for e in calls] == [*3 * [(0, 2)], (0, 1)]


# What the lecture shows


def test_one_rank_of_stage_1_holds_what_plain_data_parallelism_does_and_two_hold_less():
    plain, one, two = lab.peaks("no stage", 2), lab.peaks("stage 1", 1), lab.peaks("stage 1", 2)
    assert one == pytest.approx(plain, abs=0.1) == pytest.approx(4, abs=0.2)
    assert two == pytest.approx(3, abs=0.3)  # gloo copies a unit's gradient, now and then two


def kinds(step):
    """What was computed and called, in order of its beginning."""
    return [(span.kind, span.unit) for span in sorted(step.spans, key=lambda span: span.start)]


def test_a_watched_step_gathers_the_next_layer_while_one_computes():
    order = kinds(lab.watch("stage 3", num_steps=1))
    assert [unit for kind, unit in order if kind == "forward"] == [0, 1, 2, 3, 4, 5]
    assert [unit for kind, unit in order if kind == "reduce_scatter"] == [5, 4, 3, 2, 1, 0]
    gathers = [unit for kind, unit in order if kind == "all_gather"]
    assert gathers == [0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0]
    assert order.index(("all_gather", 1)) < order.index(("forward", 0)) + 2
    assert order.index(("all_gather", 2)) > order.index(("forward", 0))


def test_without_prefetch_every_layer_waits_for_its_weights():
    step = lab.watch("stage 3, no prefetch", num_steps=1)
    order = kinds(step)
    for unit in range(5):
        assert order.index(("forward", unit)) < order.index(("all_gather", unit + 1))
    assert max(step.held) == 2 * lab.LAYER_BYTES


def test_a_watched_step_of_stage_1_sends_after_backward():
    order = kinds(lab.watch("stage 1", num_steps=1))
    assert order[:12] == [(kind, unit) for kind, unit in order if kind.endswith("ward")]
    assert order[12:] == [(op, u) for op in ("reduce_scatter", "all_gather") for u in range(6)]


def test_a_watched_step_of_data_parallelism_sends_each_layer_during_backward():
    order = kinds(lab.watch("data parallel", num_steps=1))
    assert [unit for kind, unit in order if kind == "all_reduce"] == [5, 4, 3, 2, 1, 0]
    assert order.index(("all_reduce", 5)) < order.index(("backward", 0))
    assert len(order) == 18


@pytest.mark.parametrize(
    ("variant", "seconds"),
    [
        ("data parallel", 0.35),
        ("stage 1", 0.45),
        ("stage 2", 0.4),
        ("stage 3, kept", 0.35),
        ("stage 3", 0.36),
        ("stage 3, no prefetch", 0.51),
    ],
)
def test_on_paper_a_step_takes_what_the_lecture_adds_up(variant, seconds):
    spans = step_on_paper(variant)
    assert max(end for *_, end in spans) == pytest.approx(seconds)
    gathers = {"data parallel": 0, "stage 3": 12, "stage 3, no prefetch": 12}.get(variant, 6)
    assert [kind for kind, *_ in spans].count("all_gather") == gathers
    assert lab.LAYER_BYTES / LINK == GATHER + REDUCE


@pytest.mark.parametrize("how", [lab.watch, step_on_paper])
def test_a_variant_that_there_is_not_is_no_other_one(how):
    assert set(WATCHED) == {"data parallel", *lab.VARIANTS}
    with pytest.raises(ValueError, match=r"no variant is called 'stage3'; .* 'stage 3, kept'$"):
        how("stage3")


def test_the_table_adds_up_to_sixteen_bytes_a_parameter():
    assert [round(sum(bytes_held(s, 7.5e9, 64).values()) / 1e8) for s in range(4)] == [
        1200,
        314,
        166,
        19,
    ]


def test_the_picture_of_a_steps_moments_has_what_the_text_counts():
    """Stage 1 piles gradients up, stage 2 has two at most, stage 3 one unit's weights at a time."""
    panels = lab.whole_at_moments().axes
    assert [axes.get_title() for axes in panels] == ["Stage 1", "Stage 2", "Stage 3"]
    empty = 6 * 7  # cells, each a box; what is whole is a box on top
    assert [len(axes.patches) - empty for axes in panels] == [21 + 2 + 3 + 4, 21 + 6, 6 + 6]
