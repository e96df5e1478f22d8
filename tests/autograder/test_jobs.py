"""Grading with workers, in shards, and again after an end of any kind: nothing lost, none twice."""

import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
import soak
import tiny_course
import zmq
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader import api
from waiting import wait_until

from autograder.batch import queue
from autograder.batch.grade_work import GradeWork
from autograder.batch.grading import GradeOptions, alone, grade
from autograder.grade.journal import Journal, Judgement
from autograder.grade.verdicts import passed
from autograder.grade.warm_kernel import Verdicts, WarmKernel, case_of
from autograder.kernel import Kernel, kernel_folder
from autograder.places import CourseError
from autograder.release.generate import GradebookError
from autograder.release.rules import KERNELSPEC
from byhand.runtime.walls.isolation import why_no_sandbox

NAME = [tiny_course.ASSIGNMENT]
WALLS = not why_no_sandbox()
OPTIONS = GradeOptions(sandboxed=False, progress=False)
GRADE = """
import json, sys
from pathlib import Path
from autograder.batch.grading import GradeOptions, grade
from autograder.places import Places
options = GradeOptions(sandboxed=json.loads(sys.argv[3]), progress=False, jobs=2)
where = Places(Path(sys.argv[1]), Path(sys.argv[2]))
try:
    print(grade(where, where.assignments(), [], options).new)
except KeyboardInterrupt:
    sys.exit("interrupted")
"""


@pytest.fixture
def where(tmp_path):
    """Four hand-ins: ada right, ben blank, cem half right, dee no notebook."""
    return soak.make_class(tmp_path)


@pytest.fixture
def asked(monkeypatch):
    """A judge that gives every point at once; the list grows by each time it is asked."""
    calls = []

    def judge(self, case, seed):
        calls.append(case)
        return Verdicts([passed(q.name, q.points, 0.1) for q in case.questions], [])

    monkeypatch.setattr(WarmKernel, "judge", judge)
    return calls


def points(judgements) -> dict[str, int]:
    return {judgement.student: judgement.points for judgement in judgements}


# Processes


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_interrupted_and_with_a_kernel_killed_a_class_gets_its_marks(where):
    command = [sys.executable, "-c", GRADE, str(where.course), str(where.class_dir)]
    process = subprocess.Popen([*command, str(WALLS).lower()], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: Journal(where.journal).latest())
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == "interrupted\n"
    known = len(Journal(where.journal).latest())
    assert 1 <= known <= 4

    graded = threading.Event()
    killer = threading.Thread(target=kill_a_kernel, args=(graded,))
    killer.start()
    outcome = grade(where, NAME, [], GradeOptions(sandboxed=WALLS, progress=False, jobs=2))
    graded.set()
    killer.join()
    assert (outcome.failures, outcome.new) == ([], 4 - known)
    assert points(outcome.judgements) == {"ada": 5, "ben": 0, "cem": 3, "dee": 0}


def kill_a_kernel(graded: threading.Event) -> None:
    """End the first kernel that this process starts, if it starts one before all is graded."""

    def kernels() -> list[psutil.Process]:
        return [p for p in psutil.Process().children() if "ipykernel_launcher" in p.cmdline()]

    wait_until(lambda: kernels() or graded.is_set())
    for process in kernels()[:1]:
        process.kill()


# The queue


@dataclass
class Toy:
    """Work that notes what is done, and has a doubt where an item says so."""

    refused: str = ""

    def __post_init__(self):
        self.did, self.met, self.ended = [], threading.Barrier(2), []

    @contextlib.contextmanager
    def worker(self):
        if self.refused:
            raise CourseError(self.refused)
        yield self.do, lambda: self.ended.append(True)
        self.did.append("a worker's end")

    def do(self, item):
        self.did.append(item)
        if item == "meets":
            self.met.wait()
        if item == "waits":
            wait_until(lambda: self.ended)
        return 1 / 0 if item == "fails" else f"{item} after {self.did.count(item)}"

    def is_doubtful(self, result):
        return result.startswith("slow")


