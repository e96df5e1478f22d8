"""Schedules as properties: complete, possible, as idle and as full as their formulas say."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import math
import typing
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand.pipeline_parallel.lab import pipeline_explorer
from byhand.pipeline_schedules import (
    Action,
    Route,
    Schedule,
    ScheduleError,
    breadth_first,
    check,
    dual_pipe_v,
    find,
    gpipe,
    interleaved,
    loop,
    one_forward_one_backward,
    simulate,
    there_and_back,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)
from byhand.pipeline_schedules.drafts import Draft
from byhand.pipeline_schedules.lab import (
    NAMED,
    as_short,
    bill,
    on_paper,
    routes_picture,
    schedule_explorer,
    words,
)

stages, batches = st.integers(1, 7), st.integers(1, 16)
costs = st.tuples(st.floats(0.5, 2), st.floats(0.5, 2), st.floats(0.5, 2))
many = settings(max_examples=60)


@given(stages, batches, costs)
@many
def test_gpipe_idles_p_minus_1_and_holds_everything(p, m, cost):
    timeline = simulate(gpipe(p, m), *cost)
    assert timeline.idle_seconds == pytest.approx([(p - 1) * sum(cost)] * p)
    assert timeline.idle_fraction == pytest.approx((p - 1) / (m + p - 1))
    assert timeline.peak_in_flight == [m] * p


@given(stages, batches, costs)
@many
def test_1f1b_idles_as_much_and_holds_at_most_the_stages_behind_it(p, m, cost):
    timeline = simulate(one_forward_one_backward(p, m), *cost)
    assert timeline.idle_seconds == pytest.approx([(p - 1) * sum(cost)] * p)
    assert timeline.peak_in_flight == [min(p - r, m) for r in range(p)]


@given(stages, st.integers(1, 4), st.integers(2, 4))
@many
def test_interleaving_divides_the_idle_time_by_the_chunks(p, groups, v):
    m = groups * p
    timeline = simulate(interleaved(p, m, v), 1 / v, 1 / v, 1 / v)
    assert timeline.idle_seconds == pytest.approx([(p - 1) * 3 / v] * p)
    expected = [min(2 * (p - r - 1) + (v - 1) * p + 1, v * m) for r in range(p)]
    assert timeline.peak_in_flight == expected


@given(stages, batches, costs)
@many
def test_zero_bubble_h1_idles_f_plus_b_minus_what_w_fills_and_holds_p(p, m, cost):
    forward, backward_input, _ = cost
    timeline = simulate(zero_bubble_h1(p, m), *cost)
    assert max(timeline.peak_in_flight) <= p
    if m >= p:
        expected = (p - 1) * (forward + backward_input - min(cost))
        assert timeline.idle_seconds == pytest.approx([expected] * p)


@given(stages, st.integers(0, 9), st.integers(2, 4))
@many
def test_breadth_first_idles_as_interleaved_does_and_holds_everything(p, more, v):
    m = p + more
    timeline = simulate(breadth_first(p, m, v), 1 / v, 1 / v, 1 / v)
    assert timeline.idle_seconds == pytest.approx([(p - 1) * 3 / v] * p)
    assert timeline.peak_in_flight == [v * m] * p


@given(stages, st.integers(0, 9))
@many
def test_zero_bubble_h2_never_waits_between_its_first_and_last_action(p, more):
    m = 2 * p - 1 + more
    timeline = simulate(zero_bubble_h2(p, m))
    assert timeline.period == pytest.approx(3 * m)
    assert timeline.seconds == pytest.approx(3 * m + p - 1)  # with a barrier: not above H1's
    assert timeline.peak_in_flight == [2 * p - 1] * p


@given(stages, st.integers(0, 9))
@many
def test_zero_bubble_v_does_so_with_the_memory_of_1f1b(p, more):
    m = 2 * p - 1 + more
    timeline = simulate(zero_bubble_v(p, m), 0.5, 0.5, 0.5)
    assert timeline.period == pytest.approx(3 * m)
    assert timeline.seconds == pytest.approx(3 * m + (p - 1) / 2)
    assert max(timeline.peak_in_flight) <= 2 * p  # halves of a stage


@given(stages, st.integers(0, 9))
@many
def test_dual_pipe_v_idles_half_a_forward_for_each_stage_behind_the_first(p, more):
    m = 2 * p + more
    timeline = simulate(dual_pipe_v(p, m), 0.5, 0.5, 0.5)
    assert timeline.seconds == pytest.approx(3 * m + (p - 1) / 2)
    assert max(timeline.peak_in_flight) == 2 * p + 1


@given(stages, batches)
@many
def test_every_schedule_runs_with_few_micro_batches_too(p, m):
    for schedule in (
        zero_bubble_h1(p, m),
        zero_bubble_h2(p, m),
        zero_bubble_v(p, m),
        breadth_first(p, m, 3),
    ):
        check(schedule)


@given(stages, batches, st.data())
@many
def test_a_shuffled_schedule_is_refused_or_runs_in_its_order(p, m, data):
    schedule = one_forward_one_backward(p, m)
    stage = data.draw(st.integers(0, p - 1))
    schedule[stage] = data.draw(st.permutations(schedule[stage]))
    if not _runs(schedule):
        return
    timeline = simulate(schedule)
    ends = {(span.stage, span.action): span for span in timeline.spans}
    for (at, action), span in ends.items():
        if action.kind == "forward" and at > 0:
            assert ends[at - 1, action].end <= span.start
        if action.kind == "backward" and at < p - 1:
            assert ends[at + 1, action].end <= span.start


def _runs(schedule):
    try:
        check(schedule)
    except ScheduleError:
        return False
    return True


def test_the_first_impossible_action_is_named():
    schedule = one_forward_one_backward(2, 2)
    schedule[0] = [Action("backward", 0), Action("forward", 0), *schedule[0][1:-2], schedule[0][-1]]
    with pytest.raises(ScheduleError, match="stage 0 cannot do its action 1, backward 0: it needs"):
        check(schedule)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda s: s[1].pop(), "stage 1 does forward for micro-batch 2"),
        (lambda s: s[0].append(Action("forward", 0)), "forward 0 is there twice"),
        (lambda s: s[0].append(Action("sideways", 0)), "no kind of forward"),
        (lambda s: s[0].append(("forward", 3)), r"action 7: \('forward', 3\) is no action: write"),
        (lambda s: s[0].clear(), "every stage some action"),
    ],
)
def test_an_incomplete_schedule_is_refused(spoil, words):
    schedule = gpipe(2, 3)
    spoil(schedule)
    with pytest.raises(ScheduleError, match=words):
        check(schedule)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 2), "no stage has an action of micro-batch 1, but there are some of 2"),
        ((1, 2), "no stage has an action of micro-batch 0, but there are some of 1"),
        ((-1, 0), "no stage has an action of micro-batch 1, but there are some of -1"),
    ],
)
def test_a_schedule_that_leaves_out_a_micro_batch_is_refused(numbers, words):
    """A step would not train on its rows."""
    stage = [Action(kind, i) for kind in ("forward", "backward") for i in numbers]
    with pytest.raises(ScheduleError, match=words):
        check([stage, stage])


def test_counts_that_make_no_pipeline_are_refused():
    with pytest.raises(ScheduleError, match="at least 1 of its micro-batches, not 0"):
        gpipe(2, 0)
    with pytest.raises(ScheduleError, match="5 micro-batches are not a multiple of 2 stages"):
        interleaved(2, 5, 2)
    assert gpipe(np.int64(2), np.int32(3)) == gpipe(2, 3)  # any library's whole number
    assert interleaved(np.int64(2), 4, np.int64(2)) == interleaved(2, 4, 2)
    with pytest.raises(ScheduleError, match="at least 1 of its stages, not True"):
        gpipe(True, 3)


def test_a_send_that_takes_time_delays_only_the_receiver():
    timeline = simulate(gpipe(2, 1), send=0.5)
    assert timeline.seconds == pytest.approx(6 + 2 * 0.5)


def test_a_link_that_is_shared_carries_first_what_was_sent_first_whoever_waits_for_it():
    forwards = [Action("forward", i) for i in (0, 1)]
    backwards = [Action("backward", i) for i in (0, 1)]
    late = [forwards[1], backwards[1], forwards[0], backwards[0]]
    timeline = simulate([[*forwards, *reversed(backwards)], late], send=4, shared_links=True)
    starts = {(span.stage, span.action): span.start for span in timeline.spans}
    assert starts[1, forwards[1]] == 1 + 4 + 4  # behind 0, which is taken later
    assert starts[0, backwards[0]] == 12 + 4 + 4


# Where the parts of the model are


def test_a_route_says_who_keeps_what():
    route = there_and_back(3)
    assert route == (0, 1, 2, 2, 1, 0)
    assert route.places(1) == [1, 4]
    assert route.place[0, 1] == 5
    assert loop(2, 3) == (0, 1, 0, 1, 0, 1)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule(gpipe(2, 1), [0, 1, 2]), "visits each of them, 0 to 1, .* route is 0, 1, 2"),
        (Schedule(gpipe(2, 1), [0, 0]), "its route is 0, 0"),
        (Schedule(breadth_first(2, 1, 2), [0, 1]), "of chunk 1, but the route comes by 1 times"),
        (Schedule(zero_bubble_v(2, 4), loop(2, 2)), "stage 0 cannot do its action"),
    ],
)
def test_a_route_that_does_not_fit_is_refused(schedule, words):
    with pytest.raises(ScheduleError, match=words):
        check(schedule)


# Unequal parts, and messages


def test_a_head_and_an_embedding_are_seconds_of_their_global_stage():
    forward = [2, 1, 1, 3]  # a V of two stages: both ends are on stage 0
    timeline = simulate(zero_bubble_v(2, 4), forward, 0.0, 0.0)
    assert timeline.idle_seconds[0] == pytest.approx(timeline.seconds - 4 * (2 + 3))
    assert timeline.idle_seconds[1] == pytest.approx(timeline.seconds - 4 * (1 + 1))


def test_seconds_that_are_not_one_for_each_part_are_refused():
    with pytest.raises(
        ScheduleError, match=r"2 numbers of seconds for forward, .* 4 global stages"
    ):
        simulate(zero_bubble_v(2, 4), [1, 2])


@given(st.integers(2, 6), st.floats(0.1, 2))
def test_each_boundary_that_is_crossed_adds_a_message_to_the_way_of_one_micro_batch(p, send):
    assert simulate(gpipe(p, 1), send=send).seconds == pytest.approx(3 * p + 2 * (p - 1) * send)
    there = simulate(zero_bubble_v(p, 1), send=send).seconds  # the turn of the V costs none
    assert there == pytest.approx(simulate(zero_bubble_v(p, 1)).seconds + 4 * (p - 1) * send)


# The published orders


def of_torch(name, p, m, chunks, style):
    """By rank, the actions of torch's schedule of that name: pipeline_order, pairs taken apart."""
    from torch.distributed import pipelining

    route = there_and_back(p) if style == "v" else loop(p, chunks)
    sizes = {"group_size": p, "group_rank": 0, "num_stages": p * chunks, "submod": torch.nn.ReLU()}
    made = [SimpleNamespace(stage_index=place, is_last=False, **sizes) for place in route.places(0)]
    order = getattr(pipelining.schedules, name)(made, m, lambda: None).pipeline_order
    found = []
    for rank in range(p):
        single = [b for a in order[rank] if a is not None for b in (a.sub_actions or [a])]
        found.append(
            [
                Action(
                    a.computation_type.name.removeprefix("FULL_").lower(),
                    a.microbatch_index,
                    route.places(rank).index(a.stage_index),
                )
                for a in single
            ]
        )
    return found


