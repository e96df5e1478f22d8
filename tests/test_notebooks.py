"""Every notebook that is read or solved runs to its last cell, as papermill runs it."""

from pathlib import Path

import pytest

from autograder.run import Options, find_notebooks, run_notebooks

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.timeout(300)
def test_lectures_and_solutions_run_to_their_last_cell(tmp_path):
    notebooks = find_notebooks([ROOT / "lectures", ROOT / "solutions"])
    results = run_notebooks(notebooks, Options(out=tmp_path, html=False, jobs=2))
    assert [ran.error for ran in results if ran.error] == []


@pytest.mark.timeout(300)
def test_lectures_run_with_another_number_of_ranks(tmp_path):
    lectures = find_notebooks([ROOT / "lectures"])
    options = Options(out=tmp_path, html=False, jobs=2, parameters={"world_size": 2})
    results = run_notebooks(lectures, options)
    assert [ran.error for ran in results if ran.error] == []
