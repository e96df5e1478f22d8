"""Sequence-parallel layers equal one device's, send what formulas say, save their tokens only."""

from __future__ import annotations

import itertools
import re

import pytest
import torch
import torch.distributed as dist
from torch.nn import functional as F

from byhand import launch
from byhand.hybrid_parallel.gradients import Gradients, clip
from byhand.model.attention import MultiHeadAttention
from byhand.model.gpt import gpt_layers, gpt_weights, next_token_loss, random_gpt
from byhand.model.layer import PARTIAL
from byhand.model.mlp import GELU, MLP, random_weights, softmax_cross_entropy
from byhand.model.optimizers import AdamW
from byhand.model.shards import shard
from byhand.model.transformer import LayerNorm
from byhand.sequence_parallel import (
    Dropout,
    SequenceParallelAttention,
    SequenceParallelMLP,
    SequenceParallelNorm,
    VocabularyParallelEmbedding,
    gather,
    generators,
    reduce_scatter,
    sequence_parallel_gpt,
    sum_partial_gradients,
    vocabulary_parallel_cross_entropy,
)
from byhand.sequence_parallel import next_token_loss as split_loss
from byhand.sequence_parallel.formulas import WAYS, activation_bytes, sent_bytes
from byhand.sequence_parallel.lab import (
    SIZES,
    copied_bytes,
    copies_table,
    predicted_bytes,
    run_layer,
    saved_bytes,
    units_sent,
)
from byhand.sequence_parallel.lab.pictures import KEPT, layer_picture
from byhand.sequence_parallel.operators import gather_tokens, scatter_sum
from byhand.sequence_parallel.overlap import gather_while, scatter_while
from byhand.tensor_parallel import TensorParallelMLP
from byhand.tools.asleep import sent_each_way

WORLDS = (1, 2, 3, 4)
FLOAT64 = {"dtype": torch.float64}
VOCABULARY, POSITIONS = 23, 12  # 23 divides by none of 2, 3 and 4


def assert_close(mine, theirs, tolerance=1e-10):
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), **FLOAT64)


# The two operators


def there_and_back(rank, world_size, tensors):
    mine = [shard(x, -2) for x in tensors]
    same = [torch.equal(gather(shard), x) for shard, x in zip(mine, tensors, strict=True)]
    return all(same), [reduce_scatter((rank + 1) * x) for x in tensors]


