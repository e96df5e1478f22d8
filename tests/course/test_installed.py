"""A release holds all; alone, `byhand` launches; an extra's absence is a sentence."""

import importlib.metadata
import json
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import arrows
import pytest
import tiny_course
import yaml
from packaging.requirements import Requirement
from test_run import notebook

from autograder.places import COURSE, is_course

PACKAGES = Path(site.getsitepackages()[0])
OURS = ("byhand", "autograder", "__editable__", "__pycache__")
WRITTEN = ("build", "work")  # by a course, in its folder; the first is also the name of a package
COPIED = re.findall(r"(?m)^COPY --chown=student (.*)$", (COURSE / "Dockerfile").read_text())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Where a wheel lies, and the source that it was built from: as `make release`, but of what
    the Dockerfile copies; no network."""
    home = tmp_path_factory.mktemp("built")
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (name for line in COPIED for name in line.split()[:-1]):
        if (COURSE / name).is_dir():
            shutil.copytree(COURSE / name, home / name, ignore=skipped)
        else:
            shutil.copyfile(COURSE / name, home / name)
    say(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(home), str(home))
    return home


@pytest.fixture(scope="module")
def wheel(built):
    (made,) = built.glob("byhand-*.whl")
    return made


def pip(*arguments: str) -> None:
    say(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments)


def environment(home: Path, wheel: Path, others: set[str]) -> Path:
    """The bin/ of an environment with the wheel and, by links, some of what is installed here."""
    say(sys.executable, "-m", "venv", "--without-pip", str(home))
    (packages,) = home.glob("lib/python*/site-packages")
    for name in others:
        (packages / name).symlink_to(PACKAGES / name)
    python = str(home / "bin" / "python")
    pip("--python", python, "install", "--no-deps", "--no-index", str(wheel))
    return home / "bin"


def brought_by(requirements: list[str]) -> set[str]:
    """What requirements, and those of what they name, put into the folder of packages."""
    wanted, found = [Requirement(one) for one in requirements], {}
    while wanted:
        one = wanted.pop()
        if one.name not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found[one.name] = importlib.metadata.distribution(one.name)
            wanted += [Requirement(text) for text in found[one.name].requires or []]
    return {file.parts[0] for one in found.values() for file in one.files} - {"..", "__pycache__"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory, wheel):
    """The bin/ of an environment with this course and all that its extras bring."""
    home = tmp_path_factory.mktemp("installed")
    skipped = (*OURS, *WRITTEN)
    others = {path.name for path in PACKAGES.iterdir() if not path.name.startswith(skipped)}
    yield environment(home, wheel, others)
    (packages,) = home.glob("lib/python*/site-packages")
    beside = [name for name in WRITTEN if (packages / name).exists()]
    assert beside == [], "nothing is written beside what was installed"


@pytest.fixture(scope="module")
def alone(tmp_path_factory, wheel):
    """The bin/ of an environment with this course and its dependencies, without any extra's."""
    project = tomllib.loads((COURSE / "pyproject.toml").read_text())["project"]
    return environment(tmp_path_factory.mktemp("alone"), wheel, brought_by(project["dependencies"]))


def say(*command: str, cwd: Path | None = None, status: int = 0) -> str:
    """What a command says, as someone types it who activated no environment."""
    names = ("COURSE", "CLASS", "PYTHONPATH", "VIRTUAL_ENV")
    variables = {name: value for name, value in os.environ.items() if name not in names}
    options = {"capture_output": True, "text": True, "cwd": cwd}
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def where(tmp_path):
    where = tiny_course.make_course(tmp_path)
    (where.course / "lectures").mkdir()
    notebook(where.course / "lectures" / "01_tiny.ipynb", "print('a lecture')")
    return where


