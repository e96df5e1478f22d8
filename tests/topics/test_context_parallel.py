"""Attention over shares of a sequence equals one device's, sends what the formulas say, and holds
no more than its blocks; a GPT with a cp axis trains as on one device."""

from __future__ import annotations

import functools
import re
from functools import partial

import pytest
import torch
import torch.distributed as dist
from cases import parted
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from byhand import RankError, launch
from byhand import context_parallel as ways
from byhand.communication_cost import AlphaBeta
from byhand.context_parallel import (
    CONTEXT_GROUPS,
    ContextHybrid,
    context_parallel_parts,
    lab,
    ring_attention,
    ring_attention_backward,
    share,
)
from byhand.context_parallel.blocks import BY_HAND, block_attention, merge
from byhand.context_parallel.cost import (
    WAYS,
    hides_from,
    imbalance,
    mixed_sent_bytes,
    seconds,
    sent_bytes,
)
from byhand.context_parallel.fused import FUSED
from byhand.context_parallel.lab import (
    IN_USE,
    asleep,
    compare_bytes,
    furthest,
    heads_picture,
    random_inputs,
    run_attention,
    seconds_bars,
    tiles_of,
    way_home,
)
from byhand.context_parallel.places import LAYOUTS, pairs, positions, seen
from byhand.context_parallel.ring import Homeward, around
from byhand.figures import attention_map
from byhand.hybrid_parallel import chunks_of
from byhand.hybrid_parallel.lab import train_on_one_device
from byhand.model.attention import attention, attention_backward
from byhand.model.gpt import Parts, gpt_layers, gpt_weights, next_token_loss, random_gpt
from byhand.model.mlp import MLP
from byhand.model.optimizers import SGD
from byhand.model.text import text_batches
from byhand.model.training import train_alone
from byhand.pipeline_schedules import one_forward_one_backward
from byhand.rank_groups import rank_groups
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.tensor_parallel.gpt import tensor_parallel_parts

WORLDS = (1, 2, 3, 4)
B, H, S, D = 2, 12, 24, 5  # heads and positions that 1 to 4 ranks divide, and twice as many chunks
CASES = [(way, layout) for way in WAYS for layout in LAYOUTS if (way, layout)[0] != "ulysses"]
CASES.append(("ulysses", "contiguous"))
FLOAT64 = {"dtype": torch.float64}


def tensors(num_heads=H, num_positions=S, **look):
    """q, k, v and grad_y of the whole sequence."""
    generator = torch.Generator().manual_seed(0)
    shape = (4, B, num_heads, num_positions, D)
    return torch.randn(shape, generator=generator, **{**FLOAT64, **look}).unbind()


def one_device(q, k, v, grad_y, causal):
    """y, grad_q, grad_k, grad_v, by torch and autograd."""
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    y = F.scaled_dot_product_attention(*leaves, is_causal=causal)
    y.backward(grad_y)
    return [y.detach(), *(leaf.grad for leaf in leaves)]


def both_ways(rank, world_size, inputs, way, layout, causal):
    """This rank's share of y, grad_q, grad_k and grad_v; nothing it was given may change."""
    forward, backward = (getattr(ways, f"{way}_attention{half}") for half in ("", "_backward"))
    q, k, v, grad_y = mine = [share(tensor, 2, layout=layout) for tensor in inputs]
    before = [tensor.clone() for tensor in mine]
    how = {} if way == "ulysses" else {"layout": layout}
    y, saved = forward(q, k, v, causal=causal, **how)
    dist.barrier()  # sends nothing, and tells forward from backward in the ledger
    found = [y.clone(), *backward(grad_y, saved)]
    assert all(map(torch.equal, mine, before)), "an argument was changed"
    return found


def check(results, expected, layout, tolerance=1e-10):
    num_positions = expected[0].shape[2]
    for rank, found in enumerate(results):
        here = positions(num_positions, rank, len(results), layout)
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs[:, :, here], rtol=tolerance, atol=tolerance)


# Values


CAUSAL_OR_NOT = [(*case, causal) for case in CASES for causal in (True, False)]


