"""Intake: whatever is handed in becomes the released notebook with the student's work in it."""

import copy
import json
import os
from pathlib import PurePosixPath

import pytest
import tiny_course
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.collect.uploads import File, found_cells, notebook_of, read_file

STUB = (
    'def double(number):\n    """Twice the number."""\n    # YOUR CODE HERE\n'
    "    raise NotImplementedError()"
)
SPECIAL = "it cannot be read (it is a link or a special file)"


@pytest.fixture(scope="module")
def blank(tmp_path_factory):
    return tiny_course.released(tiny_course.make_course(tmp_path_factory.mktemp("intake")))


def sent(notebook) -> bytes:
    return json.dumps(notebook).encode()


def cells(notebook) -> dict:
    return {cell.id: cell for cell in notebook.cells}


def changed(blank, change):
    """The solved notebook after `change`, as restored."""
    notebook = tiny_course.solved(copy.deepcopy(blank))
    change(notebook, cells(notebook))
    return tiny_course.restore(sent(notebook), blank)


def assert_as_released(intake, blank):
    """All cells but the answers are as released."""
    for cell in blank.cells:
        mine = cells(intake.notebook)[cell.id]
        if not cell.metadata.get("nbgrader", {}).get("solution"):
            assert mine == cell


def test_a_right_submission_passes_through_without_a_note(blank):
    intake = changed(blank, lambda notebook, cells: None)
    assert intake.notes == []
    assert cells(intake.notebook)["double"].source == tiny_course.DOUBLE
    assert cells(intake.notebook)["why"].source == tiny_course.WORDS
    assert_as_released(intake, blank)


def edit_test(notebook, cells):
    cells["test-double"].source = "pass"


def delete_test(notebook, cells):
    notebook.cells.remove(cells["test-double"])


def copy_test(notebook, cells):
    notebook.cells.append({**cells["test-double"], "id": "copy", "source": "pass"})


def raise_points(notebook, cells):
    cells["test-double"].metadata.nbgrader.points = 100


def make_solution(notebook, cells):
    cells["test-double"].metadata.nbgrader.solution = True


def tag_test(notebook, cells):
    cells["test-double"].metadata.tags = ["skip-execution"]


def edit_imports(notebook, cells):
    cells["imports"].source = "launch = print"


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (edit_test, "test cell test-double was not as it was given out (edited)."),
        (delete_test, "test cell test-double was not as it was given out (missing)."),
        (copy_test, "test cell test-double was not as it was given out (edited, there 2 times)."),
        (raise_points, "test cell test-double was not as it was given out (points)."),
        (make_solution, "test cell test-double was not as it was given out (solution)."),
        (tag_test, "test cell test-double was not as it was given out (tags)."),
        (edit_imports, "locked cell imports was not as it was given out (edited)."),
    ],
)
def test_changes_to_our_cells_are_undone_and_noted(blank, change, note):
    intake = changed(blank, change)
    assert any(one.startswith(f"The {note}") for one in intake.notes), intake.notes
    assert_as_released(intake, blank)
    assert cells(intake.notebook)["double"].source == tiny_course.DOUBLE


def test_own_cells_stay_in_their_place_as_bare_code(blank):
    def add(notebook, cells):
        at = notebook.cells.index(cells["double"])
        notebook.cells.insert(at, new_code_cell("helper = 1", metadata={"tags": ["parameters"]}))

    names = [cell.id for cell in changed(blank, add).notebook.cells]
    assert names[names.index("double") - 1] == "own-1"
    own = cells(changed(blank, add).notebook)["own-1"]
    assert (own.source, own.metadata, own.outputs) == ("helper = 1", {}, [])


def test_of_two_copies_of_an_answer_the_last_changed_one_counts_and_the_other_runs_before(blank):
    def split(notebook, cells):
        at = notebook.cells.index(cells["double"])
        notebook.cells.insert(at, {**cells["double"], "id": "half", "source": "first = 1"})
        unchanged = next(cell for cell in blank.cells if cell.id == "double")
        notebook.cells.append({**unchanged, "id": "stub"})

    restored = changed(blank, split).notebook
    assert cells(restored)["double"].source == tiny_course.DOUBLE
    before = restored.cells[[c.id for c in restored.cells].index("double") - 1]
    assert before.source == "first = 1"


def paste(notebook, cell, *sources: str):
    """Copies of a cell at the end, with these texts and the marks that JupyterLab leaves."""
    for source in sources or [cell.source]:
        pasted = {"id": f"pasted-{len(notebook.cells)}", "source": source}
        notebook.cells.append({**copy.deepcopy(cell), **pasted})


def test_a_first_try_kept_below_the_test_runs_there_and_the_answer_above_counts(blank):
    intake = changed(
        blank, lambda notebook, cells: paste(notebook, cells["double"], "double = None")
    )
    assert cells(intake.notebook)["double"].source == tiny_course.DOUBLE
    assert [cell.id for cell in intake.notebook.cells][-2:] == ["why", "own-1"]
    assert cells(intake.notebook)["own-1"].source == "double = None"
    assert [note for note in intake.notes if "The last change above counts" in note]


def answer_below(notebook, cells):
    """In two halves; the cell above the test is as it was given out."""
    paste(notebook, cells["double"], "first = 1", tiny_course.DOUBLE)
    cells["double"].source = STUB


