"""Stem 04: formulas against rounds of messages, a fit against the truth, times against a script."""

import json
import math
import random
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from byhand import VirtualNetwork, launch
from byhand.communication_cost import (
    ALGORITHMS,
    ALL_REDUCES,
    COLLECTIVES,
    AlphaBeta,
    Cost,
    bus_bandwidth,
    bus_factor,
    cost,
    crossover,
    literature_formula,
    timing,
)
from byhand.communication_cost.fit import fit
from byhand.communication_cost.hardware import LINKS, NCCL_SECONDS, table
from byhand.communication_cost.lab import (
    CALLS,
    SIZES,
    sweep,
    sweep_of,
)
from byhand.communication_cost.lab.pictures import (
    cost_explorer,
    draw_costs,
    draw_overlap,
    draw_roofline,
    draw_two_hosts,
    draw_ways,
)
from byhand.communication_cost.networks import (
    TOPOLOGIES,
    depth_first,
    double_ring,
    renumbered,
    switch,
)
from byhand.communication_cost.rounds import rounds
from byhand.communication_cost.timing import Timing, take_turns
from byhand.figures import every_value, seconds_by_size
from byhand.figures.style import seconds_text
from byhand.runtime.ledger import sent_bytes

LINE = AlphaBeta(alpha=3e-5, beta=2e-10)

# Formulas


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=40)
@given(p=st.integers(1, 33), m=st.integers(0, 10**9), hosts=st.integers(1, 4))
def test_a_formula_is_what_its_rounds_of_messages_cost_on_a_switch(algorithm, p, m, hosts):
    per_host = p // hosts if p % hosts == 0 else 1
    formula = LINE.seconds(algorithm, p, m, per_host)
    priced = switch(p, LINE).seconds(algorithm, m, per_host)
    assert formula == pytest.approx(priced, rel=1e-12)


@pytest.mark.parametrize("name", ["ring", "double_ring", "halving_doubling", "direct"])
@pytest.mark.parametrize("p", [2, 4, 8])
def test_the_thriftiest_algorithms_send_from_every_rank_what_the_ledger_counts(name, p):
    sent = [0.0] * p
    for at_once in rounds(name, p, 1 << 20):
        for message in at_once:
            sent[message.sender] += message.num_bytes
    assert sent == [sent_bytes("all_reduce", 1 << 20, tuple(range(p)), 0)] * p


@pytest.mark.parametrize("name", ALL_REDUCES)
@pytest.mark.parametrize("p", [1, 2, 3, 5, 6, 8, 12])
def test_every_all_reduce_brings_every_rank_what_every_other_had(name, p):
    knows = [{rank} for rank in range(p)]
    for at_once in rounds(name, p, 1.0, ranks_per_host=2 if p % 2 == 0 else 1):
        before = [set(known) for known in knows]
        for sender, receiver, _ in at_once:
            knows[receiver] |= before[sender]
    assert all(known == set(range(p)) for known in knows)


def test_the_ring_costs_two_rounds_of_each_step_and_less_than_two_tensors():
    assert cost("ring", 8, 800) == Cost(14, 1400)
    assert cost("ring", 8, 800) == cost("reduce_scatter", 8, 800) + cost("all_gather", 8, 800)
    assert cost("ring", 8, 800) == cost("all_reduce", 8, 800)


def test_two_trees_move_half_of_what_one_tree_moves():
    one, two = (cost(name, 15, 1e6) for name in ("tree", "double_tree"))
    assert two.num_bytes == one.num_bytes / 2
    assert two.rounds == one.rounds


@pytest.mark.parametrize(("first", "second"), [("ring", "recursive_doubling"), ("tree", "ring")])
@pytest.mark.parametrize("p", [4, 16, 64])
def test_at_the_crossover_two_algorithms_take_equally_long(first, second, p):
    size = crossover(LINE, first, second, p)
    one, two = (LINE.seconds(name, p, size) for name in (first, second))
    assert one == pytest.approx(two)
    small, large = (
        min(first, second, key=lambda name, now=now: LINE.seconds(name, p, now))
        for now in (size / 2, size * 2)
    )
    assert {small, large} == {first, second}
    assert large == "ring"


