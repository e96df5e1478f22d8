"""Experts spread over ranks equal one device's, send what is predicted, and hold their share."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from byhand import PerRank, RankError, VirtualNetwork, launch
from byhand.expert_parallel import (
    ExpertParallelMLP,
    Experts,
    HostExperts,
    MixtureOfExperts,
    Router,
    capacity,
    lab,
    make_exchange,
)
from byhand.expert_parallel.lab import learning, pictures
from byhand.expert_parallel.layer import LocalExperts, dense
from byhand.expert_parallel.migration import move, sum_copies
from byhand.expert_parallel.placement import (
    even,
    imbalance,
    in_order,
    moves,
    pays_after,
    rank_loads,
    relabelled,
    replicated,
)
from byhand.expert_parallel.training import (
    ExpertParallelTraining,
    random_experts,
    with_mixtures,
)
from byhand.model.gpt import next_token_loss, random_gpt
from byhand.model.mlp import GELU, MLP
from byhand.model.optimizers import AdamW
from byhand.model.text import text_batches
from byhand.model.training import train_alone
from byhand.rank_groups import rank_groups
from byhand.rank_groups.process_groups import groups_for_this_rank

T, D, HIDDEN, E, K = 13, 6, 8, 5, 2  # tokens of the batch, features, experts, experts a token
WORLDS = (1, 2, 3, 4)
FLOAT64 = torch.float64


def assert_close(mine, theirs, tolerance=1e-10):
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def data(num_tokens=T, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x, grad_y = torch.randn(2, num_tokens, D, generator=generator, dtype=FLOAT64)
    return x, grad_y


def router_of(weight, softmax="after", balance=0.0, top_k=K):
    return Router(8 * weight, top_k, softmax, balance)  # larger scores: an uneven choice


def alone(softmax="after", balance=0.0, shared=False):
    weight, experts = random_experts(E, D, HIDDEN, dtype=FLOAT64)
    more = MLP.from_weights(experts[0], GELU) if shared else None
    return MixtureOfExperts(router_of(weight, softmax, balance), LocalExperts(experts), more)


def spread(softmax="after", balance=0.0, shared=False, **how):
    weight, experts = random_experts(E, D, HIDDEN, dtype=FLOAT64)
    more = MLP.from_weights(experts[0], GELU) if shared else None
    return ExpertParallelMLP(router_of(weight, softmax, balance), experts, more, **how)


def by_autograd(weight, experts, x, softmax, pull=None):
    """y of the same mixture, in the plainest words."""
    logits = x @ weight.T
    p = logits.softmax(dim=-1)
    gates, chosen = p.topk(K, dim=-1)
    if softmax == "after":
        gates = logits.gather(1, chosen).softmax(dim=-1)
    made = []
    for up, down in experts:
        hidden = F.gelu(F.linear(x, *up))
        made.append(F.linear(hidden, *down))
    every = torch.stack(made, dim=1)  # [T, E, D]
    return (gates[..., None] * every[torch.arange(len(x))[:, None], chosen]).sum(dim=1), p


@pytest.mark.parametrize("softmax", ["before", "after"])
def test_one_devices_mixture_has_autograds_values_and_gradients(softmax):
    model, (x, grad_y) = alone(softmax), data()
    y, saved = model.forward(x)
    grad_x = model.backward(grad_y, saved)
    leaf = x.clone().requires_grad_()
    parameters = [p.clone().requires_grad_() for p in model.parameters()]
    pairs = list(zip(parameters[1::2], parameters[2::2], strict=True))
    experts = list(zip(pairs[::2], pairs[1::2], strict=True))
    expected, _ = by_autograd(parameters[0], experts, leaf, softmax)
    expected.backward(grad_y)
    assert_close([y, grad_x], [expected.detach(), leaf.grad])
    assert_close(model.gradients(), [p.grad for p in parameters])


def test_the_balance_losss_gradient_is_autograds():
    weight, _ = random_experts(E, D, HIDDEN, dtype=FLOAT64)
    router, (x, _) = router_of(weight, balance=0.3), data()
    (weights, chosen), saved = router.forward(x)
    grad_x, kept = router.backward_input(torch.zeros_like(weights), saved)
    router.backward_weight(kept)
    leaf, w = x.clone().requires_grad_(), router.weight.clone().requires_grad_()
    share = torch.bincount(chosen.flatten(), minlength=E).to(FLOAT64) / (K * T)
    loss = 0.3 * E * (share * (leaf @ w.T).softmax(dim=-1).mean(dim=0)).sum()
    loss.backward()
    assert_close([router.balance_loss(saved), grad_x], [loss.detach(), leaf.grad])
    assert_close([router.grad_weight], [w.grad])


def forward_backward(rank, world_size, build, x, grad_y):
    """y, grad_x, gradients of what is dense (summed) and of this rank's experts."""
    layer = build()
    kept = x.clone(), grad_y.clone()
    y, saved = layer.forward(x)
    grad_x = layer.backward(grad_y, saved)
    assert torch.equal(x, kept[0]), "x was changed"
    assert torch.equal(grad_y, kept[1]), "grad_y was changed"
    _, gradients = dense(layer)
    for gradient in gradients:
        dist.all_reduce(gradient)
    return y, grad_x, gradients, layer.experts.gradients()