@pytest.mark.parametrize("p", [1, 2, 3, 4, 6])
@pytest.mark.parametrize(
    ("name", "make", "chunks", "style"),
    [
        ("ScheduleInterleaved1F1B", lambda p, m: interleaved(p, m, 2), 2, "loop"),
        ("ScheduleInterleaved1F1B", lambda p, m: interleaved(p, m, 3), 3, "loop"),
        ("ScheduleLoopedBFS", lambda p, m: breadth_first(p, m, 3), 3, "loop"),
        ("ScheduleInterleavedZeroBubble", zero_bubble_h1, 1, "loop"),
        ("ScheduleZBVZeroBubble", zero_bubble_v, 2, "v"),
        ("ScheduleDualPipeV", dual_pipe_v, 2, "v"),
    ],
)
def test_every_action_stands_where_torch_has_it(name, make, chunks, style, p):
    for m in (p, 2 * p, 4 * p, 3 * p + (style == "v")):
        if name != "ScheduleDualPipeV" or m >= 2 * p:
            assert list(make(p, m)) == of_torch(name, p, m, chunks, style)


def megatrons_functions():
    """get_schedule_table and get_pp_rank_microbatches of the published megatron-core, alone."""
    spec = importlib.util.find_spec("megatron")
    if spec is None:
        pytest.skip("megatron-core is not installed")
    path = Path(spec.submodule_search_locations[0], "core/pipeline_parallel/schedules.py")
    names = {"get_schedule_table", "get_pp_rank_microbatches"}
    tree = ast.parse(path.read_text())
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    found = {"Optional": typing.Optional, "P2PCommunicator": object}
    exec(compile(tree, path, "exec"), found)
    return found


