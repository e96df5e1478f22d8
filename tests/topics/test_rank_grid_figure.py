"""The rank grid's figure and its explorer: same places, right cells, refusals with a way out."""

from __future__ import annotations

import matplotlib.colors
import numpy as np
import pytest

from byhand.figures import leaving_bars, style
from byhand.rank_groups import NAMES, RankGrid
from byhand.rank_groups.lab import draw_grid, grid_explorer, show_grid

START = {"order": "tp-cp-ep-dp-pp", "tp": 8, "cp": 1, "ep": 1, "pp": 4, "per_node": 8, "follow": 0}


def dark_cells(figure, axis):
    """For each panel: the cells in the axis' full hue, as numbers counted along the lines."""
    hue = matplotlib.colors.to_rgb(style.AXIS_COLOURS[axis])
    for panel in figure.axes[:1]:
        image = panel.images[0].get_array().reshape(-1, 3)
        yield np.flatnonzero(np.isclose(image, hue).all(axis=1)).tolist()


@pytest.mark.parametrize("name", ["tp", "dp", "pp", "tp-pp"])
def test_the_followed_ranks_group_has_the_full_hue(name):
    grid = RankGrid(32, tp=2, pp=4)
    (cells,) = dark_cells(show_grid(grid, 8, [name], follow=13), name.split("-")[0])
    assert cells == grid.group(name, 13).tolist()


def test_in_a_large_world_a_cell_is_a_node():
    grid = RankGrid(4096, tp=8, pp=16)
    (cells,) = dark_cells(show_grid(grid, 8, ["pp"], follow=70), "pp")
    assert cells == [rank // 8 for rank in grid.group("pp", 70)]


def test_every_panel_has_the_same_places():
    panels = [p for p in show_grid(RankGrid(64, tp=4, cp=2, ep=2, pp=2), 8).axes if p.images]
    assert len(panels) == 5
    assert len({panel.images[0].get_array().shape for panel in panels}) == 1
    assert len({(panel.get_xlim(), panel.get_ylim()) for panel in panels}) == 1


def test_every_kind_of_group_is_drawn_and_a_rank_in_none_is_said():
    figure = show_grid(RankGrid(16, tp=2, pp=4), 8, NAMES, follow=6)
    headings = [panel.get_title(loc="left") for panel in figure.axes]
    assert "all across nodes · rank 6: in none" in headings
    texts = [text.get_text() for panel in figure.axes for text in panel.texts]
    assert "tp-pp  2 groups of 8" in texts


def test_the_explorer_says_what_leaves_a_node():
    _, sentence = draw_grid(64, **START)
    assert "tp" not in sentence.partition(" is: ")[2]
    _, sentence = draw_grid(64, **{**START, "order": "pp-dp-ep-cp-tp"})
    assert " is: tp " in sentence


def test_the_explorer_marks_what_is_refused_and_what_would_do():
    with pytest.raises(ValueError, match=r"^Refused: 64 ranks cannot hold tp 6 ") as refused:
        draw_grid(64, **{**START, "tp": 6})
    assert str(refused.value).endswith("One change would do: tp 1, 2, 4, 8, 16.")
    with pytest.raises(ValueError, match="16 ranks do not fill nodes of 32"):
        draw_grid(16, **{**START, "tp": 1, "per_node": 32})


def test_the_explorer_redraws_at_each_change():
    box = grid_explorer()
    world, order = box.children[0].children
    picture, sentence = box.children[-2:]
    first = picture.value
    world.value = 128
    assert picture.value != first
    order.value = "tp-dp-pp"
    assert sentence.value != ""
    box.children[2].children[0].value = 2  # ep
    assert sentence.value.startswith("Refused: order 'tp-dp-pp' lacks ep")
    assert picture.layout.display == "none"


def test_bars_of_what_leaves_are_as_long_as_their_bytes():
    figure = leaving_bars({"tp-dp": {"dp-cp": 2e6}, "dp-tp": {"tp": 16e6, "pp": 1e6}}, "t")
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == [2e6, 16e6, 1e6]
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"tp", "2 MB", "17 MB"} <= set(texts)
    named = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert named == ["dp-cp", "tp", "pp"]
    assert figure.axes[0].patches[0].get_facecolor()[:3] == matplotlib.colors.to_rgb("#d55e00")