def own_experts(layer, experts, per_expert=4):
    """The gradients of these experts, of all that one device has."""
    every = layer.experts.gradients()
    return [g for e in experts for g in every[per_expert * e : per_expert * (e + 1)]]


def check_equal(world_size, build, one, x, grad_y, placement=None, cut=None):
    """Ranks with rows of x and grad_y have together what one device has."""
    shares = [list(t.split(cut) if cut else t.tensor_split(world_size)) for t in (x, grad_y)]
    run = launch(forward_backward, world_size, (build, *map(PerRank, shares)))
    y, saved = one.forward(x)
    grad_x = one.backward(grad_y, saved)
    for part, expected in ((0, y), (1, grad_x)):
        assert_close([torch.cat([result[part] for result in run.results])], [expected])
    for rank, (*_, gradients, of_experts) in enumerate(run.results):
        assert_close(gradients, dense_of(one))
        assert_close(of_experts, own_experts(one, (placement or in_order(E, world_size))[rank]))
    return run


def dense_of(one):
    shared = one.shared.gradients() if one.shared else []
    return [one.router.grad_weight, *shared]


@pytest.mark.parametrize(
    ("world_size", "softmax"), [(1, "after"), (2, "before"), (3, "after"), (4, "before")]
)
def test_experts_over_ranks_equal_one_device(world_size, softmax):
    x, grad_y = data()
    how = {"softmax": softmax, "balance": 0.1, "shared": True}
    check_equal(world_size, functools.partial(spread, **how), alone(**how), x, grad_y)


@pytest.mark.parametrize("cut", [[13, 0, 0, 0], [0, 6, 0, 7], [1, 10, 1, 1]])
def test_ranks_may_have_few_tokens_or_none(cut):
    check_equal(4, spread, alone(), *data(), cut=cut)


@pytest.mark.parametrize("placement", [[[4], [0, 2], [], [3, 1]], [[], [], [2, 1, 0, 4, 3], []]])
def test_any_placement_gives_the_same(placement):
    build = functools.partial(spread, placement=placement)
    check_equal(4, build, alone(), *data(), placement=placement)


def test_an_expert_that_nobody_chooses_has_no_gradient():
    weight, experts = random_experts(E, D, HIDDEN, dtype=FLOAT64)
    x, grad_y = data()
    x[:, 0] = 1.0

    def build():
        pushed = weight.clone()
        pushed[3] = torch.tensor([-100.0, 0, 0, 0, 0, 0])
        return ExpertParallelMLP(Router(pushed, K), experts)

    run = launch(
        forward_backward, 4, (build, PerRank(x.tensor_split(4)), PerRank(grad_y.tensor_split(4)))
    )
    *_, gradients = run.results[in_order(E, 4).index([3])]
    assert all((gradient == 0).all() for gradient in gradients)