@pytest.mark.parametrize(("p", "v"), [(2, 2), (2, 3), (4, 2), (4, 4), (8, 2)])
def test_every_action_stands_where_megatron_has_it(p, v):
    published = megatrons_functions()
    for m, r in itertools.product((p, 2 * p, 5 * p), range(p)):
        table = published["get_schedule_table"](m, v, p)
        published["parallel_state"] = mock.Mock(
            get_pipeline_model_parallel_world_size=lambda: p,
            get_pipeline_model_parallel_rank=lambda r=r: r,
            get_virtual_pipeline_model_parallel_world_size=lambda: v,
        )
        warm_up = published["get_pp_rank_microbatches"](m, v, p)[2]
        forwards = [Action("forward", *entry) for entry in table]
        backwards = [Action("backward", i, v - 1 - c) for i, c in table]
        expected = forwards[:warm_up]
        for k in range(warm_up, m * v):
            expected += [forwards[k], backwards[k - warm_up]]
        assert interleaved(p, m, v)[r] == expected + backwards[m * v - warm_up :]


# What a search finds


routes = st.sampled_from(
    [loop(2), loop(3), loop(4), loop(3, 2), there_and_back(2), (0, 1, 1, 0, 1)]
)


@given(routes, st.integers(1, 5), st.integers(0, 4), costs, st.floats(0, 1), st.integers(0, 2))
@settings(max_examples=40)
def test_a_found_schedule_runs_and_holds_no_more_than_it_may(route, m, more, cost, send, width):
    limit = max(map(route.count, set(route))) + more
    schedule = find(route, m, limit, *cost, send=send, width=width)
    timeline = simulate(schedule, *cost, send=send)
    assert max(timeline.peak_in_flight) <= limit
    shortest = m * sum(cost) * route.count(route[0])
    assert timeline.seconds >= shortest - 1e-9


