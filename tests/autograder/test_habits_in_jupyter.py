"""The honest notebooks of the corpus are right: they pass their tests in Jupyter, hidden ones too.

CORPUS=all in the environment runs each of them, as who adds one should; else some of each kind.
"""

import os

import corpus
import in_jupyter
import pytest

CASES = corpus.HABITS if os.environ.get("CORPUS") == "all" else corpus.HABITS[::9]
pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return in_jupyter.make_course(tmp_path_factory.mktemp("course"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_notebook_runs_from_the_first_cell_to_the_last(course, tmp_path, monkeypatch, case):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    (tmp_path / "work").mkdir()
    assert in_jupyter.trouble(case, course, tmp_path / "work") == ""