def rows_by_rank(chosen, placement):
    """rows[source][target], of all ranks' choices."""
    home = {e: rank for rank, experts in enumerate(placement) for e in experts}
    return [
        [
            sum(home[e] == target for e in each.flatten().tolist())
            for target in range(len(placement))
        ]
        for each in chosen
    ]


@pytest.mark.parametrize("world_size", [1, 3])
def test_bytes_are_four_times_the_rows_that_change_rank(world_size):
    x, grad_y = data()
    run = check_equal(world_size, spread, alone(), x, grad_y)
    (_, chosen), _ = alone().router.forward(x)
    rows = rows_by_rank(chosen.tensor_split(world_size), in_order(E, world_size))
    for rank in range(world_size):
        others = [r for r in range(world_size) if r != rank]
        away = sum(rows[rank][r] for r in others) + sum(rows[r][rank] for r in others)
        counts = 8 * (E - len(in_order(E, world_size)[rank]))
        assert run.ledger.sent_bytes("all_to_all", rank) == 2 * away * D * 8 + counts
        assert run.ledger.count("all_to_all", rank) == 5


def limited(rank, world_size, factor, x, grad_y):
    return forward_backward(
        rank, world_size, functools.partial(spread, capacity_factor=factor), x, grad_y
    )


def kept_choices(chosen, limit):
    """chosen with -1 for what is dropped: first choices first, then in the order of tokens."""
    taken, kept = [0] * E, chosen.clone()
    for choice in range(K):
        for token in range(len(chosen)):
            expert = int(chosen[token, choice])
            taken[expert] += 1
            if taken[expert] > limit:
                kept[token, choice] = -1
    return kept


@pytest.mark.parametrize("percent", [50, 105, 110, 120, 125, 130])
def test_a_capacity_is_rounded_up_from_the_factor_as_it_is_written(percent):
    for tokens, num_experts in itertools.product([*range(200), 10**5], (2, 5, 8, 256)):
        exact = Fraction(percent, 100) * tokens * 2 / num_experts
        assert capacity(tokens, 2, num_experts, percent / 100) == math.ceil(exact)


@pytest.mark.parametrize("factor", [0.5, 1.25])
def test_beyond_its_capacity_an_expert_takes_no_row_of_a_rank(factor):
    x, grad_y = data(24)
    run = launch(limited, 3, (factor, PerRank(x.split(8)), PerRank(grad_y.split(8))))
    one, dropped = alone(), 0
    for rank, (part, grad) in enumerate(zip(x.split(8), grad_y.split(8), strict=True)):
        (weights, chosen), routed = one.router.forward(part)
        kept = kept_choices(chosen, capacity(8, K, E, factor))
        dropped += int((kept < 0).sum())
        y, saved = one.experts.forward(part, weights, kept)
        (grad_x, grad_weights), _ = one.experts.backward_input(grad, saved)
        more, kept = one.router.backward_input(grad_weights, routed)
        one.router.backward_weight(kept)
        assert_close(run.results[rank][:2], [y, grad_x + more])
    assert dropped > 0
    assert_close(run.results[0][2], [one.router.grad_weight])


@given(
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(0, 2**30),
)
@settings(max_examples=5)
def test_an_exchange_sends_every_choice_once_to_a_holder(tokens, top_k, limit, seed):
    generator = torch.Generator().manual_seed(seed)
    chosen = [torch.rand(n, 4, generator=generator).argsort(dim=1)[:, :top_k] for n in tokens]
    placement = [[0, 3], [1, 3], [2]]

    def exchanges(rank, world_size, mine):
        made = make_exchange(mine, placement, capacity=limit or None)
        leaves = list(zip(made.tokens.tolist(), made.choices.tolist(), strict=True))
        return made.sends, made.receives, made.loads, made.num_dropped, leaves

    results = launch(exchanges, 3, (PerRank(chosen),)).results
    for rank, (_, receives, loads, dropped, leaves) in enumerate(results):
        assert receives == [result[0][rank] for result in results]
        assert sum(loads) == sum(receives)
        assert len(set(leaves)) == len(leaves) == chosen[rank].numel() - dropped
        assert limit or dropped == 0