@given(routes, st.integers(1, 5), st.integers(0, 4), costs, st.floats(0, 1))
@settings(max_examples=40)
def test_a_draft_ends_when_the_simulation_of_its_schedule_does(route, m, more, cost, send):
    limit = max(map(route.count, set(route))) + more
    seconds = dict(zip(("forward", "backward_input", "backward_weight"), cost, strict=True))
    by_place = {kind: [some] * len(route) for kind, some in seconds.items()}
    draft = Draft(Route(route), m, limit, by_place, send).finished()
    timeline = simulate(draft.schedule(), *cost, send=send)
    assert draft.score()[:2] == (pytest.approx(timeline.seconds), pytest.approx(timeline.period))


@pytest.mark.parametrize("p", [2, 3, 4])
def test_the_named_schedules_are_points_of_the_search(p):
    m = 2 * p
    for route, limit, named in (
        (loop(p), p, zero_bubble_h1),
        (loop(p), 2 * p - 1, zero_bubble_h2),
        (there_and_back(p), 2 * p, zero_bubble_v),
    ):
        found, known = simulate(find(route, m, limit)), simulate(named(p, m))
        assert found.seconds == known.seconds
        assert max(found.peak_in_flight) <= max(known.peak_in_flight)
    assert simulate(find(loop(p), m, 2 * p - 1)).period == 3 * m