def test_the_wheel_and_its_source_hold_every_file_of_the_packages(built, wheel):
    folders = (COURSE / "lib" / "byhand", COURSE / "autograder")
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files = {path.relative_to(COURSE) for path in paths if "__pycache__" not in path.parts}
    assert {".py", ".svg", ".csv", ".json", ".html", ".css", ".typed"} <= {f.suffix for f in files}
    in_wheel = set(ZipFile(wheel).namelist())
    assert {str(f).removeprefix("lib/") for f in files} - in_wheel == set()
    (source,) = built.glob("byhand-*.tar.gz")
    in_source = {name.partition("/")[2] for name in tarfile.open(source).getnames()}
    assert {*map(str, files), "README.md", "LICENSE", "LICENSE-TEXT"} - in_source == set()


def test_an_image_and_a_devcontainer_have_a_course_to_open(built):
    assert is_course(built)
    container = json.loads((COURSE / ".devcontainer" / "devcontainer.json").read_text())
    dockerfile = COURSE / ".devcontainer" / container["build"]["dockerfile"]
    assert dockerfile.resolve() == COURSE / "Dockerfile"


def test_the_version_is_the_same_wherever_it_is_said(installed):
    version = tomllib.loads((COURSE / "pyproject.toml").read_text())["project"]["version"]
    assert say(str(installed / "autograder"), "--version").split()[-1] == version
    citation = yaml.safe_load((COURSE / "CITATION.cff").read_text())
    assert citation["version"] == version
    first = re.search(r"(?m)^## (\S+), (\S+)$", (COURSE / "CHANGELOG.md").read_text())
    assert first.groups() == (version, str(citation["date-released"]))


def test_byhand_alone_brings_no_package_of_the_extras(alone):
    names = ["jupyterlab", "nbgrader", "papermill", "submitit", "sphinx", "click"]
    program = f"from importlib.util import find_spec\nprint(list(filter(find_spec, {names})))"
    assert say(str(alone / "python"), "-c", program).strip() == "[]"


CELLS = """
import torch.distributed as dist
from byhand import DeadlockError, launch

%load_ext byhand
get_ipython().run_cell_magic("ranks", "4", "dist.barrier(); rank * 10")
try:
    launch(lambda rank, world_size: rank == 1 or dist.barrier(), 3)
except DeadlockError as error:
    print(error)
"""


def test_byhand_alone_has_all_it_imports_launches_cells_and_explains_a_deadlock_in_ipython(
    alone, tmp_path
):
    imports = {name: also for name, also in arrows.imports(COURSE).items() if "byhand" in name}
    names = sorted({*imports, *set().union(*imports.values())} - {"autograder", *arrows.OPTIONAL})
    everything = f"from importlib import import_module\nfor one in {names}: import_module(one)\n"
    (tmp_path / "cells.ipy").write_text(CELLS + everything)
    python = str(alone / "python")
    said = say(python, "-m", "IPython", "--colors=NoColor", "cells.ipy", cwd=tmp_path)
    assert all(f"rank {rank}  {rank * 10}" in said for rank in range(4))
    assert "barrier" in said.partition("rank 3  30")[2]
    assert "Error" not in said.replace("DeadlockError", ""), said


def test_the_command_says_from_anywhere_how_it_is_used(alone, tmp_path):
    said = say(str(alone / "python"), "-m", "byhand", "--help", cwd=tmp_path)
    assert said.startswith("usage: python -m byhand")


def test_the_doctor_says_that_lectures_run_where_byhand_is_alone(alone, tmp_path):
    said = say(str(alone / "python"), "-m", "byhand.tools.doctor", cwd=tmp_path)
    assert said.strip().endswith("The lectures run here.")


@pytest.mark.parametrize("command", ["run", "serve", "release", "grade", "report", "export"])
def test_what_needs_an_extra_names_it(alone, where, command):
    said = say(str(alone / "autograder"), command, cwd=where.course, status=1)
    assert said.strip() == (
        "Error: this needs click, which is not installed: pip install 'byhand[instructor]'"
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
    program = "from byhand.figures import recorded; print('<svg' in recorded('two_hosts').data)"
    assert say(str(installed / "python"), "-c", program, cwd=tmp_path).strip() == "True"
