"""Notebooks are committed without what a run leaves, and with names for their cells."""

import json

import pytest

from autograder.release.normalise import is_readable, main, normalised


def messy(**changes) -> str:
    cell = {
        "cell_type": "code",
        "id": "a3f8c09d",
        "source": ["run = launch(step, 4)  \n", "run"],
        "metadata": {"execution": {"iopub": "now"}, "tags": ["parameters"]},
        "outputs": [{"output_type": "stream", "name": "stdout", "text": ["hello"]}],
        "execution_count": 7,
    }
    kernel = {"name": "my-env", "display_name": "mine"}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel, "x": 1}}
    return json.dumps({**book, "cells": [{**cell, **changes}, cell]})


def test_normalising_removes_what_a_run_leaves_and_names_the_cells():
    book = json.loads(normalised(messy()))
    first, second = book["cells"]
    assert (first["outputs"], first["execution_count"]) == ([], None)
    assert first["metadata"] == {"tags": ["parameters"]}
    assert (first["id"], second["id"]) == ("run-launch-step-run", "run-launch-step-run-2")
    assert first["source"] == ["run = launch(step, 4)\n", "run"]
    assert sorted(book["metadata"]) == ["kernelspec", "language_info"]


def test_normalising_twice_changes_nothing_more():
    once = normalised(messy())
    assert normalised(once) == once


def test_a_name_an_author_gave_stays():
    named = {"nbgrader": {"grade_id": "test-ring"}}
    assert json.loads(normalised(messy(id="the-ring")))["cells"][0]["id"] == "the-ring"
    assert json.loads(normalised(messy(metadata=named)))["cells"][0]["id"] == "test-ring"


@pytest.mark.parametrize(
    ("tags", "folds"),
    [
        (["hide-input"], {"source_hidden": True}),
        (["hide-input", "hide-output"], {"outputs_hidden": True, "source_hidden": True}),
        (["parameters"], None),
    ],
)
def test_what_a_page_folds_jupyterlab_folds_and_nothing_else(tags, folds):
    metadata = {"tags": tags, "jupyter": {"outputs_hidden": True}}
    cell = json.loads(normalised(messy(metadata=metadata)))["cells"][0]
    assert cell["metadata"].get("jupyter") == folds


def test_a_folded_test_cell_stays_folded():
    metadata = {"nbgrader": {"grade_id": "test-ring"}, "jupyter": {"source_hidden": True}}
    cell = json.loads(normalised(messy(metadata=metadata)))["cells"][0]
    assert cell["metadata"] == metadata


@pytest.mark.parametrize("letters", ["a3f8c09d", "3f2a91c4-77aa", "fb0c4a6e-1d2f-4c8e", "Ring", ""])
def test_an_editors_random_letters_are_no_name(letters):
    assert not is_readable(letters)


def test_the_command_says_what_is_not_normal_and_mends_it(tmp_path, capsys):
    path = tmp_path / "book.ipynb"
    path.write_text(messy())
    assert main([str(tmp_path)]) == 1
    assert main([str(tmp_path)]) == 0
    assert "book.ipynb: normalised" in capsys.readouterr().out