@functools.cache
def every_way(world_size):
    """What `both_ways` found, by case and rank, and what was called in each half: one launch."""

    def all_of_them(rank, world_size, inputs):
        found = []
        for case in CAUSAL_OR_NOT:
            dist.barrier()
            found.append(both_ways(rank, world_size, inputs, *case))
        return found

    run = launch(all_of_them, world_size, (tensors(),))
    halves = parted(run)
    found = zip(*run.results, strict=True), zip(halves[1::2], halves[2::2], strict=True)
    return dict(zip(CAUSAL_OR_NOT, zip(*found, strict=True), strict=True))


@pytest.mark.parametrize("world_size", WORLDS)
@pytest.mark.parametrize(("way", "layout", "causal"), CAUSAL_OR_NOT)
def test_values_are_one_devices_and_counted_bytes_the_formulas(way, layout, causal, world_size):
    inputs = tensors()
    results, halves = every_way(world_size)[way, layout, causal]
    check(results, one_device(*inputs, causal), layout)
    expected = pytest.approx(sent_bytes(way, world_size, inputs[1].nbytes))
    for rank in range(world_size):
        assert tuple(half.sent_bytes(rank=rank) for half in halves) == expected


@pytest.mark.parametrize("way", ["ring", "ulysses"])
def test_large_scores_do_not_overflow_and_float32_is_kept(way):
    q, *others = tensors(dtype=torch.float32)
    inputs = (100 * q, *others)
    run = launch(both_ways, 4, (inputs, way, "contiguous", True))
    assert run.results[0][0].dtype == torch.float32
    expected = one_device(*(tensor.double() for tensor in inputs), True)
    check(run.results, [tensor.float() for tensor in expected], "contiguous", 2e-3)


def apart(found, expected):
    """The norm of the difference, as a share of the expected one's."""
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("kernel", [BY_HAND, FUSED])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_ring_in_sixteen_bits_is_about_as_exact_as_one_device(dtype, kernel):
    def on_rank(rank, world_size, inputs):
        q, k, v, grad_y = (share(tensor, 2) for tensor in inputs)
        y, saved = ring_attention(q, k, v, kernel=kernel)
        return [y, *ring_attention_backward(grad_y, saved)]

    inputs = [tensor.to(dtype) for tensor in tensors(2, 512)]
    y, saved = attention(*inputs[:3], causal=True)
    alone = [y, *attention_backward(inputs[3], saved)]
    exact = one_device(*(tensor.double() for tensor in inputs), True)
    for rank, results in enumerate(launch(on_rank, 4, (inputs,)).results):
        here = positions(512, rank, 4, "zigzag")
        for found, theirs, right in zip(results, alone, exact, strict=True):
            assert found.dtype == dtype
            theirs, right = theirs[:, :, here], right[:, :, here]
            assert apart(found, right) < 1.5 * apart(theirs, right)