def results(found) -> list:
    return [report.result for report in found]


def test_items_are_done_side_by_side_and_one_that_raises_costs_itself_alone():
    found = list(queue.here(2)(Toy(), ["meets", "meets", "fails", "plain"]))
    assert sorted(report.item for report in found if report.result) == [0, 1, 3]
    assert [r.why for r in found if not r.result] == ["ZeroDivisionError: division by zero"]


def test_what_is_in_doubt_beside_others_is_done_again_alone_at_the_end():
    toy = Toy()
    assert results(queue.here(2)(toy, ["slow", "b"])) == ["b after 1", "slow after 2"]
    assert toy.did[-3:] == ["a worker's end", "slow", "a worker's end"]
    assert results(queue.here(1)(Toy(), ["slow"])) == ["slow after 1"]


@pytest.mark.parametrize("kind", ["timeout", "failed"])
def test_a_question_that_took_too_long_is_what_grading_doubts(kind):
    verdict = replace(passed("test-double", 2, 6.0), verdict=kind)
    line = Judgement("", "ada", NAME[0], "", 1, "none", 6.0, [], [verdict]).as_line().decode()
    assert GradeWork(None, {}, "").is_doubtful(line) == (kind == "timeout")


def test_closing_the_queue_ends_what_runs_and_begins_nothing_more():
    toy = Toy()
    found = queue.here(1)(toy, ["a", "waits", "b"])
    assert next(found).result == "a after 1"
    wait_until(lambda: "waits" in toy.did)
    found.close()
    assert toy.did == ["a", "waits", "a worker's end"]


def test_work_that_cannot_be_done_here_is_a_sentence():
    with pytest.raises(CourseError, match="another torch"):
        list(queue.here(2)(Toy("this node has another torch"), ["a"]))
    assert list(queue.here(2)(Toy(), [])) == []


def test_one_worker_goes_from_one_work_to_the_other_and_each_has_its_own_reports():
    first, second, taken = Toy(), Toy(), []
    both = queue.together(queue.here(1), first, ["a", "fails"], taken.append)
    assert results(both(second, ["slow", "b"])) == ["slow after 1", "b after 1"]
    assert [(r.item, r.result, r.why) for r in taken] == [
        (0, "a after 1", ""),
        (1, None, "ZeroDivisionError: division by zero"),
    ]
    assert (first.did, second.did[:2]) == (["a", "fails", "a worker's end"], ["slow", "b"])


def test_what_one_work_doubts_is_done_again_alone_though_the_other_has_none():
    second, taken = Toy(), []
    both = queue.together(queue.here(2), Toy(), ["meets", "meets"], taken.append)
    assert results(both(second, ["slow"])) == ["slow after 2"]
    assert sorted(report.item for report in taken) == [0, 1]


def test_closing_two_works_ends_what_runs_of_either():
    first = Toy()
    found = queue.together(queue.here(2), first, ["waits"], lambda _: None)(Toy(), ["a", "b"])
    assert next(found).result == "a after 1"
    wait_until(lambda: "waits" in first.did)
    found.close()
    assert first.did == ["waits", "a worker's end"]


def test_a_submission_that_is_lost_is_not_scored_and_not_the_end(where, monkeypatch):
    def lost(work, items):
        yield from (queue.Report(number, None, "it ended") for number in range(len(items)))

    outcome = grade(where, NAME, [], replace(OPTIONS, queue=lost))
    assert outcome.judgements == []
    assert outcome.failures[0] == "ada, 01_tiny could not be judged: it ended"
    assert Journal(where.journal).latest() == []


# What is judged


def test_only_what_changed_is_judged_and_again_judges_all(where, asked):
    blank = tiny_course.released(where)
    assert grade(where, NAME, [], OPTIONS).new == 4
    tiny_course.hand_in(where, "ben", tiny_course.solved(blank))
    assert grade(where, NAME, [], OPTIONS).new == 1
    assert (
        grade(where, NAME, ["ada"], GradeOptions(again=True, sandboxed=False, progress=False)).new
        == 1
    )
    assert len(asked) == 5  # dee's, which cannot be read, is no question to anybody


