"""The book's sources: pictures that say what they show, explorers that say how to run them."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.book.gather import DRAWN, EXPLORER, SVG, WIDGET, folded, shown
from byhand.figures.alt import as_image

DRAWING = "<svg><dc:title>Each stage\n idles &gt; 27%</dc:title></svg>"
FIGURE = {"text/html": as_image(DRAWING), "text/plain": "<Figure>"}
DRAGGED = {WIDGET: {"model_id": "1"}, "image/png": "iVBORw0KGgo=", "text/plain": "Explorer()"}


def lecture(*outputs):
    cells = [
        new_code_cell("look", outputs=[new_output("display_data", data)], id=f"cell-{number}")
        for number, data in enumerate(outputs)
    ]
    return new_notebook(cells=[new_markdown_cell("# 1 · A title", id="title"), *cells])


def test_a_figure_is_shown_with_its_title_for_those_who_cannot_see_it():
    cell = shown(lecture(FIGURE), "01_ranks.ipynb", "").cells[-1]
    assert cell.outputs[0].data == {SVG: DRAWING}
    assert cell.metadata["mystnb"]["image"]["alt"] == "Each stage idles > 27%"


def test_an_explorer_becomes_its_picture_and_a_sentence():
    *_, cell, sentence = shown(lecture(DRAGGED), "01_ranks.ipynb", "").cells
    assert set(cell.outputs[0].data) == {"image/png"}
    assert EXPLORER in sentence.source


def test_where_its_states_are_drawn_a_form_stands_for_an_explorer():
    *_, cell, sentence = shown(lecture(DRAGGED), "01_ranks.ipynb", "", "<form></form>").cells
    assert cell.outputs[0].data == {"text/html": "<form></form>"}
    assert DRAWN in sentence.source


def test_the_doors_of_a_lecture_follow_the_one_setting_of_its_address():
    without, with_address = (
        shown(lecture(FIGURE), "01_ranks.ipynb", address).cells[1].source
        for address in ("", "https://github.com/somebody/course")
    )
    assert "Colab" not in without
    assert "/github/somebody/course/blob/main/lectures/01_ranks.ipynb" in with_address


def test_test_cells_of_an_exercise_stay_folded():
    cell = new_code_cell("check()", metadata={"jupyter": {"source_hidden": True}})
    assert folded(new_notebook(cells=[cell])).cells[0].metadata["tags"] == ["hide-input"]