@pytest.mark.parametrize("world_size", WORLDS)
def test_tokens_are_gathered_in_order_and_their_sums_scattered(world_size):
    tensors = [random(*shape) for shape in ((12, 3), (2, 12, 3), (2, 2, 12, 1))]
    not_contiguous = [x.mT.contiguous().mT for x in tensors]
    run = launch(there_and_back, world_size, (not_contiguous,))
    total = sum(range(1, world_size + 1))
    for rank, (same, sums) in enumerate(run.results):
        assert same
        assert_close(sums, [total * x.tensor_split(world_size, -2)[rank] for x in tensors])
    for op in ("all_gather", "reduce_scatter"):
        sent = [event.sent_bytes for event in run.ledger.select(op, 0)]
        assert sent == [x.nbytes * (world_size - 1) // world_size for x in tensors]


def through_autograd(rank, world_size, weights, x, grad_y):
    (A, a), (B, b) = weights
    mine = shard(x, -2).clone().requires_grad_()
    hidden = F.linear(gather_tokens(mine), A.chunk(world_size)[rank], a.chunk(world_size)[rank])
    y = scatter_sum(F.linear(F.gelu(hidden), B.chunk(world_size, 1)[rank])) + b
    y.backward(shard(grad_y, -2))
    return y.detach(), mine.grad


@pytest.mark.parametrize("world_size", WORLDS)
def test_the_operators_for_autograd_are_each_others_backward(world_size):
    weights, x, grad_y = random_weights([6, 12, 6], **FLOAT64), random(2, 12, 6), random(2, 12, 6)
    y, saved = MLP.from_weights(weights, GELU).forward(x)
    whole = y, MLP.from_weights(weights, GELU).backward(grad_y, saved)
    run = launch(through_autograd, world_size, (weights, x, grad_y))
    for rank, mine in enumerate(run.results):
        assert_close(mine, [t.tensor_split(world_size, 1)[rank] for t in whole])


# Layers


def build(kind, parallel):
    qkv, out = random_weights([12, 36], 1, **FLOAT64)[0], random_weights([12, 12], 2, **FLOAT64)[0]
    up, down = random_weights([12, 24, 12], 3, **FLOAT64)
    if kind == "attention":
        make = SequenceParallelAttention if parallel else MultiHeadAttention.from_weights
        return make(qkv, out, 12, True)
    return (SequenceParallelMLP if parallel else MLP.from_weights)([up, down], GELU)


CASES = [(kind, way) for kind in ("attention", "mlp") for way in ("again", "whole", "halves")]


def forward_backward(rank, world_size, x, grad_y):
    return [one_of(kind, way, shard(x, -2), shard(grad_y, -2)) for kind, way in CASES]


def one_of(kind, way, x, grad_y):
    model = build(kind, True)
    for layer in model.layers:
        layer.gather_again = way != "whole"
    y, saved = model.forward(x)
    if way == "halves":
        grad_x, kept = model.backward_input(grad_y, saved)
        model.backward_weight(kept)
    else:
        grad_x = model.backward(grad_y, saved)
    return y, grad_x, model.gradients()


@pytest.mark.parametrize("world_size", WORLDS)
def test_attention_and_mlp_equal_one_device(world_size):
    x, grad_y = random(2, 12, 12), random(2, 12, 12, seed=1)
    results = launch(forward_backward, world_size, (x, grad_y)).results
    for (kind, _), by_rank in zip(CASES, zip(*results, strict=True), strict=True):
        alone = build(kind, False)
        y, saved = alone.forward(x)
        whole = y, alone.backward(grad_y, saved)
        for rank, (y, grad_x, _) in enumerate(by_rank):
            assert_close((y, grad_x), [t.tensor_split(world_size, 1)[rank] for t in whole])
        if kind == "mlp":
            up, up_bias, down, down_bias = zip(*(g for *_, g in by_rank), strict=True)
            *rest, last = alone.gradients()
            assert_close([torch.cat(up), torch.cat(up_bias), torch.cat(down, 1)], rest)
            assert_close(down_bias, [last] * world_size)


def norm_gradients(rank, world_size, x, grad_y):
    norm = SequenceParallelNorm(torch.ones(4, **FLOAT64), torch.zeros(4, **FLOAT64))
    _, saved = norm.forward(shard(x, -2))
    norm.backward(shard(grad_y, -2), saved)
    before = [gradient.clone() for gradient in norm.gradients()]
    sum_partial_gradients(norm)
    return before, norm.gradients()


@pytest.mark.parametrize("world_size", WORLDS)
def test_the_norms_gradient_is_one_term_of_a_sum_until_it_is_summed(world_size):
    x, grad_y = random(2, 12, 4), random(2, 12, 4, seed=1)
    alone = LayerNorm(torch.ones(4, **FLOAT64), torch.zeros(4, **FLOAT64))
    alone.backward(grad_y, alone.forward(x)[1])
    run = launch(norm_gradients, world_size, (x, grad_y))
    terms, sums = zip(*run.results, strict=True)
    assert_close([sum(term) for term in zip(*terms, strict=True)], alone.gradients())
    for mine in sums:
        assert_close(mine, alone.gradients())
    assert run.ledger.count("all_reduce", 0) == 1, "gain and bias travel together"


def test_nothing_is_sent_where_nothing_is_partial():
    model = MLP.from_weights(random_weights([3, 4]))
    assert launch(lambda rank, n: sum_partial_gradients(model), 2).ledger.count() == 0


def drop(rank, world_size, x):
    common, own = generators(7)
    return [Dropout(0.5, generator).forward(x) for generator in (common, own)]


def test_masks_are_equal_where_replicated_and_differ_where_sharded():
    x = torch.ones(64, 8)
    results = launch(drop, 4, (x,)).results
    common, own = zip(*results, strict=True)
    assert all(torch.equal(mask, common[0][1]) for _, mask in common)
    for a in range(4):
        for b in range(a):
            assert (own[a][1] != own[b][1]).double().mean() > 0.3
    assert set(own[0][0].unique().tolist()) == {0.0, 2.0}
    assert 0.4 < torch.cat([mask for _, mask in own]).double().mean() < 0.6


# The vocabulary


def loss_of(rank, world_size, logits, targets, vocabulary=None):
    mine = logits.tensor_split(world_size, 1)[rank]  # a view, not contiguous
    before = mine.clone()
    loss, grad = vocabulary_parallel_cross_entropy(mine, targets, vocabulary=vocabulary)
    assert torch.equal(mine, before), "the caller's logits changed"
    return loss, grad


def losses_of(rank, world_size, cases):
    return [loss_of(rank, world_size, *case) for case in cases]


@pytest.mark.parametrize("world_size", WORLDS)
def test_the_split_loss_equals_the_whole(world_size):
    cases = []
    for tokens, more, shift in itertools.product((1, 4, 9), (0, 1, 6, 13), (0.0, 1e4, -1e4)):
        logits = 5 * random(tokens, world_size + more, seed=tokens)
        logits[:, more] += shift  # a large logit is one rank's alone
        cases.append((logits, torch.arange(tokens) * 7 % (world_size + more)))
    results = launch(losses_of, world_size, (cases,)).results
    for case, by_rank in zip(cases, zip(*results, strict=True), strict=True):
        loss, grad = softmax_cross_entropy(*case)
        for rank, mine in enumerate(by_rank):
            assert_close(mine, [loss, grad.tensor_split(world_size, 1)[rank]])


@pytest.mark.parametrize("world_size", WORLDS)
def test_tokens_that_may_not_come_leave_the_split_loss_finite(world_size):
    logits, targets = random(3, 8), torch.tensor([1, 4, 7])
    for barred in (0, 2, 3, 6):  # the first columns of two, three or four ranks, and another
        logits[:, barred] = -torch.inf
    loss, grad = softmax_cross_entropy(logits, targets)
    assert loss.isfinite()
    for rank, mine in enumerate(launch(loss_of, world_size, (logits, targets)).results):
        assert_close(mine, [loss, grad.tensor_split(world_size, 1)[rank]])


def test_a_row_that_no_token_asks_for_is_not_in_the_sum_of_the_ranks():
    table = random(4, 3)
    table[::2] = torch.nan  # the first row of each of two ranks

    def look_up(rank, world_size):
        embedding = VocabularyParallelEmbedding(table, torch.zeros(2, 3, **FLOAT64))
        return embedding.forward(torch.tensor([[3, 1]]))[0]

    assert_close([torch.cat(launch(look_up, 2).results, 1)[0]], [table[[3, 1]]])


@pytest.mark.parametrize("vocabulary", [None, 10])
def test_three_numbers_a_token_cross(vocabulary):
    logits, targets = random(6, 10), torch.arange(6)
    run = launch(loss_of, 3, (logits, targets, vocabulary))
    calls = run.ledger.select("all_reduce", 0)
    expected = [("max", 6 * 8), ("sum", 2 * 6 * 8)]
    expected = [("sum", 8), *expected] if vocabulary is None else expected
    assert [(call.reduce_op, call.payload_bytes) for call in calls] == expected


def test_no_rank_ever_holds_all_logits():
    rows, vocabulary, world_size = 64, 4096, 4

    def lose(rank, world_size):
        logits = torch.zeros(rows, vocabulary // world_size)
        vocabulary_parallel_cross_entropy(logits, torch.zeros(rows, dtype=torch.long))

    share_bytes = rows * vocabulary * 4 // world_size
    for peak in launch(lose, world_size, memory=True).peak_bytes:
        assert 2 * share_bytes <= peak < 2.2 * share_bytes, "the logits, and their gradient"


# The whole model


def tiny(seed=0):
    return random_gpt(VOCABULARY, POSITIONS, 24, 12, 2, seed, torch.float64)


def batch():
    tokens = torch.randint(
        VOCABULARY, (3, POSITIONS + 1), generator=torch.Generator().manual_seed(2)
    )
    return tokens[:, :-1], tokens[:, 1:]


def train(model, loss, after_backward, num_steps=4):
    """Losses, the first step's logits and gradients, and the weights in the end."""
    tokens, targets = batch()
    optimizer, losses, first = AdamW(model.parameters(), lr=0.01), [], None
    for _ in range(num_steps):
        model.zero_gradients()
        logits, saved = model.forward(tokens)
        value, grad = loss(logits, targets)
        model.backward_first(grad, saved)
        after_backward(model)
        first = first or (logits, [g.clone() for g in model.gradients()])
        optimizer.step(model.gradients())
        losses.append(value)
    return losses, *first, model.parameters()


def as_weights(layers, tensors):
    """A GPT whose weights are these tensors: what is cut as weights are can be compared so."""
    for parameter, tensor in zip(MLP(layers).parameters(), tensors, strict=True):
        parameter.copy_(tensor)
    return gpt_weights(layers, 12)


def train_split(rank, world_size, weights, gradients, trained):
    model = sequence_parallel_gpt(weights)
    found = train(model, split_loss, sum_partial_gradients)
    assert_close(found[2], sequence_parallel_gpt(gradients).parameters())
    assert_close(found[3], sequence_parallel_gpt(trained).parameters())
    return found[:2]


@pytest.mark.parametrize("world_size", [1, 3])
def test_the_gpt_equals_one_device_in_loss_logits_gradients_and_weights(world_size):
    layers = gpt_layers(tiny())
    losses, logits, gradients, trained = train(MLP(layers), next_token_loss, lambda model: None)
    trained = [tensor.clone() for tensor in trained]
    whole = as_weights(gpt_layers(tiny()), gradients), as_weights(gpt_layers(tiny()), trained)
    results = launch(train_split, world_size, (tiny(), *whole)).results
    for mine, _ in results:
        assert_close(mine, losses)
    assert_close([torch.cat([part for _, part in results], dim=-1)], [logits])


def partial_kinds(rank, world_size):
    model = sequence_parallel_gpt(tiny())
    shapes = [tuple(p.shape) for p in model.parameters()]
    return [s for s, how in zip(shapes, model.placements, strict=True) if how == PARTIAL]


def test_norms_and_positions_are_partial():
    (found,) = launch(partial_kinds, 1).results
    assert found.count((24,)) == 2 * 2 * 2 + 2, (
        "gain and bias of two norms a block, and of the last"
    )
    assert (POSITIONS, 24) in found


def drop_in_training(rank, world_size):
    model = sequence_parallel_gpt(tiny(), dropout=0.2)
    tokens, targets = batch()
    logits, saved = model.forward(tokens)
    masks = [item[-1] for item in saved[1:-2]]
    loss, grad = split_loss(logits, targets)
    model.backward_first(grad, saved)
    sum_partial_gradients(model)
    return masks, loss, model.layers[-2].grad_gain


class Masked(Dropout):
    """Drops what it is told to."""

    def __init__(self, p, mask):
        self.p, self.mask = p, mask

    def forward(self, x):
        return x * self.mask / (1 - self.p), self.mask


@pytest.mark.parametrize("world_size", [1, 3])
def test_with_dropout_the_model_is_one_device_with_the_ranks_masks(world_size):
    results = launch(drop_in_training, world_size).results
    layers = gpt_layers(tiny())
    for layer, *masks in zip(layers[1:-2], *(masks for masks, *_ in results), strict=True):
        layer.layers.append(Masked(0.2, torch.cat(masks, dim=1)))
    tokens, targets = batch()
    logits, saved = MLP(layers).forward(tokens)
    loss, grad = next_token_loss(logits, targets)
    MLP(layers).backward_first(grad, saved)
    for _, mine, grad_gain in results:
        assert_close([mine, grad_gain], [loss, layers[-2].grad_gain])


def clip_together(rank, world_size):
    model, alone = (
        sequence_parallel_gpt(tiny()),
        dist.new_group([rank], use_local_synchronization=True),
    )
    tokens, targets = batch()
    logits, saved = model.forward(tokens)
    model.backward_first(split_loss(logits, targets)[1], saved)
    groups = {"tp": None, "tp-pp": None, "dp": alone, "pp": alone}
    gradients = Gradients([model], groups)
    gradients.sum_over_ranks()
    return clip(gradients, 1.0)


@pytest.mark.parametrize("world_size", [1, 3])
def test_lecture_12_sums_and_counts_its_gradients_by_their_placements(world_size):
    model = MLP(gpt_layers(tiny()))
    tokens, targets = batch()
    logits, saved = model.forward(tokens)
    model.backward_first(next_token_loss(logits, targets)[1], saved)
    norm = torch.stack([g.square().sum() for g in model.gradients()]).sum().sqrt()
    assert_close(launch(clip_together, world_size).results, [norm] * world_size)


# Overlap


def products(rank, world_size, weight, x, hidden, by_column):
    def multiply(shard):
        return (weight @ shard.mT).mT if by_column else shard @ weight.T

    mine = shard(x, -2)
    rings = [gather_while(mine, multiply), scatter_while(hidden[rank], multiply)]
    return rings, [multiply(gather(mine)), reduce_scatter(multiply(hidden[rank]))]


@pytest.mark.parametrize("by_column", [False, True])  # how a product's result lies in memory
@pytest.mark.parametrize("world_size", WORLDS)
def test_a_ring_of_products_equals_the_collective_and_the_product(world_size, by_column):
    ((weight, _),) = random_weights([6, 6], **FLOAT64)
    x, hidden = random(2, 12, 6), random(world_size, 2, 12, 6, seed=1)
    run = launch(products, world_size, (weight, x, hidden, by_column))
    for rings, plain in run.results:
        assert_close(rings, plain)
    shard = x.nbytes // world_size
    assert run.ledger.count("send", 0) == 2 * (world_size - 1)
    assert run.ledger.sent_bytes("send", 0) == 2 * (world_size - 1) * shard


# What a layer saves and sends


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_layer_saves_and_sends_what_the_formulas_say_to_the_byte(world_size, way):
    run = run_layer(way, world_size, sequences=2)
    ranks = len(run.results)
    assert saved_bytes(run) == predicted_bytes(way, world_size, *SIZES, 2)
    expected = sent_bytes(way, 2 * SIZES[0], SIZES[1], ranks)
    assert sent_each_way(run) == {
        phase: {op: round(n) for op, n in ops.items()} for phase, ops in expected.items()
    }


def test_tensor_parallelism_keeps_copies_and_sequence_parallelism_none():
    copies = {way: copied_bytes(run_layer(way, 3)) for way in WAYS}
    tokens, features, _ = SIZES
    whole = 10 * tokens * features + 2 * 2 * tokens  # the paper's 10, and the norms' scales
    inputs = 2 * 2 * tokens * features
    assert copies["tensor"] == whole
    assert [copies[f"sequence, {how}"] for how in ("kept whole", "gathered twice")] == [inputs, 0]


def test_the_formula_is_the_papers():
    s, h, a, t = 2048, 12288, 96, 8
    scores = 5 * a * s
    paper = {
        "alone": 34 + 5 * a * s / h,
        "tensor": 10 + 24 / t + 5 * a * s / (h * t),
        "sequence, gathered twice": 34 / t + 5 * a * s / (h * t),
    }
    for way, factor in paper.items():
        found = activation_bytes(way, s, h, t, scores=scores)
        assert found == pytest.approx(s * h * factor)
    with pytest.raises(ValueError, match="no way is called 'both'"):
        activation_bytes("both", s, h, t)
    with pytest.raises(ValueError, match=r"'sequence, gathered 2x'; .*'sequence, gathered twice'$"):
        run_layer("sequence, gathered 2x", 2)


def test_the_scores_are_not_saved_where_they_are_computed_again():
    way = "sequence, gathered twice"
    run = run_layer(way, 2, recompute=True)
    assert saved_bytes(run) == predicted_bytes(way, 2, *SIZES, recompute=True)
    assert "attention's scores" not in {name for name, *_ in run.results[0]}


def test_the_table_says_what_is_the_same_on_all_ranks_and_adds_up():
    alone, run = run_layer("alone", 2), run_layer("tensor", 2)
    unit = SIZES[0] * SIZES[1]
    *rows, total = copies_table(alone, run, unit).splitlines()[1:]
    assert [row.endswith("the same on all ranks") for row in rows] == 3 * [True] + 3 * [False]
    for column, sized in enumerate((alone, run)):
        sizes = [float(re.findall(r"\d+\.\d", row)[column]) for row in [*rows, total]]
        assert sum(sizes[:-1]) == pytest.approx(sizes[-1], abs=0.3)
        assert sizes[-1] == pytest.approx(saved_bytes(sized) / unit, abs=0.06)


def test_a_layer_by_token_sends_a_quarter_more_units_than_tensor_parallelism():
    assert [sum(sent.values()) for sent in units_sent(2).values()] == [8, 8, 10]


def half_step(rank, world_size, make, weights, x, grad_y):
    model = make(weights, GELU)
    if make is SequenceParallelMLP:
        x, grad_y = shard(x), shard(grad_y)
    _, saved = model.forward(x)
    model.backward(grad_y, saved)


@pytest.mark.parametrize(
    ("make", "behind"),
    [
        (TensorParallelMLP, [False, True]),
        (SequenceParallelMLP, [False, False, False, True, True]),
    ],
)
def test_behind_a_product_are_the_messages_at_a_column_layers_backward(make, behind):
    arguments = make, random_weights([240, 960, 240]), *torch.randn(2, 768, 240)
    run = launch(half_step, 2, arguments)
    assert [call.overlapped for call in run.ledger.select(rank=0)] == behind


# Beside torch


def with_dtensor(rank, world_size, weights, x, grad_y):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    layers = [
        torch.nn.LayerNorm(6),
        torch.nn.Linear(6, 12),
        torch.nn.GELU(),
        torch.nn.Linear(12, 6),
    ]
    model = torch.nn.Sequential(*layers).double()
    for layer, (weight, bias) in zip(layers[1::2], weights, strict=True):
        layer.weight.data, layer.bias.data = weight.clone(), bias.clone()
    plan = {
        "0": SequenceParallel(),
        "1": ColwiseParallel(input_layouts=Shard(1)),
        "3": RowwiseParallel(output_layouts=Shard(1)),
    }
    parallelize_module(model, init_device_mesh("cpu", (world_size,)), plan)
    mine = shard(x, -2).clone().requires_grad_()
    y = model(mine)
    y.backward(shard(grad_y, -2))
    return y.detach(), mine.grad, layers[0].weight.grad.full_tensor()


def with_ours(rank, world_size, weights, x, grad_y):
    norm = SequenceParallelNorm(torch.ones(6, **FLOAT64), torch.zeros(6, **FLOAT64))
    model = MLP([norm, SequenceParallelMLP(weights, GELU)])
    model.layers[1].layers[0].gather_again = False
    y, saved = model.forward(shard(x, -2))
    grad_x = model.backward(shard(grad_y, -2), saved)
    sum_partial_gradients(model)
    return y, grad_x, norm.grad_gain


def test_dtensor_computes_and_sends_the_same():
    arguments = random_weights([6, 12, 6], **FLOAT64), random(2, 12, 6), random(2, 12, 6, seed=1)
    ours, theirs = (launch(way, 3, arguments) for way in (with_ours, with_dtensor))
    for mine, other in zip(ours.results, theirs.results, strict=True):
        assert_close(mine, other)
    for op in ("all_gather", "reduce_scatter"):
        assert ours.ledger.count(op, 0) == theirs.ledger.count(op, 0) == 2
        assert ours.ledger.sent_bytes(op, 0) == theirs.ledger.sent_bytes(op, 0)


def with_loss_parallel(rank, world_size, logits, targets):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    from torch.distributed.tensor.parallel import loss_parallel

    mesh = init_device_mesh("cpu", (world_size,))
    mine = logits.tensor_split(world_size, 1)[rank].clone().requires_grad_()
    split = DTensor.from_local(mine, mesh, [Shard(1)], shape=logits.shape, stride=logits.stride())
    with loss_parallel():
        loss = F.cross_entropy(split, targets)
        loss.backward()
    return loss.full_tensor().detach(), mine.grad


def test_loss_parallel_computes_the_same_and_sends_the_same_bytes():
    logits, targets = random(6, 10), torch.arange(6)
    ours = launch(loss_of, 3, (logits, targets, 10))
    theirs = launch(with_loss_parallel, 3, (logits, targets))
    for mine, other in zip(ours.results, theirs.results, strict=True):
        assert_close(mine, other)
    assert (ours.ledger.count("all_reduce", 0), theirs.ledger.count("all_reduce", 0)) == (2, 3)
    assert ours.ledger.sent_bytes("all_reduce") == theirs.ledger.sent_bytes("all_reduce")


# What is refused


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: reduce_scatter(torch.ones(5, 4)), "5 tokens .* 2 ranks"),
        (lambda: sequence_parallel_gpt(random_gpt(1, 4, 4, 2, 1)), "vocabulary of 1 .* 2 ranks"),
        (lambda: Dropout(1.0, torch.Generator()), "probability of 1.0"),
        (
            lambda: vocabulary_parallel_cross_entropy(
                torch.ones(3, 2), torch.zeros(4).long(), None, 4
            ),
            r"logits \[3, 2\] and targets \[4\] do not fit",
        ),
        (
            lambda: vocabulary_parallel_cross_entropy(
                torch.ones(1, 2), torch.zeros(1).long(), None, 6
            ),
            "3 of 6 columns",
        ),
        (
            lambda: vocabulary_parallel_cross_entropy(torch.ones(1, 2), torch.tensor([4])),
            "a target of 4: a vocabulary of 4 has 0 to 3",
        ),
        (
            lambda: sequence_parallel_gpt(random_gpt(10, 4, 4, 2, 1)).forward(
                torch.tensor([[1, 2, 3, 10]])
            ),
            "a token of 10: a vocabulary of 10 has 0 to 9",
        ),
        (
            lambda: sequence_parallel_gpt(random_gpt(10, 4, 4, 2, 1)).forward(
                torch.tensor([[1, 2, 3, -1]])
            ),
            "a token of -1: a vocabulary of 10 has 0 to 9",
        ),
    ],
    ids="sum vocabulary dropout targets cut target token negative".split(),
)
def test_what_does_not_fit_is_refused_with_its_numbers(attempt, sentence):
    def on_rank(rank, world_size):
        try:
            attempt()
        except ValueError as error:
            return str(error)

    for said in launch(on_rank, 2).results:
        assert re.search(sentence, said), said


