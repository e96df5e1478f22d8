"""The states of a lecture's explorer, drawn for its page: which, how large, and by whom."""

import json
import math
from xml.etree import ElementTree

import pytest
from nbformat import write
from nbformat.v4 import new_code_cell, new_notebook, new_output

from autograder.book import drawn
from autograder.book.explorer import FOLDER
from autograder.book.svg import pieces
from byhand.all_reduce.lab import all_reduce_explorer, draw_round
from byhand.collectives.lab import collective_explorer
from byhand.communication_cost.lab.pictures import cost_explorer
from byhand.expert_parallel.lab.pictures import load_explorer
from byhand.fault_tolerance.lab import interval_explorer
from byhand.pipeline_parallel.lab import draw_pipeline, pipeline_explorer
from byhand.pipeline_schedules.lab import schedule_explorer
from byhand.rank_groups.lab import grid_explorer
from byhand.tools.explorer import RECIPE, explorer, slider

EXPLORERS = [
    *(collective_explorer, all_reduce_explorer, cost_explorer, pipeline_explorer),
    *(schedule_explorer, grid_explorer, load_explorer, interval_explorer),
]


def recipe(**values):
    """That of lecture 09's explorer, with fewer values of its controls."""
    found = json.loads(json.dumps(pipeline_explorer().recipe))
    for control in found["controls"]:
        kept = values[control["label"].replace("-", "_")]
        control |= {"values": kept, "words": list(map(str, kept)), "start": 0}
    return found


FEW = recipe(schedule=["1F1B", "interleaved 1F1B, 2 chunks"], stages=[2, 4], micro_batches=[4, 6])


@pytest.mark.parametrize("make", EXPLORERS)
def test_an_explorer_leaves_a_short_recipe_of_few_states(make):
    data = json.dumps(make()._repr_mimebundle_()[0][RECIPE])
    controls = json.loads(data)["controls"]
    assert len(data) < 1500, "it is saved with a student's notebook"
    assert 30 <= math.prod(len(each["values"]) for each in controls) <= 300
    assert all(len(each["values"]) == len(set(each["words"])) for each in controls)
    assert all(0 <= each["start"] < len(each["values"]) for each in controls)


def test_a_picture_that_no_other_process_can_draw_has_no_recipe():
    box = explorer([[slider("m", 4, 1, 8)]], lambda m: draw_pipeline("1F1B", 2, m))
    assert RECIPE not in box._repr_mimebundle_()[0]


@pytest.fixture(scope="module")
def found():
    return drawn.explorer_of("09", FEW)


def test_every_value_of_every_control_has_a_state_of_its_own(found):
    assert len(found.states) == 8
    assert list(found.selects) == ["schedule", "stages", "micro-batches"]
    assert found.sliders == {"stages": "range", "micro-batches": "range"}
    assert len({found.shown(*chosen) for chosen in found.states}) == 8
    assert "a stage holds up to 2 micro-batches" in found.shown("0", "0", "0")


def test_what_is_refused_is_a_state_that_says_why(found):
    text = found.shown("1", "1", "1")
    assert text.endswith(": 6 micro-batches are not a multiple of 4 stages</p>")
    assert "<svg" not in text


def test_a_control_of_one_value_keeps_it_and_is_not_shown():
    few = recipe(schedule=["GPipe", "1F1B"], stages=[4], micro_batches=[8])
    found = drawn.explorer_of("09", few)
    assert list(found.selects) == ["schedule"]
    assert "stage 3" in found.shown("1")


def test_the_last_control_has_no_more_values_than_there_are():
    few = json.loads(json.dumps(all_reduce_explorer("ring", 3).recipe))
    few["controls"][0] |= {"values": ["ring", "tree"], "words": ["ring", "tree"], "start": 0}
    few["controls"][1] |= {"values": [3], "words": ["3"], "start": 0}
    states = drawn.explorer_of("03", few).states
    assert [sum(key[0] == each for key in states) for each in "01"] == [5, 3]


def test_the_states_are_drawn_again_only_if_something_changed(tmp_path, monkeypatch, found):
    monkeypatch.setattr(drawn, "explorer_of", lambda *_: found)
    first = drawn.form("09", FEW, tmp_path, "a stamp")
    assert (tmp_path / FOLDER / "09.js").stat().st_size < 20_000
    monkeypatch.setattr(drawn, "explorer_of", None)
    assert drawn.form("09", FEW, tmp_path, "a stamp") == first
    with pytest.raises(TypeError):
        drawn.form("09", FEW, tmp_path, "another stamp")


def test_a_form_stands_with_its_first_picture_and_others_where_no_script_runs(
    tmp_path, monkeypatch, found
):
    monkeypatch.setattr(drawn, "explorer_of", lambda *_: found)
    text = drawn.form("09", FEW, tmp_path, "")
    start, _, small = text.partition("<noscript>")
    assert (start.count("<svg"), small.count("<figure>")) == (1, 3)
    assert "<figcaption>stages: 4</figcaption><svg" in small
    assert '<script src="../explorers/explorer.js">' in text
    assert "\n\n" not in text


def test_only_byhands_functions_draw(tmp_path):
    with pytest.raises(ValueError, match="by functions of byhand, and not by os:system"):
        drawn.explorer_of("09", FEW | {"draw": "os:system"})


def test_each_executed_lecture_with_an_explorer_gets_a_form_whose_states_real_ranks_made(tmp_path):
    found = json.loads(json.dumps(collective_explorer("scatter", 2).recipe))
    found["controls"][0] |= {"values": ["scatter"], "words": ["scatter"], "start": 0}
    found["controls"][1] |= {"values": [2], "words": ["2"], "start": 0}
    outputs = [new_output("display_data", {RECIPE: found, "image/png": ""})]
    lectures = {"with": [new_code_cell("", outputs=outputs)], "without": [new_code_cell("")]}
    executed = tmp_path / "lectures"
    executed.mkdir()
    for name, cells in lectures.items():
        write(new_notebook(cells=cells), executed / f"{name}.ipynb")
    write(new_notebook(cells=lectures["with"]), executed / "gone.ipynb")  # of an older course
    (name, text), *others = drawn.forms(list(lectures), executed, tmp_path).items()
    assert (name, others) == ("with", [])
    assert "Scatter" in text
    assert (tmp_path / FOLDER / "with.js").is_file()


# Pictures in pieces


def test_a_picture_in_pieces_has_its_title_and_texts_at_their_length():
    figure, _ = draw_pipeline("1F1B", 2, 4)
    root = ElementTree.fromstring("".join(pieces(figure)))
    texts = {each.text: each for each in root.iter("text")}
    assert root.get("aria-label").startswith("Each stage idles")
    assert {"stage 0", "stage 1", "forward", "backward"} <= set(texts)
    assert 30 < float(texts["stage 0"].get("textLength")) < 40
    assert "rotate" not in ElementTree.tostring(root, encoding="unicode")


def test_most_pieces_of_a_round_recur_in_the_next():
    first, second = (set(pieces(draw_round("ring", 4, 8, number)[0])) for number in (1, 2))
    assert len(first & second) > 0.8 * len(first | second)
