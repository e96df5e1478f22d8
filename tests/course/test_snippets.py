"""What README and CONTRIBUTING print to be pasted runs as it is printed."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence

import answers
import nbformat
import pytest

from autograder import cli
from autograder.batch.notebooks import find_notebooks
from autograder.places import COURSE
from byhand.runtime.walls.isolation import why_no_sandbox

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [COURSE / "README.md", COURSE / "CONTRIBUTING.md"]
BLOCKS = [(page.name, *block) for page in PAGES for block in FENCE.findall(page.read_text())]
PYTHON = [text for _, language, text in BLOCKS if language == "python"]
SAID = [text for _, language, text in BLOCKS if language == "text"]
LINES = [
    (name, line.partition("#")[0].strip())
    for name, language, text in BLOCKS
    if not language
    for line in text.splitlines()
    if line
]
TEACHING = [line for name, line in LINES if name == "README.md" and "autograder" in line]
CLASS = [line for line in TEACHING if "--slurm" not in line and "--backend" not in line]
CLUSTER = [line for line in TEACHING if line not in CLASS]
HELP = re.findall(r"autograder run .*", cli.main.commands["run"].help)
RUNS = [*HELP, *(line for line in CLUSTER if line.startswith("autograder run"))]
MAKE = [line for _, line in LINES if line.startswith("make")]
PROGRAM = [line for _, line in LINES if line.startswith("python -m byhand")]
PAGE = (COURSE / "autograder" / "README.md").read_text()
FENCED = [
    line.partition("#")[0].strip() for _, text in FENCE.findall(PAGE) for line in text.splitlines()
]
TOLD = [*re.findall(r"`(autograder [^`]+)`", FENCE.sub("", PAGE))]
TOLD += [line for line in FENCED if line.startswith("autograder ")]
ONE_TEST = [line for name, line in LINES if name == "CONTRIBUTING.md"]


def said(command, **options) -> str:
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, **kept, **options)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_every_line_is_tried_by_one_of_these():
    assert len(PYTHON) == len(SAID) == 1
    assert {language for _, language, _ in BLOCKS} == {"", "python", "text"}
    activate = ". .venv/bin/activate"  # test_make_course does
    tried = {*CLASS, *CLUSTER, *MAKE, *PROGRAM, *ONE_TEST, activate}
    assert len(PROGRAM) == 1
    assert {line for _, line in LINES} <= tried
    assert len(CLASS) == 5
    assert len(CLUSTER) == 3


def test_the_hang_in_a_cell_of_seven_lines_ends_in_the_sentence_as_printed(tmp_path):
    assert len([line for line in PYTHON[0].splitlines() if line]) == 7
    (tmp_path / "cell.ipy").write_text(f"get_ipython().run_cell({PYTHON[0]!r}, store_history=True)")
    command = [sys.executable, "-m", "IPython", "--colors=NoColor", "cell.ipy"]
    ended = said(command, cwd=tmp_path)
    assert SAID[0].split() == ended[ended.index("DeadlockError:") :].split("\n\n")[0].split()


def test_a_program_runs_by_the_line_as_pasted(tmp_path):
    (tmp_path / "train.py").write_text("import os, sys\nprint(os.environ['RANK'], sys.argv[1:])")
    words = [sys.executable, *shlex.split(PROGRAM[0])[1:]]
    assert "[3] 3 ['--its', 'own', '--arguments']" in said(words, cwd=tmp_path)


@pytest.mark.parametrize("line", MAKE)
def test_make_knows_the_target(line):
    said(["make", "--dry-run", *line.split()[1:]], cwd=COURSE)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`make ([a-z-]+)", PAGES[0].read_text()))))
def test_make_knows_the_target_in_a_sentence(name):
    said(["make", "--dry-run", name], cwd=COURSE)


@pytest.mark.skipif(bool(why_no_sandbox()), reason=f"no sandbox: {why_no_sandbox()}")
def test_an_instructors_day_runs_as_it_is_printed(tmp_path):
    """From exercises to grades.csv, on a course of one exercise, with one student who is right."""
    for name in ("solutions/01_ranks", "exercises/01_ranks"):
        shutil.copytree(COURSE / name, tmp_path / name)
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.writestr(
            "ada/ranks.ipynb", nbformat.writes(nbformat.from_dict(answers.full("01_ranks")))
        )
    commands = [shlex.split(line) for line in CLASS]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    here = {**os.environ, "COURSE": str(tmp_path), "PATH": path}
    here.pop("CLASS", None)
    for command in commands:
        said(command, cwd=tmp_path, env=here)
    assert "01_ranks,ada,6,6" in (tmp_path / "grades.csv").read_text()
    assert list(tmp_path.rglob("feedback/ada/01_ranks/ranks.html"))


@pytest.mark.parametrize("line", CLUSTER)
def test_the_commands_for_a_cluster_are_understood(line):
    """The tests of Slurm run their like on a cluster."""
    _, name, *arguments = shlex.split(line)
    cli.main.commands[name].make_context(name, arguments)


def allowed(comment: str) -> Sequence[int]:
    """What a parameter may be, as its comment says: "at least 2", "2 to 8", or "2, 4 or 8"."""
    words = comment.partition(";")[0]
    numbers = list(map(int, re.findall(r"\d+", words)))
    if "at least" in words:
        return range(numbers[0], 1000)
    return range(numbers[0], numbers[-1] + 1) if " to " in words else numbers


@pytest.mark.parametrize("line", RUNS)
def test_a_printed_run_gives_parameters_that_all_its_lectures_allow(line):
    given = cli.main.commands["run"].make_context("run", shlex.split(line)[2:]).params
    for lecture in find_notebooks(COURSE / path for path in given["paths"]):
        source = "\n".join(cell.source for cell in nbformat.read(lecture, as_version=4).cells)
        for name, value in given["parameters"].items():
            if told := re.search(rf"^{name} = .*#(.*)$", source, re.MULTILINE):
                assert value in allowed(told[1]), f"{lecture.name}: {told[0]}, not {value}"


@pytest.mark.parametrize("line", TOLD)
def test_what_the_page_for_who_teaches_names_exists(line):
    """The command, its options, and the assignment that it is given."""
    _, *words = shlex.split(line)
    asked = cli.main if words[0].startswith("--") else cli.main.commands[words[0]]
    known = {word for option in asked.params for word in option.opts}
    options = {word for word in words if word.startswith("--")}
    assert options <= known, line
    stems = {word for word in words if re.match(r"\d\d_", word)}
    assert stems <= set(answers.STEMS), line


def test_the_page_for_who_teaches_names_the_commands_of_a_week():
    named = {line.split()[1] for line in TOLD}
    assert named >= {"demo", "release", "collect", "grade", "report", "similarity", "export"}
    assert {"--slurm", "--again", "--fill"} <= {word for line in TOLD for word in line.split()}


@pytest.mark.answers
@pytest.mark.parametrize("line", ONE_TEST)
def test_one_test_runs_as_it_is_printed(line):
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    alone = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST")}
    said(shlex.split(line), cwd=COURSE, env={**alone, "PATH": path})
