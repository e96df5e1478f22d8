"""Schedules as properties: complete, possible, as idle and as full as their formulas say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand.pipeline_schedules import (
    Action,
    ScheduleError,
    check,
    gpipe,
    interleaved,
    one_forward_one_backward,
    simulate,
    zero_bubble_h1,
)

stages, batches = st.integers(1, 7), st.integers(1, 16)
costs = st.tuples(st.floats(0.5, 2), st.floats(0.5, 2), st.floats(0.5, 2))
many = settings(max_examples=60, deadline=None)


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
def test_zero_bubble_h1_idles_f_plus_b_minus_w_and_holds_p(p, m, cost):
    forward, backward_input, backward_weight = cost
    timeline = simulate(zero_bubble_h1(p, m), *cost)
    assert max(timeline.peak_in_flight) <= p
    if m >= p and backward_weight <= min(forward, backward_input):
        expected = (p - 1) * (forward + backward_input - backward_weight)
        assert timeline.idle_seconds == pytest.approx([expected] * p)


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
        (lambda s: s[0].clear(), "every stage some action"),
    ],
)
def test_an_incomplete_schedule_is_refused(spoil, words):
    schedule = gpipe(2, 3)
    spoil(schedule)
    with pytest.raises(ScheduleError, match=words):
        check(schedule)


def test_counts_that_make_no_pipeline_are_refused():
    with pytest.raises(ScheduleError, match="at least 1 of its micro-batches, not 0"):
        gpipe(2, 0)
    with pytest.raises(ScheduleError, match="5 micro-batches are not a multiple of 2 stages"):
        interleaved(2, 5, 2)


def test_a_send_that_takes_time_delays_only_the_receiver():
    timeline = simulate(gpipe(2, 1), send=0.5)
    assert timeline.seconds == pytest.approx(6 + 2 * 0.5)
