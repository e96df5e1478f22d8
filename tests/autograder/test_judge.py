"""The judge: every way a submission can end, judged on real ranks behind the sandbox's walls."""

import itertools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_course

from autograder.grade import judge as judging
from autograder.grade import verdicts
from autograder.grade.intake import restore
from autograder.grade.judge import Judge
from autograder.grade.notebook import WarmKernel
from autograder.grade.plan import cells_before, plan
from byhand.runtime import LaunchError, StandIn
from byhand.runtime.walls import isolation, prelude
from byhand.runtime.walls.gpus import NO_GPUS

ROOT = Path(__file__).resolve().parents[2]
NO_SANDBOX = isolation.why_no_sandbox()
needs_sandbox = pytest.mark.skipif(bool(NO_SANDBOX), reason=str(NO_SANDBOX))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return tiny_course.released(tiny_course.make_course(tmp_path_factory.mktemp("judge")))


@pytest.fixture(scope="module")
def judge(released):
    """Judges the solved notebook with some answers replaced: {test: verdict}."""
    with WarmKernel(not NO_SANDBOX, (ROOT,)) as kernel:

        def judge(limit: float = 6, **answers: str) -> dict:
            found = kernel.judge(planned(released, limit, **answers), seed=0).verdicts
            return {verdict.question: verdict for verdict in found}

        yield judge


def planned(released, limit: float, **answers: str):
    """What the judge is asked about the solved notebook with some answers replaced."""
    notebook = tiny_course.answered(tiny_course.solved(released), **answers)
    restored = restore(tiny_course.as_bytes(notebook), released).notebook
    return plan(tiny_course.source(), restored, limit)


def test_right_answers_pass(judge):
    found = judge()
    assert [(v.verdict, v.points) for v in found.values()] == [("passed", 2), ("passed", 3)]


ENDS = {
    "an exception": ("def double(n): return n.twice", "failed", "raised AttributeError"),
    "a wrong value": ("def double(n):\n    return n + 2", "failed", "ranks 0 and 1: got"),
    "no function": ("", "failed", "the notebook does not define double"),
    "a syntax error": ("def double(n:", "failed", "SyntaxError"),
    "an endless loop": ("def double(n):\n    while True: pass", "timeout", "did not finish within"),
    "a loop that swallows interrupts": (
        "def double(n):\n    while True:\n        try:\n            while True: pass\n"
        "        except BaseException: pass",
        "timeout",
        "did not finish within",
    ),
    "exit": ("import os\ndef double(n): os._exit(3)", "crashed", "exited with code 3"),
    "sys.exit": ("import sys\ndef double(n): sys.exit()", "failed", "SystemExit"),
    "a segfault": ("import ctypes\ndef double(n): ctypes.string_at(0)", "crashed", "SIGSEGV"),
    "memory": ("def double(n): return torch.ones(10**11)", "resource", "allocate"),
    "output": ("def double(n): print('x' * 10_000_000)", "resource", "printed more than"),
    "an object of its own": (
        "class Yes:\n    def __eq__(self, other): return True\ndef double(n): return Yes()",
        "failed",
        "cannot be graded",
    ),
    "a subclass of int": (
        "class Yes(int):\n    def __eq__(self, other): return True\ndef double(n): return Yes(0)",
        "failed",
        "cannot be graded",
    ),
    "an endless cell": ("while True: pass", "failed", "was left out"),
    "an endless cell that swallows interrupts": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "failed",
        "was left out",
    ),
    "a cell that exits": ("import os\nos._exit(0)", "failed", "was left out"),
}


@pytest.mark.parametrize("end", ENDS)
def test_every_end_gets_its_verdict_in_time_and_costs_one_task(judge, end):
    answer, verdict, words = ENDS[end]
    limit = 3 if verdict == "timeout" else 8
    found = judge(limit=limit, double=answer)
    got = found["test-double"]
    assert (got.verdict, got.points) == (verdict, 0), got
    assert words in got.message
    assert got.part == "two ranks, the number 21"
    assert found["test-total"].points == 3, found