def half_below(notebook, cells):
    """The half above the test answers nothing."""
    paste(notebook, cells["double"], tiny_course.DOUBLE)
    cells["double"].source = "first = 1"


def answer_and_test_below(notebook, cells):
    """In two halves, with its test once more; a wrong one stands above the test."""
    paste(notebook, cells["double"], "first = 1", tiny_course.DOUBLE)
    paste(notebook, cells["test-double"])
    cells["double"].source = "double = None"


@pytest.mark.parametrize("write", [answer_below, half_below, answer_and_test_below])
def test_an_answer_that_stands_below_its_test_is_the_one_that_was_tested_there(blank, write):
    intake = changed(blank, write)
    assert cells(intake.notebook)["double"].source == tiny_course.DOUBLE
    before = [cell.id for cell in intake.notebook.cells].index("double") - 1
    assert intake.notebook.cells[before].source == "first = 1"
    assert not [note for note in intake.notes if "The last change above counts" in note]


def test_a_deleted_answer_leaves_room_for_the_same_function_in_another_cell(blank):
    def lose_the_name(notebook, cells):
        cells["double"].metadata = {}
        cells["double"].id = "elsewhere"

    intake = changed(blank, lose_the_name)
    assert cells(intake.notebook)["double"].source == ""
    assert cells(intake.notebook)["own-1"].source == tiny_course.DOUBLE
    assert intake.notes == [
        "The cell double was not as it was given out (missing). Your last change to it counts,"
        " and so do your other cells."
    ]


def words_below(notebook, cells):
    """In two new cells, with code of the student's own between them; its own cell is untouched."""
    cells["why"].source = "YOUR ANSWER HERE"
    notebook.cells += [new_markdown_cell("Because."), new_code_cell("1 + 1")]
    notebook.cells += [new_markdown_cell("And so.")]


def words_split(notebook, cells):
    """As JupyterLab splits a cell, which leaves both halves its marks."""
    cells["why"].source = "Because."
    paste(notebook, cells["why"], "And so.")


def words_with_a_note(notebook, cells):
    """What is below an answer, or anywhere else, is nobody's answer."""
    cells["why"].source = "Because.\n\nAnd so."
    notebook.cells.append(new_markdown_cell("To do: ask about this."))
    notebook.cells.insert(4, new_markdown_cell("To do: test with 3."))


@pytest.mark.parametrize("write", [words_below, words_split, words_with_a_note])
def test_an_answer_in_words_is_all_that_was_written_in_its_cell_or_else_below_it(blank, write):
    assert cells(blank)["why"].source == "YOUR ANSWER HERE"
    intake = changed(blank, write)
    assert cells(intake.notebook)["why"].source == "Because.\n\nAnd so."
    below = "The cell why was as it was given out: what stands right below it counts"
    assert [note for note in intake.notes if below in note] or write != words_below
    assert_as_released(intake, blank)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "No notebook was found"),
        (b" \n", "The notebook file is empty"),
        (b'{"cells": [', "not a readable notebook (line 1"),
        (b"\xff\xfe\x00", "not a readable notebook"),
        (b"[1, 2]", "it holds no cells"),
        (b'{"cells": 3}', "it holds no cells"),
        (b'{"cells": [3, null, {"cell_type": "code3"}]}', "it holds no cells"),
        (b"[" * 200_000, "not a readable notebook"),
        (b'{"cells": [' + b"9" * 10_000 + b"]}", "not a readable notebook"),
    ],
)
def test_what_is_no_notebook_is_graded_as_a_blank_one(blank, data, why):
    assert tiny_course.restore(data, blank).notebook == blank
    assert why in found_cells(data)[1]


@settings(max_examples=60)
@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda some: (
            st.lists(some, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["cells", "cell_type", "source", "metadata", "nbgrader", "grade_id", "id"]
                ),
                some,
                max_size=4,
            )
        ),
    ).map(lambda value: json.dumps({"cells": [value]}).encode())
)
def test_no_bytes_make_intake_raise(blank, data):
    assert len(tiny_course.restore(data, blank).notebook.cells) >= len(blank.cells)


def test_links_pipes_and_huge_files_are_not_read(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert read_file(tmp_path / "link.ipynb") == (None, SPECIAL)
    assert read_file(tmp_path / "pipe.ipynb") == (None, SPECIAL)
    assert read_file(tmp_path / "secret", limit=5) == (None, "it is larger than 0 MB")


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        ({"notes.ipynb": 9, "My tiny (2).ipynb": 1}, "My tiny (2).ipynb"),
        ({"tiny.ipynb": 1, "tiny-1.ipynb": 2}, "tiny-1.ipynb"),
        ({"my tiny.ipynb": 1, "tiny.ipynb": 1}, "tiny.ipynb"),
        ({"tiny.txt": 2, "homework.ipynb.txt": 1}, "homework.ipynb.txt"),
        ({"tiny.pdf": 1}, None),
    ],
)
def test_the_notebook_is_the_newest_that_is_named_after_the_assignment(files, chosen):
    found = [File(PurePosixPath(name), bytes, newness) for name, newness in files.items()]
    assert getattr(notebook_of(found, "tiny"), "path", None) == (chosen and PurePosixPath(chosen))