def test_where_one_algorithm_always_wins_there_is_no_crossover():
    assert crossover(LINE, "ring", "halving_doubling", 8) is None
    assert crossover(LINE, "ring", "recursive_doubling", 2) is None


def test_the_formula_of_the_literature_grows_with_the_ranks_and_the_rings_does_not():
    growth = [
        literature_formula(p, 1e6).num_bytes / literature_formula(2, 1e6).num_bytes for p in (8, 64)
    ]
    assert growth == [4, 32]
    assert cost("ring", 64, 1e6).num_bytes < 2 * cost("ring", 2, 1e6).num_bytes


def test_bus_bandwidth_has_the_factors_of_nccl_tests():
    assert bus_bandwidth("all_reduce", 4, 4e9, 0.5) == 12e9
    factors = {name: bus_factor(name, 4) for name in COLLECTIVES}
    for name in ("all_gather", "reduce_scatter", "all_to_all", "scatter", "gather"):
        assert factors[name] == 3 / 4
    assert factors["broadcast"] == factors["reduce"] == factors["send"] == 1


@pytest.mark.parametrize("arguments", [("rings", 4, 1), ("ring", 0, 1), ("ring", 4, -1)])
def test_what_no_cost_has_is_refused_with_the_numbers_that_clash(arguments):
    with pytest.raises(ValueError, match=r"unknown algorithm|at least 1|0 bytes or more"):
        cost(*arguments)
    with pytest.raises(ValueError, match="6 ranks do not fill hosts of 4"):
        cost("hierarchical", 6, 1, ranks_per_host=4)


# Networks


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("p", [2, 5, 8])
def test_every_message_arrives_over_links_that_join_its_ends(name, p):
    network = TOPOLOGIES[name](p, LINE)
    for a in range(p):
        for b in set(range(p)) - {a}:
            way = [hop.link for hop in network.way(a, b)]
            assert way[0][1] == a
            assert way[-1][2] == b
            if name != "switch":
                assert all(x[2] == y[1] for x, y in pairwise(way))


def test_the_double_ring_pays_off_where_links_run_both_ways():
    one, two = (double_ring(8, AlphaBeta(0, 1)).seconds(a, 8.0) for a in ("ring", "double_ring"))
    assert two == one / 2
    assert switch(8, AlphaBeta(0, 1)).seconds("double_ring", 8.0) == one


# The fit


def noisy(line, algorithm, p, sizes, seed, bad=0):
    draw = random.Random(seed)
    costs_of = [cost(algorithm, p, size) for size in sizes]
    seconds = [line.of(each) * draw.lognormvariate(0, 0.05) for each in costs_of]
    for place in draw.sample(range(len(sizes)), bad):
        seconds[place] *= draw.uniform(3, 30)
    return costs_of, seconds


@pytest.mark.parametrize("seed", range(8))
def test_two_bad_measurements_of_twelve_hardly_move_the_fit(seed):
    costs_of, seconds = noisy(LINE, "ring", 4, [4**k for k in range(2, 14)], seed, bad=2)
    found = fit(costs_of, seconds).line
    assert found.alpha == pytest.approx(LINE.alpha, rel=0.25)
    assert found.beta == pytest.approx(LINE.beta, rel=0.25)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    held = 0
    for seed in range(20):
        costs_of, seconds = noisy(LINE, "ring", 4, [4**k for k in range(2, 14)], seed)
        found = fit(costs_of, seconds)
        new, draw = cost("ring", 4, 3e6), random.Random(seed + 999)
        measured = LINE.of(new) * draw.lognormvariate(0, 0.05)
        expected = found.predict(new)
        held += expected.least <= measured <= expected.most
    assert held >= 0.8 * 20