def example(rank, world_size):
    """That of exchange.py's docstring, on both ranks."""
    chosen = torch.tensor([[2, 0], [0, 1], [2, -1]])
    return make_exchange(chosen, [[0, 1], [2]])


def test_the_exchange_that_is_drawn_is_the_one_that_is_made():
    for rank, made in enumerate(launch(example, 2).results):
        assert (made.tokens + 3 * made.choices).tolist() == [1, 3, 4, 0, 2]
        assert (made.sends, made.num_dropped) == ([3, 2], 0)
        assert made.order.tolist() == ([0, 1, 3, 4, 2, 5], [0, 1, 2, 3])[rank]


def expert_tp(rank, world_size, x, grad_y):
    """2 ways of experts, each split over 2 ranks, which have the same tokens."""
    names = rank_groups(world_size, tp=2, ep=2, expert_tp=2)
    groups = groups_for_this_rank(names, ["ep", "expert-tp", "dp"])
    weight, experts = random_experts(E, D, HIDDEN, dtype=FLOAT64)
    router = Router(8 * weight, K, balance=0.1, group=groups["dp"])
    how = {"group": groups["ep"], "tp": groups["expert-tp"]}
    layer = ExpertParallelMLP(router, experts, **how)
    mine = dist.get_rank(groups["dp"])
    y, saved = layer.forward(x.tensor_split(2)[mine])
    grad_x = layer.backward(grad_y.tensor_split(2)[mine], saved)
    dist.all_reduce(router.grad_weight, group=groups["dp"])
    place = mine, dist.get_rank(groups["ep"]), dist.get_rank(groups["expert-tp"])
    return place, y, grad_x, router.grad_weight, layer.experts.gradients()