@pytest.mark.parametrize("way", WAYS)
def test_shares_that_are_views_are_as_good(way):
    def on_rank(rank, world_size, inputs):
        forward, backward = (getattr(ways, f"{way}_attention{half}") for half in ("", "_backward"))
        shares = (share(tensor, 2, layout=layout).transpose(1, 2) for tensor in inputs)
        *mine, grad_y = (tensor.contiguous().transpose(1, 2) for tensor in shares)
        y, saved = forward(*mine, **({} if way == "ulysses" else {"layout": layout}))
        return [y, *backward(grad_y, saved)]

    inputs, layout = tensors(), "contiguous" if way == "ulysses" else "zigzag"
    check(launch(on_rank, 2, (inputs,)).results, one_device(*inputs, True), layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ulysses_within_and_a_ring_between_equal_one_device(layout):
    def on_rank(rank, world_size, inputs):
        lists = {"inner": [[0, 1], [2, 3]], "outer": [[0, 2], [1, 3]]}
        groups = groups_for_this_rank(lists)
        inner, outer = groups["inner"], groups["outer"]
        shared = [share(share(t, 2, outer, layout), 2, inner, "contiguous") for t in inputs]
        dist.barrier()
        y, saved = ways.mixed_attention(*shared[:3], inner, outer, layout=layout)
        dist.barrier()
        grads = ways.mixed_attention_backward(shared[3], saved)
        expected = one_device(*inputs, True)
        return [
            float((a - share(share(b, 2, outer, layout), 2, inner, "contiguous")).abs().max())
            for a, b in zip((y, *grads), expected, strict=True)
        ]

    inputs = tensors()
    run = launch(on_rank, 4, (inputs,))
    assert max(map(max, run.results)) < 1e-10
    in_pairs, in_ring = mixed_sent_bytes(2, 2, inputs[1].nbytes)
    forward = parted(run)[-2]
    assert [forward.sent_bytes(op, 0) for op in ("all_to_all", "send")] == [in_pairs, in_ring]


@pytest.mark.parametrize("causal", [True, False])
def test_the_ring_is_torchs_own_to_rounding(causal):
    """Torch's private form; its public context_parallel fails on a CPU."""

    def on_rank(rank, world_size, inputs):
        from torch import ops
        from torch.distributed.tensor.experimental._context_parallel import _attention as theirs

        theirs._cp_options.enable_load_balance = causal
        theirs._cp_options.convert_to_f32 = False
        layout = "zigzag" if causal else "contiguous"
        q, k, v, grad_y = (share(tensor, 2, layout=layout) for tensor in inputs)
        aten, group = ops.aten, dist.group.WORLD
        how = {"is_causal": causal, "dropout_p": 0.0}
        forward = aten._scaled_dot_product_flash_attention_for_cpu
        y, lse, *_ = theirs._templated_ring_attention(group, 2, forward, q, k, v, **how)
        backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
        grads = theirs._templated_ring_attention_backward(
            group, 2, backward, grad_y, "grad_out", q, k, v, y, lse, **how
        )
        found = []
        for kernel in (BY_HAND, FUSED):
            mine, saved = ring_attention(q, k, v, causal=causal, layout=layout, kernel=kernel)
            ours = mine, saved.lse.squeeze(-1), *ways.ring_attention_backward(grad_y, saved)
            pairs = zip(ours, (y, lse, *grads[:3]), strict=True)
            found += [float((a - b).abs().max()) for a, b in pairs]
        return found

    for world_size in (2, 4):
        found = launch(on_rank, world_size, (tensors(),)).results
        assert max(map(max, found)) < 1e-10


# Blocks and places


def test_two_blocks_merge_into_attention_over_both():
    q, k, v, _ = tensors()
    k = 300 * k  # exp of such scores is infinite
    halves = [block_attention(q, k[:, :, at], v[:, :, at], False) for at in (slice(7), slice(7, S))]
    y, lse = merge(*halves[0], *halves[1])
    whole, whole_lse = block_attention(q, k, v, False)
    torch.testing.assert_close(y, whole, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(lse, whole_lse, rtol=1e-12, atol=1e-12)


def test_a_side_that_has_seen_nothing_adds_nothing():
    q, k, v, _ = tensors()
    y, lse = block_attention(q, k, v, False)
    nothing = torch.zeros_like(y), torch.full_like(lse, -torch.inf)
    assert torch.equal(merge(*nothing, y, lse)[0], y)
    assert torch.equal(merge(y, lse, *nothing)[0], y)


@given(st.integers(1, 6), st.integers(1, 3), st.sampled_from(LAYOUTS), st.booleans())
def test_the_rectangles_cover_every_pair_that_is_seen_once(n, length, layout, causal):
    length, total = 2 * length, 2 * length * n
    places = [positions(total, rank, n, layout) for rank in range(n)]
    assert sorted(place for some in places for place in some) == list(range(total))
    covered = []
    for rank in range(n):
        for owner in range(n):
            if part := seen(rank, owner, length, layout, causal):
                found = [
                    (query, key)
                    for query in places[rank][part.queries]
                    for key in places[owner][part.keys]
                    if not part.masked or key <= query
                ]
                assert len(found) == pairs(rank, owner, length, layout, causal)
                covered += found
    every = [(i, j) for i in range(total) for j in range(total) if j <= i or not causal]
    assert sorted(covered) == every


@given(st.integers(1, 8))
def test_zigzag_gives_every_rank_the_same_work_in_every_round(n):
    for number in range(n):
        assert len({pairs(r, (r - number) % n, 16, "zigzag", True) for r in range(n)}) == 1
    assert imbalance(n, "zigzag") == pytest.approx(1, abs=1e-3)
    assert imbalance(n, "contiguous") == pytest.approx((2 * n - 1) / n, abs=1e-3)


# Messages


def test_the_next_block_is_under_way_while_one_is_worked_on():
    def on_rank(rank, world_size):
        owners = []
        for owner, block in around(torch.full((8,), float(rank))):
            assert bool((block == owner).all())
            torch.ones(500, 500) @ torch.ones(500, 500)
            owners.append(owner)
        return owners

    run = launch(on_rank, 4)
    assert run.results == [[(r - t) % 4 for t in range(4)] for r in range(4)]
    for rank in range(4):
        sends = run.ledger.select("send", rank)
        assert len(sends) == 3
        assert all(event.overlapped for event in sends)


@pytest.mark.parametrize("world_size", WORLDS)
def test_sums_come_home_in_one_message_less_than_there_are_ranks(world_size):
    def on_rank(rank, world_size):
        home = Homeward()
        for number in range(world_size):
            owner = (rank - number) % world_size
            home.add(torch.tensor([10.0**rank * (owner + 1)]))
        return float(home.arrived())

    run = launch(on_rank, world_size)
    every = sum(10.0**rank for rank in range(world_size))
    assert run.results == [every * (rank + 1) for rank in range(world_size)]
    assert run.ledger.count("send", 0) == world_size - 1


# Memory


def peak(way, world_size, num_positions, layout="contiguous"):
    inputs = tensors(4, num_positions)
    run = launch(both_ways, world_size, (inputs, way, layout, True), memory=True)
    return max(run.peak_bytes)


def scores_held(way, num_ranks, num_positions):
    """Of 4 heads, by the table of byhand.context_parallel.cost."""
    s = num_positions / num_ranks
    if way == "ulysses":
        return 4 / num_ranks * num_positions**2
    return 4 * s * (num_positions if way == "scores" else s)


def test_the_largest_thing_held_is_the_scores_of_the_formula():
    for way, world_size in (("ulysses", 2), ("ring", 2), ("scores", 2), ("ring", 4)):
        lengths = 128 * world_size, 64 * world_size
        more, less = (scores_held(way, world_size, length) for length in lengths)
        counted = peak(way, world_size, lengths[0]) - peak(way, world_size, lengths[1])
        assert 1.9 < counted / (B * 8 * (more - less)) < 5, (way, world_size)


# What cannot be done


@pytest.mark.parametrize(
    ("num_positions", "layout", "words"),
    [
        (10, "zigzag", "10 positions cannot be shared out zigzag over 4 ranks: they must be a"),
        (10, "contiguous", "multiple of 1 · 4"),
        (8, "striped", 'no layout \'striped\': choose "zigzag" or "contiguous"'),
    ],
)
def test_positions_that_do_not_divide_are_told(num_positions, layout, words):
    def on_rank(rank, world_size):
        share(torch.zeros(2, num_positions), 1, layout=layout)

    with pytest.raises(RankError, match=re.escape(words)):
        launch(on_rank, 4)


def test_heads_that_do_not_divide_are_told():
    def on_rank(rank, world_size):
        ways.ulysses_attention(*torch.zeros(3, 1, 2, 4, 5))

    with pytest.raises(RankError, match="2 heads cannot be split over 4 ranks"):
        launch(on_rank, 4)


def test_a_zigzag_share_has_an_even_number_of_positions():
    with pytest.raises(RankError, match="a zigzag share of 3 positions has no equal chunks"):
        launch(lambda rank, world_size: ring_attention(*torch.zeros(3, 1, 1, 3, 2)), 2)


# The GPT

MOMENTUM = partial(SGD, lr=0.5, momentum=0.9)  # AdamW would hide gradients of a wrong scale
LAYOUTS_OF_8 = [
    (1, 2, 1, "zigzag"),
    (2, 2, 1, "zigzag"),
    (1, 4, 2, "contiguous"),
    (2, 2, 2, "zigzag"),
]


def text(num_steps=3, rows=8):
    generator = torch.Generator().manual_seed(0)
    return list(torch.randint(7, (num_steps, 2, rows, 8), generator=generator))


def train(rank, world_size, weights, some, cases):
    """For each (tp, cp, pp, layout): the losses, and the distance of the weights to `expected`."""
    weights, expected = weights
    told = []
    for tp, cp, pp, layout in cases:
        lists = rank_groups(world_size, tp=tp, cp=cp, pp=pp)
        groups = groups_for_this_rank(lists, CONTEXT_GROUPS)
        schedule = one_forward_one_backward(pp, 2)
        parts = tensor_parallel_parts(groups["tp"])
        parts = context_parallel_parts(parts, groups["cp"], layout)
        chunks, shape = chunks_of(weights, groups, parts=parts), weights.positions.shape
        model = ContextHybrid(chunks, groups, schedule, shape, MOMENTUM, 0.3, layout=layout)
        losses = [float(model.step(x, targets).loss) for x, targets in some]
        there = [p for chunk in chunks_of(expected, groups) for p in chunk.parameters()]
        pairs = zip(model.parameters(), there, strict=True)
        told.append((losses, max(float((a - b).abs().max()) for a, b in pairs)))
    return told


def trained_alone(weights, some):
    model = MLP(gpt_layers(weights))
    losses = train_alone(model, MOMENTUM(model.parameters()), some, next_token_loss, 0.3)
    return losses, gpt_weights(model.layers, weights.num_heads)


def check_gpt(world_size, cases):
    weights, some = random_gpt(7, 8, 16, 4, 2, dtype=torch.float64), text()
    losses, expected = trained_alone(weights, some)
    run = launch(train, world_size, ((weights, expected), some, cases), deadline=120)
    for told in run.results:
        for case, (found, distance) in zip(cases, told, strict=True):
            assert found == pytest.approx(losses, abs=1e-10), case
            assert distance < 1e-10, case


def test_the_gpt_with_a_cp_axis_trains_as_on_one_device():
    check_gpt(8, LAYOUTS_OF_8)


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_context_parallelism_alone_trains_the_gpt_as_on_one_device(world_size):
    check_gpt(world_size, [(1, world_size, 1, layout) for layout in LAYOUTS])


def test_a_share_of_the_gpt_holds_the_layers_it_held():
    def on_rank(rank, world_size, weights):
        layers = MLP(gpt_layers(weights, parts=context_parallel_parts(Parts())))
        return layers.parameters(), layers.placements

    weights = random_gpt(7, 8, 16, 4, 2)
    parameters, placements = launch(on_rank, 1, (weights,)).results[0]
    alone = MLP(gpt_layers(weights))
    assert placements == alone.placements
    assert all(map(torch.equal, parameters, alone.parameters()))


# Time, by formula; the lab


FREE, SLOW = AlphaBeta(0.0, 0.0), AlphaBeta(0.0, 1e-3)


@pytest.mark.parametrize("n", WORLDS)
def test_where_messages_are_free_every_way_is_a_perfect_split(n):
    for way in ("ring", "gathered", "ulysses"):
        assert seconds(way, n, 1.0, 100, FREE) == pytest.approx(1 / n, rel=2e-3)
    contiguous = seconds("ring", n, 1.0, 100, FREE, "contiguous")
    assert contiguous == pytest.approx(imbalance(n, "contiguous") / n)


def test_where_messages_are_slow_a_ring_and_gathering_take_as_long_as_their_bytes():
    forward = sent_bytes("ring", 4, 100)[0]
    assert seconds("ring", 4, 0.0, 100, SLOW) == pytest.approx(forward * SLOW.beta)
    assert seconds("gathered", 4, 0.0, 100, SLOW) == pytest.approx(forward * SLOW.beta)
    forward = sent_bytes("ulysses", 4, 100, queries_per_key=3)[0]
    took = seconds("ulysses", 4, 0.0, 100, SLOW, queries_per_key=3)
    assert took == pytest.approx(forward * SLOW.beta)


@pytest.mark.parametrize(("width", "g"), [(128, 1), (4096, 1), (4096, 8)])
def test_a_rings_messages_hide_from_the_length_of_the_formula_whatever_the_width(width, g):
    n, rate, link = 4, 4e14, 50e9
    for factor, hidden in ((0.9, False), (1.1, True)):
        length = n * factor * hides_from(rate, link, queries_per_key=g)
        compute = 2 * length**2 * width / rate
        took = seconds("ring", n, compute, 2 * length * width / g, AlphaBeta(0.0, 1 / link))
        assert (took < 1.01 * compute / n) == hidden


def test_a_way_that_does_not_exist_is_told():
    with pytest.raises(ValueError, match="no way 'star'; there are ring, gathered, scores, ulys"):
        sent_bytes("star", 4, 100)
    with pytest.raises(ValueError, match=r"no seconds of scores.* ask for ring, gathered, ulysses"):
        seconds("scores", 4, 1.0, 100, FREE)


def test_every_way_sleeps_at_least_as_long_as_its_share_of_the_work():
    measured = asleep.time_ways(2, [64, 128], lambda length: length * 1e-4, None, 1)
    assert list(measured) == ["ring", "gathered", "ulysses"]
    for found in measured.values():
        assert all(t >= length * 0.5e-4 for t, length in zip(found, [64, 128], strict=True))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_map_shows_all_that_is_computed_and_who_has_most_to_do(n):
    for layout in LAYOUTS:
        some = tiles_of(n, layout)
        areas = [(q[1] - q[0]) * (k[1] - k[0]) / (2 if half else 1) for *_, q, k, half in some]
        assert sum(areas) == 840**2 / 2
        figure = attention_map({layout: some}, "a title")
        told = [text.get_text() for text in figure.axes[1].texts if text.get_text()]
        busiest = f"rank {n - 1}: {imbalance(n, layout):.2f} ×"
        assert told[-1] == busiest
        assert len(told) == n


def test_the_lectures_bytes_are_those_predicted():
    title = "On 2 ranks Ulysses sends 1/1.5 of the ring's bytes"
    assert compare_bytes(2).texts[0].get_text() == title


def test_the_lectures_pictures_show_what_ranks_hold():
    def texts(axes):
        return [text.get_text() for text in axes.texts if text.get_text()]

    assert texts(way_home(3).axes[0]) == ["own", "1", "2", "2 + own"] * 3  # terms, by round
    met = [[0, 2, 1], [1, 0, 2], [2, 1, 0]]
    assert texts(lab.keys_travel(met).axes[0])[:3] == ["block 0", "block 2", "block 1"]
    before, _, after = heads_picture(2, 4).axes
    assert sorted(texts(before)) == sorted(texts(after)) == ["0"] * 4 + ["1"] * 4
    assert texts(after) == ["0"] * 4 + ["1"] * 4, "rank 0 has the first heads whole"


def test_the_lectures_bars_name_the_fastest_and_its_difference_sees_a_wrong_gradient():
    seconds = {"ring": [3.0, 1.0], "gathered": [4.0, 3.0], "ulysses": [2.0, 2.0]}
    title = "Fastest: Ulysses at 8, ring at 16 positions"
    assert seconds_bars([8, 16], [1, 1], seconds, seconds).texts[0].get_text() == title
    inputs = random_inputs(8, dtype=torch.float64)
    run = run_attention(IN_USE["ring"], 2, inputs)
    assert furthest(run, inputs) < 1e-12
    run.results[1][3] += 0.5
    assert 0.4 < furthest(run, inputs) < 0.6


def test_one_device_beside_it_tells_each_of_the_lectures_mistakes_in_the_first_step():
    weights, batches = random_gpt(128, 16, 8, 2, 1), text_batches(2, 4, 16)
    alone = train_on_one_device(weights, batches, 5e-3)
    assert lab.train(2, weights, batches) == pytest.approx(alone, abs=1e-5)
    for mistake in lab.MISTAKES:
        assert abs(lab.train(2, weights, batches, mistake)[0] - alone[0]) > 1e-4, mistake


@pytest.mark.parametrize(("inner", "leaves"), [(1, 1.875), (2, 1.75), (4, 1.5), (8, 1.0)])
def test_a_mix_sends_less_between_two_hosts_of_eight(inner, leaves):
    _, by_each = mixed_sent_bytes(inner, 16 // inner, 1.0)
    assert inner * by_each == leaves  # as many rings, each with one rank a host that sends out
