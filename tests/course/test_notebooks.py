"""Every notebook that is read or solved runs to its last cell, as papermill runs it."""

from pathlib import Path

import pytest

from autograder.batch.notebooks import Options, find_notebooks, run_notebooks

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", ["lectures", "solutions"])
def test_notebooks_run_to_their_last_cell(tmp_path, folder):
    run(folder, tmp_path)


@pytest.mark.timeout(600)
def test_lectures_run_with_another_number_of_ranks(tmp_path):
    run("lectures", tmp_path, world_size=2)


def run(folder, out, **parameters):
    options = Options(out=out, html=False, jobs=2, parameters=parameters)
    results = run_notebooks(find_notebooks([ROOT / folder]), options)
    assert [ran.error for ran in results if ran.error] == []
