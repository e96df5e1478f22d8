"""Notebooks are committed without what a run leaves, and with names for their cells."""

import json

import pytest
from test_jobs import full_disk

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


@pytest.mark.parametrize("source", ["run", "x = 1\n    ", "\n  \ny = 2", "\n \n", ""])
def test_normalising_twice_changes_nothing_more(source):
    once = normalised(messy(source=source))
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


def test_the_command_names_what_is_no_notebook_and_goes_on(tmp_path, capsys):
    bad = {"conflict": b"<<<<<<< HEAD", "latin": "é".encode("latin-1"), "old": b'{"nbformat": 3}'}
    for name, data in bad.items():
        (tmp_path / f"{name}.ipynb").write_bytes(data)
    (tmp_path / "whole.ipynb").write_text(messy())
    assert main([str(tmp_path / "gone.ipynb"), str(tmp_path)]) == 1
    *left, last = capsys.readouterr().out.splitlines()
    for name, said in zip(("gone", *bad), left, strict=True):
        assert f"{name}.ipynb: left as it is: " in said
    assert last.endswith("whole.ipynb: normalised")
    assert all((tmp_path / f"{name}.ipynb").read_bytes() == data for name, data in bad.items())


def test_a_disk_too_full_for_a_notebook_leaves_it_as_it_was(tmp_path, capsys):
    path = tmp_path / "book.ipynb"
    path.write_text(messy())
    with full_disk(100):
        assert main([str(path)]) == 1
    assert "book.ipynb: left as it is: " in capsys.readouterr().out
    assert path.read_text() == messy()
