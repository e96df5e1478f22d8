"""`pip install .`, without an extra and not editable: what works does, the rest is a sentence."""

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_course
from test_run import notebook

from autograder.places import COURSE

OURS = ("byhand", "autograder", "__editable__")
WITHOUT = (*OURS, "nbgrader")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The bin/ of an environment with this course and all it needs but nbgrader; no network."""
    home = tmp_path_factory.mktemp("installed")
    tree = home / "tree"
    for folder in ("lib", "autograder"):
        skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(COURSE / folder, tree / folder, ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copyfile(COURSE / name, tree / name)
    say(sys.executable, "-m", "venv", "--without-pip", str(home / "venv"))
    (packages,) = (home / "venv" / "lib").glob("python*/site-packages")
    for path in Path(site.getsitepackages()[0]).iterdir():
        if not path.name.startswith(WITHOUT):
            (packages / path.name).symlink_to(path)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    say(str(home / "venv" / "bin" / "python"), "-m", "pip", "install", *options, str(tree))
    yield home / "venv" / "bin"
    assert not (packages / "build").exists(), "nothing is written beside what was installed"
    assert not (packages / "work").exists()


def say(*command: str, cwd: Path | None = None, status: int = 0) -> str:
    """What a command says, as someone types it who activated no environment."""
    names = ("COURSE", "CLASS", "PYTHONPATH", "VIRTUAL_ENV")
    variables = {name: value for name, value in os.environ.items() if name not in names}
    options = {"capture_output": True, "text": True, "timeout": 100, "cwd": cwd}
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def where(tmp_path):
    where = tiny_course.make_course(tmp_path)
    (where.course / "lectures").mkdir()
    notebook(where.course / "lectures" / "01_tiny.ipynb", "print('a lecture')")
    return where


@pytest.mark.parametrize("command", ["release", "grade", "report", "export"])
def test_what_needs_nbgrader_names_the_extra(installed, where, command):
    said = say(str(installed / "autograder"), command, cwd=where.course, status=1)
    assert said.strip() == (
        "Error: this needs nbgrader, which is not installed: pip install 'byhand[instructor]'"
    )


@pytest.mark.parametrize("command", [["run", "book.ipynb"], ["serve"], ["release"]])
def test_outside_a_course_one_is_asked_for(installed, tmp_path, command):
    said = say(str(installed / "autograder"), *command, cwd=tmp_path, status=1)
    assert f"{tmp_path} is no course" in said
    assert "name it with --course DIR" in said
    assert list(tmp_path.iterdir()) == []


def test_a_lecture_runs_in_the_course_one_stands_in(installed, where):
    say(str(installed / "autograder"), "run", "lectures", "--no-html", cwd=where.course)
    assert (where.course / "build" / "lectures" / "01_tiny.ipynb").exists()


def test_the_pictures_of_earlier_runs_are_installed_too(installed, tmp_path):
    program = "from byhand.figures import recorded; print('<svg' in recorded('layouts').data)"
    assert say(str(installed / "python"), "-c", program, cwd=tmp_path).strip() == "True"