def explained(released) -> str:
    """What a student is told whose cells a judge without a sandbox has left out."""
    judge = Judge(planned(released, 30), SimpleNamespace(gpus=NO_GPUS), {})
    missing = verdicts.infrastructure("test-double", 2, "the notebook does not define double")
    return verdicts.explained(missing, judge.notes).message


def test_a_cell_whose_turn_comes_too_late_is_left_out_and_named(released, monkeypatch):
    monkeypatch.setattr(prelude, "ALL_SECONDS", 0.2)
    cells = [["slow", "import time; time.sleep(0.3)"], ["double", "x"], ["total", "x"]]
    assert prelude.run(cells) == [f"cell double: {prelude.NOT_BEGUN}"]
    notes = [f"cell double: {prelude.NOT_BEGUN}"]
    monkeypatch.setattr(Judge, "_try", lambda *_: notes)
    assert "\ncells double, total: not run, as the cells before took the 30 s" in explained(
        released
    )


def test_the_search_for_cells_that_end_the_program_ends_too(released, monkeypatch):
    tried, clock = [], itertools.count(step=20)

    def dies(self, cells, seconds):
        tried.append([label for label, _ in cells])
        raise LaunchError("it died")

    monkeypatch.setattr(judging, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(Judge, "_try", dies)
    message = explained(released)
    assert tried == [["imports", "double", "total"], ["imports"]]
    assert "cell imports: it did not come to an end" in message
    assert "\ncells double, total: not run, as the cells before took" in message


def test_a_deadlock_is_told_by_rank_call_and_line(judge):
    skips = "def total(t):\n    if dist.get_rank() == 0:\n        dist.all_reduce(t)\n    return t"
    verdict = judge(total=skips)["test-total"]
    assert verdict.verdict == "deadlock"
    assert "rank 1" in verdict.message
    assert "all_reduce" in verdict.table
    assert "total line 3" in verdict.table


def test_a_hidden_part_is_named_and_its_values_are_not_shown(judge):
    only_positive = "def double(n):\n    return 2 * n if n > 0 else n"
    verdict = judge(double=only_positive)["test-double"]
    assert (verdict.verdict, verdict.part, verdict.hidden) == ("failed", "a hidden number", True)
    assert verdict.message == "the result or the communication is not what the statement asks for"


def test_an_exception_cannot_carry_a_hidden_input_into_the_feedback(judge):
    tells = (
        "def double(n):\n    if n > 0: return 2 * n\n    raise type(f'E{-n}', (Exception,), {})(n)"
    )
    verdict = judge(double=tells)["test-double"]
    assert verdict.hidden
    assert verdict.message == "rank 0 raised an exception"
    assert "987654" not in str(verdict)


HIDDEN_ENDS = {
    "an exit code": (
        "import os\ndef double(n): return 2 * n if n > 0 else os._exit(-n % 256)",
        "rank 0 died: its process ended before the function returned",
    ),
    "a rare signal": (
        "import os\ndef double(n): return 2 * n if n > 0 else os.kill(os.getpid(), 12)",
        "rank 0 died: its process ended before the function returned",
    ),
    "a segfault": (
        "import ctypes\ndef double(n): return 2 * n if n > 0 else ctypes.string_at(0)",
        "rank 0 died: its process was killed by SIGSEGV (a segmentation fault)",
    ),
    "an exception named after no exception": (
        "def double(n):\n    if n > 0: return 2 * n\n    raise type('print', (Exception,), {})",
        "rank 0 raised an exception",
    ),
}


@pytest.mark.parametrize("end", HIDDEN_ENDS)
def test_a_hidden_part_tells_how_it_ended_in_words_that_carry_nothing(judge, end):
    answer, sentence = HIDDEN_ENDS[end]
    verdict = judge(double=answer)["test-double"]
    assert (verdict.hidden, verdict.message, verdict.table) == (True, sentence, "")


def test_a_hidden_deadlock_names_calls_ranks_and_the_rule_and_no_shape(judge):
    tells = (
        "def total(t):\n    shape = [1, *map(abs, map(int, t)), 0] if dist.get_rank() else [7]\n"
        "    t = t.clone()\n"
        "    dist.all_reduce(torch.ones(shape) if len(t) == 5 else t)\n    return t"
    )
    verdict = judge(total=tells)["test-total"]
    assert (verdict.verdict, verdict.hidden, verdict.table) == ("deadlock", True, "")
    assert verdict.message == (
        "the ranks' calls do not fit together: ranks 0, 1 and 2: all_reduce."
        " The shape must be the same on all."
    )


def test_the_communication_is_judged_too(judge):
    twice = (
        "def total(t):\n    t = t.clone()\n    dist.all_reduce(t)\n    dist.barrier()\n    return t"
    )
    verdict = judge(total=twice)["test-total"]
    assert verdict.verdict == "failed"
    assert "number of communication calls" in verdict.message


def test_patching_torch_in_a_cell_changes_nothing_in_the_judge(judge):
    patches = "torch.equal = torch.allclose = lambda *a, **k: True\ndef double(n): return 0"
    found = judge(double=patches, total="def total(t): return torch.zeros_like(t)")
    assert {v.verdict for v in found.values()} == {"failed"}


@needs_sandbox
def test_a_submission_sees_no_course_no_home_and_no_network(judge):
    look = f"""import os, socket
def double(n):
    assert not os.path.exists({str(ROOT / "solutions")!r}), "solutions"
    assert not os.path.exists({str(ROOT / "tests")!r}), "tests"
    assert "LOOK" not in os.environ, "environment"
    assert len([p for p in os.listdir("/proc") if p.isdigit()]) < 12, "processes"
    assert set(os.listdir(os.path.expanduser("~"))) == set(), os.listdir(os.path.expanduser("~"))
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    except OSError:
        return 2 * n"""
    assert judge(double=look)["test-double"].verdict == "passed"


@needs_sandbox
def test_nothing_that_one_question_leaves_reaches_the_next(judge):
    leaves = "open('/tmp/mark', 'w').write('x')\ndef double(n): return 2 * n"
    looks = (
        "import os\nopen('/tmp/other', 'w')\ndef total(t):\n"
        "    t = t.clone()\n    dist.all_reduce(t)\n"
        "    return t if sorted(os.listdir('/tmp')) == ['mark', 'other'] else None"
    )
    assert judge(double=leaves, total=looks)["test-total"].verdict == "passed"
    assert judge(total=looks)["test-total"].verdict == "failed"


def test_only_the_instructors_names_become_stand_ins(released):
    notebook = tiny_course.answered(tiny_course.solved(released), double="check = launch = 1")
    made = plan(tiny_course.source(), notebook)
    assert made.stand_ins == ["double", "total"]
    with pytest.raises(TypeError, match="double runs only on ranks"):
        StandIn("double")(21)


def test_a_questions_cells_are_those_before_it_without_the_tests(released):
    notebook = tiny_course.solved(released)
    assert [name for name, _ in cells_before(notebook, "test-double")] == ["imports", "double"]
    names = [name for name, _ in cells_before(notebook, "test-total")]
    assert names == ["imports", "double", "total"]


def test_the_blank_exercise_scores_nothing(judge, released):
    empty = {c.id: c.source for c in released.cells if c.id in ("double", "total")}
    found = judge(**empty)
    assert [v.points for v in found.values()] == [0, 0]
    assert all("NotImplementedError" in v.message for v in found.values())


# The sandbox's command


@needs_sandbox
def test_the_sandbox_shows_this_python_and_this_library_and_no_more_of_the_checkout():
    code = f"import os, byhand; print(os.listdir({str(ROOT)!r}), os.listdir({str(ROOT / 'lib')!r}))"
    command = [*isolation.sandbox_command(hide=[ROOT]), sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    assert "['byhand']" in shown
    assert not any(name in shown for name in ("solutions", "exercises", "tests", "autograder"))


def test_a_missing_bubblewrap_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    why = isolation.why_no_sandbox.__wrapped__()
    assert why.startswith("bubblewrap is not installed: apt-get install bubblewrap")


def test_a_bubblewrap_that_may_not_make_namespaces_is_said_in_a_sentence(tmp_path, monkeypatch):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    why = isolation.why_no_sandbox.__wrapped__()
    assert "cannot make namespaces here (No permissions to create new namespace)" in why