def test_a_doubtful_measurement_weighs_less():
    costs_of, seconds = noisy(LINE, "ring", 4, [4**k for k in range(2, 14)], seed=2)
    seconds = [t * (1.5 if k < 6 else 1) for k, t in enumerate(seconds)]
    doubts = [0.5] * 6 + [0.02] * 6
    alike, weighted = (fit(costs_of, seconds, d).line for d in (None, doubts))
    assert abs(weighted.beta - LINE.beta) <= abs(alike.beta - LINE.beta) + 1e-12


def test_the_same_measurements_give_the_same_fit_and_nothing_comes_out_negative():
    costs_of, seconds = noisy(AlphaBeta(0.0, 1e-9), "ring", 4, [4**k for k in range(8)], seed=3)
    found, again = (fit(costs_of, seconds) for _ in range(2))
    assert found.line == again.line
    assert (found.resampled == again.resampled).all()
    assert found.resampled.min() >= 0


@pytest.mark.parametrize(
    ("sizes", "seconds", "said"),
    [
        ([1, 2], [1.0, 2.0], "2 measurements"),
        ([1, 2, 3], [1.0, 2.0], "3 costs, but 2 times"),
        ([1, 2, 3], [1.0, 2.0, 0.0], "above 0"),
        ([5, 5, 5], [1.0, 2.0, 3.0], "one size"),
    ],
)
def test_what_no_line_fits_is_refused(sizes, seconds, said):
    with pytest.raises(ValueError, match=said):
        fit([cost("ring", 4, size) for size in sizes], seconds)


def test_one_rank_alone_is_no_measurement():
    with pytest.raises(ValueError, match="0 rounds: one rank alone sends nothing"):
        fit([cost("ring", 1, size) for size in (1, 2, 3)], [1.0, 2.0, 3.0])


# Measuring


def time_by_script(rank, world_size):
    """By this clock, rank r's calls take 0.02 + 0.04 r s; the first is slow, one of rank 1 too."""
    seconds = [9.0, *[0.02 + 0.04 * rank] * 4]
    if rank == 1:
        seconds[3] = 5.0
    starts = [10.0 * number for number in range(5)]
    starts[4] += rank == 0  # rank 0 came a second late to the last
    pairs = zip(starts, seconds, strict=True)
    edges = [edge for start, each in pairs for edge in (start, start + each)]
    timing.time = SimpleNamespace(monotonic=iter(edges).__next__)
    return take_turns({"": lambda: None}, repetitions=4, warm_up=1)[""].seconds


def test_a_time_is_from_the_last_rank_that_calls_to_the_last_that_is_done_on_all():
    results = launch(time_by_script, 3).results
    assert results[0] == results[1] == results[2]
    assert results[0] == pytest.approx((0.1, 0.1, 5.0, 0.02))


def take_turns_in_order(rank, world_size):
    made = []
    names = {"a": lambda: made.append("a"), "b": lambda: made.append("b")}
    found = take_turns(names, repetitions=2, warm_up=1)
    return "".join(made), list(found)


def test_calls_take_turns():
    assert launch(take_turns_in_order, 2).results == [("ab" * 3, ["a", "b"])] * 2


def test_a_timing_tells_median_quartiles_and_doubt():
    timing = Timing((0.001, 0.002, 0.003, 0.004, 0.1))
    assert timing.median == 0.003
    assert timing.quartiles == (0.002, 0.004)
    assert 0.02 < timing.doubt < 1
    assert str(timing) == "3 ms (2 to 4)"
    assert Timing((0.5,)).quartiles == (0.5, 0.5)


def test_nothing_to_time_is_refused():
    with pytest.raises(ValueError, match="at least 1 of each"):
        take_turns({})


@pytest.mark.parametrize("collective", CALLS)
def test_every_collective_can_be_swept(collective):
    found = sweep(collective, 2, [100, 1000, 10_000], repetitions=2)
    assert list(found.timings) == [
        104 if collective in ("all_gather", "reduce_scatter", "all_to_all") else 100,
        1000,
        10_000,
    ]
    assert found.fit().line.alpha >= 0
    assert "busbw" in repr(found)
    assert len(found.points()) == 3


