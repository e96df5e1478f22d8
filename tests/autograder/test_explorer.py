"""A picture that changes without a kernel, and the planner's: what stands in its states."""

import base64
import gzip
import json
import re

import pytest

from autograder.book import planner
from autograder.book.explorer import Explorer
from byhand.planner import flags

SMALL = "llama3-8b", "8", "h100-80gb", "fp8"
HOLE = re.compile(r"\{\d+\}")


def two_states() -> Explorer:
    options = [("a", "the first"), ("b", "the <second>")]
    states = {("a",): (0, ["1 < 2"]), ("b",): (1, ["x", "y"])}
    return Explorer("two", {"Which": options}, ["<p>{0}</p>", "{1} and {0}, {1}"], states)


def test_a_state_fills_the_holes_of_its_template():
    found = two_states()
    assert found.shown("a") == "<p>1 < 2</p>"
    assert found.shown("b") == "y and x, y"


def test_a_form_names_its_controls_and_begins_where_it_is_told_to():
    form = two_states().form(["b"], "<p>static</p>")
    assert "<label>Which <select>" in form
    assert '<option value="b" selected>the &lt;second&gt;</option>' in form
    assert '<option value="a">' in form
    assert "<fieldset hidden>" in form, "no controls where no script moves them"
    assert "<p>static</p>" in form
    assert "\n\n" not in form, "an empty line ends HTML in Markdown"


def test_what_is_written_is_what_is_shown(tmp_path):
    found = two_states()
    written = unpacked(found.write(tmp_path).read_text())
    assert written["templates"] == found.templates
    assert written["states"] == {"0": [0, "1 < 2"], "1": [1, "x", "y"]}
    assert (tmp_path / "explorers" / "explorer.js").is_file()


def test_what_states_share_is_written_once(tmp_path):
    states = {("a",): (0, ["x", "y"]), ("b",): (0, ["y", "z"]), ("c",): (0, ["x", "y"])}
    found = Explorer("three", {"Which": [(each, each) for each in "abc"]}, ["{*}"], states)
    written = unpacked(found.write(tmp_path).read_text())
    assert written["parts"] == ["x", "y"]
    assert written["states"] == {"0": [0, 0, 1], "1": [0, 1, "z"], "2": "0"}
    assert found.shown("b") == "yz"


def unpacked(script: str) -> dict:
    """What explorer.js finds in a states' file."""
    call = re.fullmatch(r'explorers\.found\("\w+", "(.*)"\);\n', script)
    return json.loads(gzip.decompress(base64.b64decode(call[1])))


def test_a_slider_says_what_each_of_its_places_means():
    form = Explorer("two", {"m": [("0", "4"), ("1", "8")]}, [], {}, {"m": "play"}).form(["1"], "")
    assert '<input type="range" max="1" value="1" data-words="4|8"><span' in form
    assert form.count("<button") == 1


def test_the_script_asks_no_other_host_and_knows_no_planner():
    script = (planner.__file__.rpartition("/")[0]) + "/pages/explorer.js"
    with open(script) as file:
        text = file.read()
    assert "http" not in text
    assert "planner" not in text.lower()
    assert len(text.splitlines()) <= 90


def test_a_state_is_what_the_planner_finds():
    question, found = planner.searched(*SMALL)
    number, values = planner.state(*SMALL)
    text = planner.templates()[number]
    holes = {int(hole[1:-1]) for hole in HOLE.findall(text)}
    assert number == len(found) == planner.MOST
    assert holes == set(range(len(values)))
    assert text.count("<li>") == number
    for _, step in found:
        assert f"{step.seconds:.1f} s, typically within {step.error:.0%}" in " ".join(values)
        assert step.num_bytes <= planner.ROOM * question.machine.memory
    given = question.model, found[0][0], question.num_sequences, question.software, "fp8"
    assert flags.told(*given)[1] in values
    assert any(value.startswith("Extrapolated: ") for value in values)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (("gpt-1t", "8", "h200", "fp8"), "None of "),
        (
            ("llama3-8b", "8", "a100-80gb", "fp8"),
            "Precision is &#x27;fp8&#x27;: a100-80gb has bf16",
        ),
    ],
)
def test_where_there_is_no_plan_a_sentence_stands(chosen, sentence):
    number, values = planner.state(*chosen)
    assert number == 0
    assert values[0].startswith(sentence)


def test_the_static_table_has_states_that_fit():
    states = {chosen: planner.state(*chosen) for chosen in planner.STATIC}
    found = Explorer(planner.NAME, planner.selects(), planner.templates(), states)
    page = planner.page(found)
    assert page.count("<tr>") == 1 + len(planner.STATIC)
    assert page.count(" s, typically within") == len(planner.STATIC)
    assert page.count('" selected>') == len(planner.START)
