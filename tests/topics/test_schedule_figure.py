"""A schedule's figure shows every action, in the colours of STYLE, and can be read."""

import pytest
from readable import assert_readable, words

from byhand.figures import schedule_timeline, style
from byhand.figures.schedule import COLOURS
from byhand.pipeline_parallel.lab import pipeline_explorer
from byhand.pipeline_schedules import (
    gpipe,
    interleaved,
    one_forward_one_backward,
    simulate,
    zero_bubble_h1,
)
from byhand.pipeline_schedules.lab import NAMED, bill, schedule_explorer

FIGURES = {
    "one": lambda: schedule_timeline(simulate(gpipe(3, 4)), unit="forwards"),
    "two": lambda: schedule_timeline(
        simulate(gpipe(4, 8)), simulate(one_forward_one_backward(4, 8)), unit="forwards"
    ),
    "chunks and halves": lambda: schedule_timeline(
        simulate(interleaved(4, 8, 2), 0.5, 0.5, 0.5), simulate(zero_bubble_h1(4, 8))
    ),
    "many": lambda: schedule_timeline(simulate(one_forward_one_backward(8, 32)), unit="forwards"),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_every_text_can_be_read(draw):
    assert_readable(draw())


def test_every_action_is_drawn_with_its_micro_batch():
    figure = FIGURES["one"]()
    numbers = [word for word in words(figure) if word in "0123"]
    assert len([n for n in numbers if n == "3"]) >= 3 * 2
    bars = [patch for patch in figure.axes[1].patches if patch.get_height() > 0.5]
    assert len(bars) == 3 * 4 * 2


def test_the_title_says_how_long_the_stages_idle_and_the_margin_what_they_hold():
    shown = words(FIGURES["one"]())
    assert "Each stage idles 33% of the step" in shown
    assert shown.count("holds 4") == 3


def test_what_is_held_is_said_in_whole_micro_batches_whatever_the_number_of_chunks():
    shown = words(FIGURES["chunks and halves"]())
    assert [word for word in shown if word.startswith("holds")] == [
        *("holds 5.5", "holds 4.5", "holds 3.5", "holds 2.5"),
        *["holds 4"] * 4,
    ]
    assert "paler: part 2" in shown


@pytest.mark.parametrize(("forward", "numbered"), [(1.0, 32), (0.05, 0)])
def test_a_timeline_whose_numbers_do_not_all_fit_has_none(forward, numbered):
    figure = schedule_timeline(simulate(gpipe(2, 8), forward), unit="forwards")
    shown = [text.get_text() for text in figure.axes[1].texts]
    assert sum(text.isdigit() for text in shown) == numbered


def test_forward_is_dark_backward_pale_and_the_weights_half_between():
    def luminance(colour):
        red, green, blue = style.to_rgb(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    forward, weight, backward = (
        luminance(COLOURS[kind]) for kind in ("forward", "backward_weight", "backward")
    )
    assert forward < 0.35 < weight < 0.7 < backward
    assert style.readable_on(COLOURS["forward"]) == style.PAPER
    assert style.readable_on(COLOURS["backward_weight"]) == style.INK


def test_chunks_that_follow_each_other_have_different_colours():
    figure = schedule_timeline(simulate(interleaved(2, 2, 2), 0.5, 0.5, 0.5), unit="forwards")
    bars = [patch for patch in figure.axes[1].patches if patch.get_height() > 0.5]
    assert len({patch.get_facecolor() for patch in bars}) == 4


def test_names_stand_before_what_each_timeline_shows():
    timelines = simulate(gpipe(2, 2)), simulate(gpipe(2, 4))
    shown = words(schedule_timeline(*timelines, names=("A", "B"), unit="forwards"))
    assert {"A: each stage idles 33% of the step", "B: each stage idles 20% of the step"} <= set(
        shown
    )


def test_the_explorer_draws_what_is_chosen_and_says_what_cannot_be():
    choices, shown, sentence = pipeline_explorer("1F1B", 4, 8).children
    assert "33 forwards; a stage holds up to 4 micro-batches" in sentence.value
    before = bytes(shown.value)
    choices.children[0].value = "interleaved 1F1B, 2 chunks"
    assert bytes(shown.value).startswith(b"\x89PNG")
    assert bytes(shown.value) != before
    choices.children[2].value = 7
    assert bytes(shown.value) == b""
    assert "7 micro-batches are not a multiple of 4 stages" in sentence.value


def test_the_search_explorer_draws_what_is_named_and_what_is_found():
    first, _, shown, sentence = schedule_explorer("found on a V", 4, 8).children
    assert "25.5 forwards" in sentence.value
    assert "up to 4 micro-batches" in sentence.value
    first.children[0].value = "ZB-H2"
    assert "27 forwards, and without a barrier at its end 24" in sentence.value
    assert bytes(shown.value).startswith(b"\x89PNG")
    first.children[2].value = 7
    first.children[0].value = "DualPipe's V"
    assert "4 stages with 8 micro-batches, two per stage, and has 7" in sentence.value


def test_the_bill_counts_idle_time_memory_and_messages():
    row = bill(NAMED["interleaved, v 2"](4, 8))
    assert row == (pytest.approx(4.5 / 28.5), pytest.approx(4.5 / 28.5), 5.5, 2 * 7 * 8)
    assert bill(NAMED["ZB-V"](4, 8))[1:] == (pytest.approx(0), 4, 2 * 6 * 8)