def test_an_unknown_collective_and_a_send_on_one_rank_are_refused():
    with pytest.raises(ValueError, match="unknown collective 'sum'"):
        sweep("sum")
    with pytest.raises(ValueError, match="world_size is 1, but a send goes from the first rank to"):
        sweep("send", 1)


@pytest.mark.gpu
def test_a_sweep_runs_on_gpus():
    found = sweep("all_reduce", max(1, torch.cuda.device_count()), [1 << 10, 1 << 20, 1 << 22], 3)
    assert found.timings[1 << 22].median > 0


@pytest.mark.network
def test_a_sweep_over_a_shaped_link_is_never_faster_than_its_rate():
    sizes = [64, 1024, 1 << 18, 1 << 19, 1 << 20]
    found = sweep("all_reduce", 2, sizes, 3, network=VirtualNetwork(2, 1, 20e6))
    assert found.fit().line.beta >= 0
    for num_bytes in sizes[2:]:  # each of two ranks sends them once; what it made up for is less
        assert min(found.timings[num_bytes].seconds) > 0.9 * num_bytes / 20e6


# Watching a run


@pytest.fixture(scope="module")
def watched():
    return launch(lambda rank, world_size: [dist.all_reduce(torch.ones(64)) for _ in "abc"], 2)


def test_perfettos_trace_parses_and_holds_every_call(watched, tmp_path):
    trace = json.loads(watched.ledger.to_perfetto(tmp_path / "trace.json").read_text())
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == len(watched.ledger.events)
    assert all(event["dur"] >= 0 and math.isfinite(event["ts"]) for event in slices)
    named = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert named == {"rank 0", "rank 1"}
    assert sum(event["args"]["sent_bytes"] for event in slices) == watched.ledger.sent_bytes()


def test_stamps_of_all_ranks_make_a_time_from_the_last_start_to_the_last_end():
    first, second = ([(0, 9), (1, 3), (2, 5)], [(0, 9), (2, 4), (1, 7)])
    run = SimpleNamespace(results=[{64: first}, {64: second}], world_size=2)
    found = sweep_of(run)
    assert found.timings[64].seconds == (4 - 2, 7 - 2)
    assert found.num_ranks == 2


# What is drawn


def test_a_picture_of_overlap_tells_when_all_is_done_and_where_the_rank_waits():
    event = SimpleNamespace(start=1.0, end=1.05)
    tries = [(9.0, 9.05, 9.1, 9.1), (9.0, 9.0, 9.03, 9.05)]  # call, work, its end, all done
    late = [(start, begin, end, done + 9.0) for start, begin, end, done in tries]
    tries = [*tries, *late, *tries]  # the median is drawn
    ledger = SimpleNamespace(select=lambda op, rank: [event] * 6)
    drawn = draw_overlap(SimpleNamespace(results=[tries], ledger=ledger), ("one", "two"), "t")
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["one: 100 ms", "two: 50 ms"]
    inside = [[text.get_text() for text in axes.texts] for axes in drawn.axes]
    assert inside == [["waits", "computes", "all-reduce"]] * 2


def test_the_size_farthest_above_the_line_through_both_ends_is_told():
    measured = {64: 1e-4, 10**6: 8e-4, 10**9: 1e-2}
    line = AlphaBeta(1e-4, 1e-11)
    drawn = draw_ways(measured, line, (line, line))
    assert drawn.get_suptitle() == "1 MB take 7.3 times what one line through both ends says"


def test_the_explorer_follows_its_sliders_and_starts_no_rank(monkeypatch):
    measured = sweep("all_reduce", 2, [64, 4096, 1 << 16], 2)
    monkeypatch.setattr("byhand.runtime.launch", None)
    box = cost_explorer(measured)
    (alpha, _), (ranks, rival) = (row.children for row in box.children[:2])
    ranks.value, rival.value = 64, "recursive_doubling"
    before = box.children[2].value
    alpha.value = 1e-3
    assert box.children[2].value != before
    assert "recursive doubling wins, above it the ring" in box.children[3].value