def test_what_is_handed_in_again_as_it_was_before_counts_again(where, asked):
    blank = tiny_course.released(where)
    first = grade(where, NAME, ["ben"], OPTIONS).judgements[0]
    tiny_course.hand_in(where, "ben", tiny_course.solved(blank))
    grade(where, NAME, ["ben"], OPTIONS)
    tiny_course.hand_in(where, "ben", blank)
    assert grade(where, NAME, ["ben"], OPTIONS).new == 0
    assert Journal(where.journal).latest() == [first]


@pytest.mark.soak
def test_five_judgings_with_the_recorded_seed_give_the_same_scores(where):
    source = tiny_course.source()
    student = tiny_course.restore(
        (where.submitted / "cem" / NAME[0] / "tiny.ipynb").read_bytes(), tiny_course.released(where)
    ).notebook
    with WarmKernel(sandboxed=False) as kernel:
        found = [kernel.judge(case_of(source, student), seed=7).verdicts for _ in range(5)]
    assert {(v.question, v.verdict, v.points) for one in found for v in one} == {
        ("test-double", "failed", 0),
        ("test-total", "passed", 3),
    }


# Ends of any kind


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_killed_at_twenty_random_points_a_gradebook_is_as_without_a_kill():
    script = Path(__file__).with_name("soak.py")
    about = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, script, "20", "--pretend"]
    done = subprocess.run(command, capture_output=True, text=True, env=about)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "every gradebook as without a kill; 0 processes left" in done.stdout


@pytest.fixture
def expected(where, asked, tmp_path):
    """The rows of a gradebook that nothing disturbed."""
    other = type(where)(where.course, tmp_path / "other")
    shutil.copytree(where.submitted, other.submitted)
    grade(other, NAME, [], OPTIONS)
    return soak.rows(other.gradebook)