def in_two_groups(rank, world_size, weights, x, grad_y):
    group = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    model = SequenceParallelMLP(weights, GELU, group=group)
    y, saved = model.forward(shard(x, -2, group) * (1 + rank // 2))
    return y, model.backward(shard(grad_y, -2, group), saved)


def test_a_layer_talks_to_its_own_group_only():
    weights, x, grad_y = random_weights([4, 6, 4], **FLOAT64), random(1, 6, 4), random(1, 6, 4)
    run = launch(in_two_groups, 4, (weights, x, grad_y))
    for rank, mine in enumerate(run.results):
        alone = MLP.from_weights(weights, GELU)
        y, saved = alone.forward(x * (1 + rank // 2))
        whole = y, alone.backward(grad_y, saved)
        assert_close(mine, [t.tensor_split(2, 1)[rank % 2] for t in whole])
    assert {e.group for e in run.ledger.events if e.op == "all_gather"} == {(0, 1), (2, 3)}


def test_the_picture_of_a_layer_has_the_bytes_of_the_formulas():
    sizes = {
        who: sum(size for _, size, of in KEPT if of == who) for who in ("token", "feature", "all")
    }
    for ranks in (1, 2, 8):
        divided = sizes["feature"] / ranks
        tp, kept = (
            divided + sizes["token"] + sizes["all"],
            divided + sizes["token"] / ranks + sizes["all"],
        )
        assert activation_bytes("tensor", 1, 192, ranks) / 192 == pytest.approx(tp, rel=0.01)
        assert activation_bytes(WAYS[2], 1, 192, ranks) / 192 == pytest.approx(kept, rel=0.01)
    texts = [text.get_text() for text in layer_picture().axes[0].texts]
    assert [texts.count(text) for text in ("2", "2/n", "g", "ḡ")] == [4 + 2, 2, 2, 2]