def shortest(p, m, limit):
    """The shortest seconds of any schedule of a line with actions of one second: all are tried."""
    best, start = [math.inf], tuple((0, 0, 0) for _ in range(p))

    def go(time, done):
        left = max(3 * m - sum(counts) for counts in done)
        if time + left >= best[0]:
            return
        if not left:
            best[0] = time
            return
        choices = []
        for r, (f, i, w) in enumerate(done):
            can = [(f, i, w)]
            if f < m and f - w < limit and (r == 0 or done[r - 1][0] > f):
                can.append((f + 1, i, w))
            if i < f and (r == p - 1 or done[r + 1][1] > i):
                can.append((f, i + 1, w))
            if w < i:
                can.append((f, i, w + 1))
            choices.append(can[::-1])
        for after in itertools.product(*choices):
            if after != done:
                go(time + 1, after)

    go(0, start)
    return best[0]


@pytest.mark.parametrize(("p", "m", "limit"), [(2, 2, 1), (2, 3, 2), (2, 4, 2), (3, 2, 2)])
def test_no_schedule_at_all_is_shorter_than_the_one_that_is_found(p, m, limit):
    assert simulate(find(loop(p), m, limit)).seconds == shortest(p, m, limit)


def test_looking_ahead_finds_what_greed_does_not():
    seconds = [simulate(find(loop(4), 8, 4, width=width)).seconds for width in (0, 2)]
    assert seconds == [29, 27]  # with 27 the last stage waits for its first input only


@pytest.mark.parametrize("name", NAMED)
def test_what_is_found_in_a_names_memory_is_no_longer_than_what_the_name_says(name):
    named = NAMED[name](3, 6)
    paper, found = on_paper(named), on_paper(as_short(named))
    assert found.seconds <= paper.seconds
    assert max(found.peak_in_flight) <= max(paper.peak_in_flight)


def test_an_order_in_words_has_a_prime_for_each_chunk():
    assert words(interleaved(2, 2, 2)[1]) == "F0 F1 F0' B0' F1' B1' B0 B1"
    assert words(zero_bubble_h1(1, 2)[0]) == "F0 I0 W0 F1 I1 W1"


def test_a_search_that_cannot_succeed_is_refused():
    with pytest.raises(
        ScheduleError, match=r"1 in flight, 3 micro-batches: .* of 2 chunks holds as many"
    ):
        find(there_and_back(2), 3, 1)
    with pytest.raises(ScheduleError, match="dual_pipe_v fills 4 stages with 8 micro-batches"):
        dual_pipe_v(4, 7)


# What is drawn


def test_each_part_of_the_model_is_drawn_once_on_every_route():
    told = [text.get_text() for text in routes_picture(3).axes[0].texts]
    assert [told.count(str(part)) for part in range(6)] == [3, 3, 3, 2, 2, 2]
    assert {"stage 0", "stage 2", "a line", "a loop", "a V"} < set(told)


def test_the_explorer_draws_what_is_chosen_and_says_what_cannot_be():
    choices, shown, sentence = pipeline_explorer("1F1B", 4, 8).children
    assert "33 forwards; a stage holds up to 4 micro-batches" in sentence.value
    before = shown.value
    choices.children[0].value = "interleaved 1F1B, 2 chunks"
    assert shown.value.startswith("<img ")
    assert shown.value != before
    choices.children[2].value = 7
    assert shown.value == ""
    assert "7 micro-batches are not a multiple of 4 stages" in sentence.value


def test_the_search_explorer_draws_what_is_named_and_what_is_found():
    first, _, shown, sentence = schedule_explorer("found on a V", 4, 8).children
    assert "25.5 turns" in sentence.value
    assert "up to 4 micro-batches" in sentence.value
    first.children[0].value = "ZB-H1"
    assert "27 turns" in sentence.value
    assert shown.value.startswith("<img ")
    first.children[2].value = 7
    first.children[0].value = "interleaved, v 2"
    assert "7 micro-batches are not a multiple of 4 stages" in sentence.value


def test_the_bill_counts_idle_time_memory_and_messages():
    row = bill(NAMED["interleaved, v 2"](4, 8))
    assert row == (pytest.approx(4.5 / 28.5), pytest.approx(4.5 / 28.5), 5.5, 2 * 7 * 8)
    assert bill(NAMED["ZB-V"](4, 8))[1:] == (pytest.approx(0), 4, 2 * 6 * 8)