def test_the_explorer_says_when_there_is_no_crossover():
    among = {n: draw_costs(LINE.alpha, LINE.beta, n, "halving_doubling")[1] for n in (8, 2)}
    assert among[8] == "Halving-doubling wins at every size."
    assert among[2] == "The ring and halving-doubling cost the same at every size."


def test_a_figure_of_costs_names_its_lines_and_marks_the_crossover():
    points = [(size, LINE.seconds("ring", 4, size), 1e-6, 1e-2) for size in SIZES]
    drawn = seconds_by_size(
        {"ring": points}, {"ring": lambda m: 1e-4 + 1e-9 * m}, "title", {"equal": 1e4}
    )
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert texts == ["equal: 10 KB", "ring"]
    assert [seconds_text(s) for s in (2.0, 0.0015, 2e-5, 3e-9)] == [
        "2 s",
        "1.5 ms",
        "20 µs",
        "3 ns",
    ]


@pytest.mark.parametrize("p", [2, 5, 8, 13])
def test_a_ring_in_depth_first_order_sends_one_message_over_each_link_of_a_tree(p):
    network = renumbered(TOPOLOGIES["tree"](p, LINE), depth_first(p))
    for at_once in rounds("ring", p, p):  # messages of one byte
        assert set(network.loads(at_once).values()) == {1}
    assert sorted(depth_first(p)) == list(range(p))


def test_a_ring_numbered_by_level_has_three_messages_on_one_link_of_a_tree():
    network = TOPOLOGIES["tree"](8, LINE)
    assert max(network.loads(rounds("ring", 8, 8)[0]).values()) == 3


def test_a_roofline_bends_where_the_link_keeps_up_with_the_gpu():
    drawn = draw_roofline(1e14, {"fast": 1e11, "slow": 1e10}, "t", {"a run": 500})
    mark, *links = drawn.axes[0].lines
    assert set(mark.get_xdata()) == {500}
    shares = [text.get_text() for text in drawn.axes[0].texts if " of C" in text.get_text()]
    assert shares == ["50% of C"]
    for line, bend in zip(links, (1e3, 1e4), strict=True):
        for tokens, teraflops in line.get_xydata():
            assert teraflops == pytest.approx(100 * min(1, tokens / bend))


def test_of_eight_rings_one_is_dark_and_each_leaves_a_host_by_one_link_as_two_levels_do():
    arrows = [text.arrow_patch for text in draw_two_hosts().axes[0].texts if not text.get_text()]
    colours = [to_hex(arrow.get_edgecolor()) for arrow in arrows]
    rings, levels = Counter(colours[:16]), Counter(colours[16:])
    (dark,) = levels
    assert levels[dark] == 16
    assert rings[dark] == 2
    assert len(rings) == 2


def test_a_strip_tells_every_value_and_the_median():
    drawn = every_value({"one": [1e-3, 2e-3, 9e-3], "other": [5e-3]}, "t")
    assert [text.get_text() for text in drawn.axes[0].texts] == ["2 ms", "5 ms"]
    assert [len(line.get_xdata()) for line in drawn.axes[0].lines] == [3, 2, 1, 2]


def test_nccls_curve_is_that_of_its_source():
    assert len(NCCL_SECONDS) == 31
    assert NCCL_SECONDS[1 << 24] == pytest.approx(977.6e-6)
    assert NCCL_SECONDS[8 << 30] == pytest.approx(47535e-6)
    algbw = (8 << 30) / NCCL_SECONDS[8 << 30]
    assert algbw == pytest.approx(180.71e9, rel=1e-4)  # as the source prints it


def test_every_link_of_the_table_has_a_rate_and_a_source():
    assert all(link.source and link.bytes_per_second > 1e9 for link in LINKS)
    assert len(table().splitlines()) == len(LINKS) + 1