@contextlib.contextmanager
def full_disk(num_bytes: int):
    """No file of this process can grow beyond this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def tables(where) -> set[str]:
    with contextlib.closing(sqlite3.connect(where.gradebook)) as database:
        found = database.execute("select name from sqlite_master where type = 'table'")
        return {name for (name,) in found}


@pytest.mark.parametrize("num_bytes", [10_000, 100_000])
def test_a_disk_too_full_for_a_gradebook_leaves_none(where, expected, num_bytes):
    with full_disk(num_bytes), pytest.raises((OSError, GradebookError)):
        grade(where, NAME, [], OPTIONS)
    assert list(where.class_dir.glob("*gradebook*")) + list(where.class_dir.glob(".gra*")) == []
    grade(where, NAME, [], OPTIONS)
    assert soak.rows(where.gradebook) == expected
    assert "alembic_version" in tables(where)


def test_a_gradebook_is_there_whole_or_not_at_all(where, asked, monkeypatch):
    class Killed(BaseException):
        """In the middle of what nbgrader does to make one."""

    def killed():
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(api, "get_alembic_version", killed)
        with pytest.raises(Killed):
            grade(where, NAME, [], OPTIONS)
    assert not where.gradebook.exists()
    grade(where, NAME, [], OPTIONS)
    assert "alembic_version" in tables(where)


KERNEL = """
import time
from autograder.kernel import kernel_folder
with kernel_folder() as folder:
    (folder / "case").write_text("a hidden test")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def two_kernels(tmp_path, monkeypatch):
    """Two processes that hold a kernel's folder each, and where."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    about = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", KERNEL]
    made = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=about) for _ in range(2)
    ]
    yield [(process, Path(process.stdout.readline().strip())) for process in made]
    for process in made:
        process.kill()
        process.communicate()


def test_what_a_killed_process_left_of_its_kernel_goes_and_what_lives_stays(two_kernels):
    (dead, left), (_, living) = two_kernels
    assert (left / "case").exists()
    dead.kill()
    dead.wait()
    with kernel_folder() as own:
        assert own.parent == left.parent == living.parent
        assert {*own.parent.iterdir()} == {own, living}
        assert own.parent.stat().st_mode & 0o777 == own.stat().st_mode & 0o777 == 0o700
    assert {*own.parent.iterdir()} == {living}


def test_kernels_begin_while_others_end(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def begin_and_end(number):
        with kernel_folder() as folder:
            (folder / "case").mkdir()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin_and_end, range(1000)))
    assert list((tmp_path / f"autograder-{os.getuid()}").iterdir()) == []


def test_a_kernel_keeps_its_files_in_its_folder(two_kernels):
    (_, other), (_, another) = two_kernels
    with kernel_folder() as folder, Kernel(folder) as kernel:
        notebook = new_notebook(cells=[new_code_cell("6 * 7")])
        notebook.metadata.kernelspec = KERNELSPEC
        kernel.execute(notebook, cwd=folder, log=folder / "log", seconds=60)
        assert {*other.parent.iterdir()} == {other, another, folder}
        assert (folder / "connection.json").exists()
    assert [path.name for path in other.parent.parent.iterdir()] == [other.parent.name]


@pytest.mark.parametrize("too_long", [0, 1])
def test_a_path_too_long_for_a_kernels_sockets_is_a_sentence_and_the_longest_does(too_long):
    with tempfile.TemporaryDirectory() as short:
        length = zmq.IPC_PATH_MAX_LEN - len("/kernel-5") + too_long
        folder = Path(short, "x" * (length - len(short) - 1))
        folder.mkdir()
        if too_long:
            with pytest.raises(CourseError, match=r"has 108 characters, .* shorter by 1 or more"):
                Kernel(folder)
        else:
            with Kernel(folder) as kernel:
                notebook = new_notebook(cells=[new_code_cell("6 * 7")])
                notebook.metadata.kernelspec = KERNELSPEC
                kernel.execute(notebook, cwd=folder, log=folder / "log", seconds=60)


@pytest.mark.parametrize("spoil", ["a link", "open"])
def test_a_place_for_kernels_that_others_can_look_into_is_refused(tmp_path, monkeypatch, spoil):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = tmp_path / f"autograder-{os.getuid()}"
    if spoil == "a link":
        place.symlink_to(tmp_path)
    else:
        place.mkdir()
        place.chmod(0o755)
    with pytest.raises(CourseError, match="no folder that only you can look into"), kernel_folder():
        pass


def test_a_disk_too_full_for_the_journal_stops_grading_and_loses_nothing(where, expected):
    grade(where, NAME, ["ada"], OPTIONS)
    with full_disk(where.journal.stat().st_size + 100), pytest.raises(OSError, match="too large"):
        grade(where, NAME, [], OPTIONS)
    assert grade(where, NAME, [], OPTIONS).new == 3
    assert soak.rows(where.gradebook) == expected


def test_a_disk_too_full_for_the_gradebook_stops_grading_and_loses_nothing(where, expected):
    grade(where, NAME, ["ada"], OPTIONS)
    with (
        full_disk(20_000),
        pytest.raises(GradebookError, match="no room on the disk"),
    ):
        grade(where, NAME, [], OPTIONS)
    assert grade(where, NAME, [], OPTIONS).failures == []
    assert soak.rows(where.gradebook) == expected


def test_a_locked_gradebook_stops_grading_with_a_sentence_and_loses_nothing(where, expected, asked):
    grade(where, NAME, ["ada"], OPTIONS)
    database = sqlite3.connect(where.gradebook)
    database.execute("begin exclusive")
    with pytest.raises(GradebookError, match="another program is using the gradebook"):
        grade(where, NAME, [], OPTIONS)
    database.close()
    grade(where, NAME, [], OPTIONS)
    assert soak.rows(where.gradebook) == expected
    assert len(asked) <= 7  # three of four here, as above, and one that nobody had kept yet


def test_a_class_is_graded_by_one_process_at_a_time(where):
    with alone(where), pytest.raises(CourseError, match="another process is grading this class"):
        grade(where, NAME, [], OPTIONS)