def test_experts_may_be_split_by_tensor_parallelism_in_the_groups_of_lecture_11():
    x, grad_y = data()
    one = alone(balance=0.1)
    y, saved = one.forward(x)
    grad_x = one.backward(grad_y, saved)
    for (dp, ep, tp), *mine, gradients in launch(expert_tp, 4, (x, grad_y)).results:
        assert_close(
            mine, [y.tensor_split(2)[dp], grad_x.tensor_split(2)[dp], one.router.grad_weight]
        )
        expected = own_experts(one, in_order(E, 2)[ep])
        cuts = [0, 0, 1, None] * (len(expected) // 4)
        pairs = zip(expected, cuts, strict=True)
        assert_close(gradients, [g if c is None else g.tensor_split(2, c)[tp] for g, c in pairs])


def two_levels(rank, world_size, per_host, placement, x, grad_y):
    hosts = [list(range(first, first + per_host)) for first in range(0, world_size, per_host)]
    groups = groups_for_this_rank(
        {"within": hosts, "across": list(map(list, zip(*hosts, strict=True)))}
    )
    weight, experts = random_experts(E, D, HIDDEN, dtype=FLOAT64)
    how = {**groups, "placement": placement}
    layer = MixtureOfExperts(router_of(weight), HostExperts(experts, **how))
    y, saved = layer.forward(x)
    grad_x = layer.backward(grad_y, saved)
    return y, grad_x, layer.experts.gradients()


@pytest.mark.parametrize(
    ("per_host", "placement"),
    [
        *((2, None), (1, None), (4, None)),
        (2, [[4, 1], [0], [], [3, 2]]),
        (2, [[], [], [0, 1, 2, 3, 4], []]),  # a host without experts
    ],
)
def test_two_levels_give_the_values_of_one(per_host, placement):
    x, grad_y = data()
    arguments = (per_host, placement, PerRank(x.tensor_split(4)), PerRank(grad_y.tensor_split(4)))
    run = launch(two_levels, 4, arguments)
    one = alone()
    y, saved = one.forward(x)
    grad_x = one.backward(grad_y, saved)
    for part, expected in ((0, y), (1, grad_x)):
        assert_close([torch.cat([result[part] for result in run.results])], [expected])
    for rank, (*_, gradients) in enumerate(run.results):
        assert_close(
            sorted_by_sum(gradients),
            sorted_by_sum(own_experts(one, (placement or in_order(E, 4))[rank])),
        )


def nowhere(rank, world_size, x, weights, chosen, grad_y):
    """y and the gradients of what was given, over two hosts of two ranks and alone."""
    hosts = {"within": [[0, 1], [2, 3]], "across": [[0, 2], [1, 3]]}
    _, experts = random_experts(E, D, HIDDEN, dtype=FLOAT64)
    found = []
    for layer in HostExperts(experts, **groups_for_this_rank(hosts)), LocalExperts(experts):
        y, saved = layer.forward(x, weights, chosen)
        found.append([y, *layer.backward_input(grad_y, saved)[0]])
    return found


def test_over_two_levels_minus_one_goes_nowhere():
    generator = torch.Generator().manual_seed(0)
    x, grad_y = torch.randn(2, 3, D, dtype=FLOAT64, generator=generator)
    weights = torch.rand(3, 2, dtype=FLOAT64, generator=generator)
    chosen = torch.tensor([[0, E - 1], [2, -1], [-1, -1]])
    for two_levels, expected in launch(nowhere, 4, (x, weights, chosen, grad_y)).results:
        assert_close(two_levels, expected)


def sorted_by_sum(tensors):
    return sorted(tensors, key=lambda t: (t.shape, float(t.sum())))


def test_over_two_levels_a_token_crosses_once_for_all_its_experts_there():
    x, grad_y = data()
    arguments = (2, None, PerRank(x.tensor_split(4)), PerRank(grad_y.tensor_split(4)))
    run = launch(two_levels, 4, arguments)
    (_, chosen), _ = alone().router.forward(x)
    host_of = torch.tensor([0, 0, 0, 1, 1])  # of each expert: ranks 0 and 1 hold the first three
    crossing = torch.tensor([0, 0])
    for rank, mine in enumerate(chosen.tensor_split(4)):
        crossing[rank // 2] += (host_of[mine] != rank // 2).any(dim=1).sum()
    for host in (0, 1):
        ranks = 2 * host, 2 * host + 1
        events = [e for rank in ranks for e in run.ledger.select("all_to_all", rank)]
        across = [e.sent_bytes for e in events if e.group not in ((0, 1), (2, 3))]
        there, away = int(crossing[host]), int(crossing[1 - host])
        forward = there * 8 * (K + D + K) + away * 8 * D  # numbers, x and weights; rows back
        backward = there * 8 * D + away * 8 * (D + K)
        assert sum(across) == forward + backward + 2 * 8  # and from each rank a count


LOADS = [50, 3, 20, 8, 8, 1, 30, 0]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=12), st.integers(1, 5), st.integers(0, 9))
def test_placements_hold_every_expert_and_no_rank_holds_one_twice(loads, num_ranks, spare):
    num_slots = min(len(loads) + spare, len(loads) * num_ranks)
    placement = replicated(loads, num_ranks, num_slots)
    assert set().union(*placement) == set(range(len(loads)))
    assert all(len(set(experts)) == len(experts) for experts in placement)
    assert max(map(len, placement)) <= -(-num_slots // num_ranks)
    assert sum(rank_loads(placement, loads)) == pytest.approx(sum(loads))


def test_an_even_placement_is_more_even_than_numbers_and_copies_more_so():
    ordered, packed = in_order(8, 4), even(LOADS, 4)
    copied = replicated(LOADS, 4, 12)
    assert imbalance(ordered, LOADS) > imbalance(packed, LOADS) > imbalance(copied, LOADS)
    assert imbalance(packed, LOADS) == 50 * 4 / sum(LOADS) + 0  # one expert is the whole excess


def test_relabelling_moves_no_expert_that_can_stay():
    old = in_order(6, 3)
    assert relabelled(old, [[4, 5], [0, 1], [2, 3]]) == old
    new = relabelled(old, [[4, 5], [0, 2], [1, 3]])
    assert moves(old, new) == [(2, 1, 0), (1, 0, 1)]


def test_a_move_that_saves_nothing_never_pays():
    assert pays_after(10, 5, 4) == 10
    assert pays_after(10, 5, 5) == float("inf")


def moved(rank, world_size, placements):
    layer = Experts(random_experts(E, D, HIDDEN, dtype=FLOAT64)[1])
    optimizer = AdamW(layer.parameters(), lr=0.1)
    for index, parameter in enumerate(layer.parameters()):
        optimizer.mean[index] += 2 * parameter
        optimizer.square[index] += 3 * parameter
    for placement in placements:
        dist.barrier()
        move(layer, placement, optimizer)
    return layer.parameters(), optimizer.mean, optimizer.square


def test_an_expert_moves_with_its_optimizers_state():
    placements = [[[0, 4], [1, 2], [3]], [[], [0, 1, 2, 3, 4], [1]], [[4], [3, 0], [2, 1]]]
    run = launch(moved, 3, (placements,))
    _, experts = random_experts(E, D, HIDDEN, dtype=FLOAT64)
    for rank, (parameters, mean, square) in enumerate(run.results):
        expected = [t for e in placements[-1][rank] for pair in experts[e] for t in pair]
        assert_close(parameters, expected)
        assert_close(mean, [2 * t for t in expected])
        assert_close(square, [3 * t for t in expected])
    steps = zip([in_order(E, 3), *placements], placements, strict=False)
    numbers = 3 * sum(t.numel() for pair in experts[0] for t in pair)
    expected = sum(len(moves(old, new)) for old, new in steps) * numbers * 8
    assert run.ledger.sent_bytes("send") == expected


BATCHES = [(x % 16, y % 16) for x, y in text_batches(6, 7, 5)]


def trained(rank, world_size, placements):
    """Losses, and what is left of each expert's and the dense weights."""
    weights = random_gpt(16, 5, D, 2, 2, dtype=FLOAT64)

    def mixture(block):
        router, experts = random_experts(E, D, HIDDEN, seed=block + 1, dtype=FLOAT64)
        return ExpertParallelMLP(Router(8 * router, K, balance=0.05), experts)

    training = ExpertParallelTraining(with_mixtures(weights, mixture), lr=0.01)
    losses = []
    for step, (x, targets) in enumerate(BATCHES):
        if step in placements:
            training.place([placements[step]] * 2)
        losses.append(training.step(x, targets))
    parameters, _ = dense(training.model)
    return losses, parameters, [e.parameters() for e in training.experts]


def trained_alone():
    weights = random_gpt(16, 5, D, 2, 2, dtype=FLOAT64)

    def mixture(block):
        router, experts = random_experts(E, D, HIDDEN, seed=block + 1, dtype=FLOAT64)
        return MixtureOfExperts(Router(8 * router, K, balance=0.05), LocalExperts(experts))

    model = with_mixtures(weights, mixture)
    losses = train_alone(model, AdamW(model.parameters(), lr=0.01), BATCHES, next_token_loss)
    return losses, model


def check_training(world_size, placements, last):
    losses, model = trained_alone()
    run = launch(trained, world_size, (placements,))
    for step, loss in enumerate(losses):
        assert sum(result[0][step] for result in run.results) == pytest.approx(loss, abs=1e-10)
    mixtures = [layer.layers[1] for layer in model.layers[2:-2:2]]
    every = [[expert.parameters() for expert in mix.experts.layers] for mix in mixtures]
    spread_out = {id(t) for layer in every for tensors in layer for t in tensors}
    others = [p for p in model.parameters() if id(p) not in spread_out]
    for rank, (_, parameters, of_experts) in enumerate(run.results):
        assert_close(parameters, others)
        for mine, theirs in zip(of_experts, every, strict=True):
            assert_close(mine, [t for expert in last[rank] for t in theirs[expert]])


@pytest.mark.parametrize("world_size", [1, 3])
def test_six_steps_of_a_gpt_of_experts_equal_one_devices(world_size):
    check_training(world_size, {}, in_order(E, world_size))


def test_experts_that_move_and_multiply_between_steps_change_nothing():
    placements = {2: [[4, 0], [1, 2, 0], [3, 0]], 4: [[1], [0, 3, 2], [3, 4, 2]]}
    check_training(3, placements, placements[4])


def bias_moves(rank, world_size, steps):
    weight, _ = random_experts(8, D, HIDDEN, dtype=FLOAT64)
    router, (x, _) = Router(4 * weight, K), data(512)
    found = []
    for _ in range(steps):
        router.forward(x.tensor_split(world_size)[rank])
        load = router.take_load()
        found.append(float(load.max() / load.double().mean()))
        router.move_bias(load, rate=0.01)
    return found, router.bias


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_loads_are_counted_and_biases_moved_whatever_the_weights_dtype(dtype):
    router = Router(torch.eye(3, dtype=dtype), top_k=3, balance=1.0)
    _, saved = router.forward(torch.zeros(40_000, 3, dtype=dtype))
    assert float(router.balance_loss(saved)) == pytest.approx(1, abs=1e-2)  # α: all is even
    for _ in range(2000):
        router.move_bias(torch.tensor([70_001, 70_000, 70_002]))
    assert router.bias.tolist() == pytest.approx([0, 2, -2], abs=1e-3)


def test_a_bias_evens_the_load_and_stays_equal_on_all_ranks():
    one, three = (launch(bias_moves, n, (60,)).results for n in (1, 3))
    assert_close([bias for _, bias in three], [one[0][1]] * 3)
    assert three[0][0] == one[0][0]
    assert three[0][0][-1] < 1.2 < three[0][0][0]


def refuse(call):
    def on_rank(rank, world_size):
        call()

    with pytest.raises(RankError) as error:
        launch(on_rank, 2)
    return error.value.traceback


def on_two_hosts(experts):
    groups = groups_for_this_rank({"within": [[0], [1]], "across": [[0, 1]]})
    HostExperts(experts, **groups, placement=[[0, 1], [1, 2, 3, 4]])


def move_split(experts):
    layer = Experts(experts, placement=[[0, 1, 2, 3, 4], []], tp=dist.group.WORLD)
    move(layer, [[], [0, 1, 2, 3, 4]], None)


def test_refusals_name_the_numbers_that_clash():
    weight, experts = random_experts(E, D, HIDDEN)
    with pytest.raises(ValueError, match="7 of 5 experts"):
        Router(weight, 7)
    with pytest.raises(ValueError, match="'never'"):
        Router(weight, 2, softmax="never")
    with pytest.raises(ValueError, match="4 places cannot hold 5 experts on 2 ranks"):
        replicated([1] * 5, 2, 4)
    assert "no rank holds the experts [2, 4]" in refuse(
        lambda: Experts(experts, placement=[[0, 1], [3]])
    )
    assert "a placement on 1 rank, in a group of 2" in refuse(
        lambda: Experts(experts, placement=[[0, 1, 2, 3, 4]])
    )
    assert "among 5 experts, but there are 4" in refuse(
        lambda: ExpertParallelMLP(Router(weight, 2), experts[:4])
    )
    assert "each of 5 experts needs one host" in refuse(lambda: on_two_hosts(experts))
    assert "experts that are split" in refuse(lambda: move_split(experts))
    chosen = torch.tensor([[0, 3]])
    assert "expert 3, which is on no rank" in refuse(lambda: make_exchange(chosen, [[0], [1, 2]]))
    assert "on 3 ranks, in a group of 2" in refuse(lambda: make_exchange(chosen, [[0], [1], [3]]))


def test_the_labs_choices_are_as_uneven_as_asked():
    flat, steep = (lab.loads_of(lab.popular(4000, 8, 2, skew), 8) for skew in (0, 1))
    assert max(flat) < 1.1 * 1000
    assert max(steep) > 2 * 1000
    assert sum(flat) == sum(steep) == 8000


def test_a_watched_step_is_drawn_from_its_barrier_on():
    chosen = lab.popular(16, 4, 2, 1.0)
    watched = lab.watch(chosen, [[[0, 1], [2, 3]], [[3, 1], [2, 0]]], 1e-4)
    assert (len(watched.steps), len(watched.moves)) == (2, 1)
    for number in (0, 1):
        drawn = pictures.step_timeline(watched, number)
        assert "waits" in drawn.texts[0].get_text()
        assert {text.get_text() for text in drawn.axes[0].texts} == {"forward", "backward"}


def test_the_journeys_picture_frames_a_token_and_sorts_before_it_sends():
    figure = pictures.travel(torch.tensor([[3, 0], [2, 1], [1, 0], [3, 2]]), [[0, 1], [2, 3]])
    shown = [text.get_text() for axes in figure.axes for text in axes.texts]
    numbers = [text for text in shown if text.isdigit()]
    assert numbers == [*"3021", *"1032", *"0123", *"0123", *"0101", *"2323"]
    frames = [box for box in figure.axes[0].patches if box.get_facecolor()[3] == 0]
    assert len(frames) == 4


@pytest.mark.network
@pytest.mark.parametrize("two_levels", [False, True])
def test_the_kernel_counts_the_bytes_that_the_formula_predicts(two_levels):
    chosen = lab.popular(128, 8, 4, 0.5)
    run, _ = lab.cross(two_levels, chosen, 8, 256, VirtualNetwork(2, 2, 50e6))
    predicted = lab.STEPS * lab.crossing_bytes(chosen, 8, 256)[two_levels]
    assert 1 <= run.traffic.hosts[0].sent / predicted < 1.15


def test_experts_placed_by_load_train_as_experts_that_stay():
    weights, batches = (
        random_gpt(16, 5, D, 2, 1),
        [(x % 16, y % 16) for x, y in text_batches(4, 4, 5)],
    )
    stay, _, uneven = learning.train(weights, batches, 2, E, K)
    move, _, evened = learning.train(weights, batches, 2, E, K, every=1)
    assert move == pytest.approx(stay, abs=1e-5)
    assert evened[0] == uneven[0]
    assert evened != uneven  # they moved; on four steps of a toy it is chance what that evens
    assert learning.train_alone_too(weights, batches, E, K) == pytest.approx(stay, abs=1e-5)


def test_the_rows_that_are_drawn_are_those_that_arrive():
    chosen, placement = lab.popular(10, 4, 2, 1.0), [[0, 2], [2, 1], [3, 0]]

    def loads(rank, world_size, mine):
        return make_exchange(mine, placement).loads

    run = launch(loads, 3, (PerRank(list(chosen.tensor_split(3))),))
    drawn = pictures.arriving(chosen, placement)
    assert [list(rows.values()) for rows in drawn] == run.results


def test_the_explorer_draws_three_placements_and_refuses_what_cannot_be():
    figure, text = pictures.draw_loads(1.0, 16, 2, 4, 4)
    assert [("× the mean" in axes.get_title(loc="left")) for axes in figure.axes] == [True] * 3
    assert "times as long as if even" in text
    explorer = pictures.load_explorer()
    assert explorer._repr_mimebundle_()[0]["image/png"]


def summed_copies(rank, world_size, placement):
    layer = Experts(random_experts(E, D, HIDDEN, dtype=FLOAT64)[1], placement=placement)
    for gradient in layer.gradients():
        gradient += rank + 1
    sum_copies(layer)
    return [float(expert.gradients()[0][0, 0]) for expert in layer.layers]


def test_copies_gradients_are_summed_by_two_messages_for_each_further_copy():
    placement = [[0, 1], [1, 2, 4], [4, 3, 1]]
    run = launch(summed_copies, 3, (placement,))
    assert run.results == [[1, 6], [6, 2, 5], [5, 3, 6]]  # the sums of their holders' numbers
    expert_bytes = 8 * (2 * D * HIDDEN + D + HIDDEN)
    assert run.ledger.sent_bytes() == 2 * 3 * expert_bytes  # expert 1 has two more, 4 one
