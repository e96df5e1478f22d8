"""The judge: every way a submission can end, judged on real ranks behind the sandbox's walls."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_course
import torch

from autograder.batch.queue import cores
from autograder.grade import verdicts
from autograder.grade.judge import LIMITS
from autograder.grade.warm_kernel import WarmKernel, case_of, cells_before
from byhand import check
from byhand.runtime import RankError, StandIn, launch
from byhand.runtime.launching import launch_on
from byhand.runtime.walls import isolation
from byhand.runtime.walls.cells import students_notebook
from byhand.runtime.walls.notebook import CELL_SECONDS, OWN_SECONDS, NotebookError
from byhand.runtime.walls.question import Sandbox
from byhand.runtime.walls.snapshot import Snapshot

ROOT = Path(__file__).resolve().parents[2]
NO_SANDBOX = isolation.why_no_sandbox()
VALUES = "the values, or their shape or type, are"
WAY_TO_PYTHON = set(ROOT.parts[2:3]) if ROOT.is_relative_to("/tmp") else set()  # a course in /tmp
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

        judge.kernel = kernel
        yield judge


def planned(released, limit: float, **answers: str):
    """What the judge is asked about the solved notebook with some answers replaced."""
    notebook = tiny_course.answered(tiny_course.solved(released), **answers)
    restored = tiny_course.restore(tiny_course.as_bytes(notebook), released).notebook
    return case_of(tiny_course.source(), restored, limit)


def test_right_answers_pass(judge):
    found = judge()
    assert [(v.verdict, v.points) for v in found.values()] == [("passed", 2), ("passed", 3)]


@pytest.mark.parametrize("last", ["", "1 / 0"])
def test_a_row_of_the_board_stays_with_its_verdict_if_it_passed(released, judge, last):
    asked = planned(released, 6)
    first, second = asked.questions
    source = f"{first.source}\ncheck.board(lambda: 'Ada', peak_bytes=9)\n{last}"
    recording = replace(asked, questions=[replace(first, source=source), second])
    found = judge.kernel.judge(recording, seed=0).verdicts
    kept = {} if last else {"name": "Ada", "row": [["peak bytes", 9]]}
    assert [verdict.board for verdict in found] == [kept, {}]


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
    "an error below empty lines": (
        "\n  \ndef double(n):\n    y = 2\n    return y.twice",
        "failed",
        "double line 3, in double\n    return y.twice\n",
    ),
    "a cell that exits": ("import os\nos._exit(0)", "failed", "was left out"),
}


@pytest.mark.parametrize("end", ENDS)
def test_every_end_gets_its_verdict_in_time_and_costs_one_task(judge, end):
    answer, verdict, words = ENDS[end]
    limit = 1.5 if verdict == "timeout" else 8
    found = judge(limit=limit, double=answer)
    got = found["test-double"]
    assert (got.verdict, got.points) == (verdict, 0), got
    assert words in got.message
    assert got.part == "two ranks, the number 21"
    assert found["test-total"].points == 3, found


BUSY = "while True: pass"
SLOW = """import time
def double(n):
    until = time.thread_time() + 0.5
    while time.thread_time() < until: pass
    return 2 * n"""


HOG = "return torch.ones(10**11)"


def test_what_other_programs_take_is_no_time_of_a_question(judge):
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(3 * cores())]
    try:
        verdict = judge(limit=3, double=SLOW)["test-double"]
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert (verdict.verdict, verdict.points) == ("passed", 2), verdict


def test_a_rank_may_name_the_master_localhost(judge):
    by_name = """import os
def double(n):
    os.environ["MASTER_ADDR"] = "localhost"
    dist.destroy_process_group()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    return 2 * n"""
    assert judge(limit=20, double=by_name)["test-double"].verdict == "passed"


# A student's notebook


@pytest.fixture
def notebook(launcher):
    """A notebook in which nothing ran."""
    made = students_notebook(launcher, LIMITS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def launcher():
    """What notebooks and questions are forked from."""
    with Sandbox(() if NO_SANDBOX else isolation.sandbox_command()) as launcher:
        yield launcher


def value(launcher, notebook, name: str):
    """What a rank gets for a name of the notebook."""
    stand_in = StandIn(name)
    with launcher.fresh(notebook=notebook, limits=LIMITS) as question:
        return launch_on(question, lambda: str(stand_in), 1, setup=False, alone=True).results[0]


AS_IN_JUPYTER = {
    "a timed cell": ("%%time\ny = 2 + 3", "5"),
    "a captured cell": ("%%capture kept\nprint('x')\ny = 5", "5"),
    "a timed line": ("%time y = 2 + 3", "5"),
    "timeit's result": ("t = %timeit -o -n1 -r1 pass\ny = 5 * (t.best >= 0)", "5"),
    "a shell line": ("said = !echo 5\ny = said[0]", "5"),
    "a plot": (
        "%matplotlib inline\nimport matplotlib.pyplot as p\np.plot([1])\np.show()\ny = 5",
        "5",
    ),
    "a question mark": ("y = 5\ny?", "5"),
    "await": ("import asyncio\nawait asyncio.sleep(0)\ny = 5", "5"),
    "display": ("from IPython.display import display\ndisplay(5)\ny = 5", "5"),
    "a module written here": (
        "import os\nopen('help.py', 'w').write('five = 5')\nimport help as y",
        "help",
    ),
    "a variable of the environment": (
        "import os\nos.environ['SCALE'] = '5'\nos.environ.pop('LANG')\n"
        "class Y:\n    def __str__(self): return os.environ['SCALE'] + os.environ.get('LANG', '')\n"
        "y = Y()",
        "5",
    ),
    "a module in a folder out of sight": (
        "import os, sys\nos.mkdir('.lib')\nopen('.lib/hidden5.py', 'w').write('five = 5')\n"
        "sys.path.insert(0, '.lib')\nimport hidden5 as y",
        "hidden5",
    ),
    "a folder that is gone": (
        "import os\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')\ny = 5",
        "5",
    ),
    "a lock": ("import threading\ny = threading.Lock()", "unlocked"),
    "a launch": (
        "from byhand import launch\nimport torch, torch.distributed as dist\n"
        "def add(rank, n):\n    t = torch.tensor(rank)\n    dist.all_reduce(t)\n    return t\n"
        "y = launch(add, 3).results[0]",
        "tensor(3)",
    ),
}


@pytest.mark.parametrize("habit", AS_IN_JUPYTER)
def test_a_cell_does_what_it_does_in_jupyter(launcher, notebook, habit):
    cell, words = AS_IN_JUPYTER[habit]
    notebook.run([("cell", cell)])
    assert notebook.notes == {}
    assert words in value(launcher, notebook, "y")


def test_a_cell_runs_once_however_many_launches_there_are(launcher, notebook):
    cells = [("first", "runs = 0"), ("second", "runs += 1")]
    for _ in range(2):
        notebook.run(cells)
        assert value(launcher, notebook, "runs") == "1"


def test_a_magic_that_is_not_here_is_named(notebook):
    notebook.run([("cell", "y = 5\n%nowhere 3")])
    assert notebook.notes == {"cell": "UsageError: Line magic function `%nowhere` not found."}


def test_what_cannot_travel_is_told_in_the_sentence_of_jupyter(launcher, notebook):
    cell = "rows = (row for row in [1, 2])\ndef y(): return next(rows)"
    notebook.run([("cell", cell)])
    told = "the function y cannot travel to another process: it uses rows, a generator: "
    with pytest.raises(NotebookError, match=told):
        value(launcher, notebook, "y")
    here = {"__name__": "__main__"}
    exec(cell, here)
    with pytest.raises(ValueError, match=told):
        launch(here["y"], 1)


DTYPE = """import torch
torch.set_default_dtype(torch.float64)
def y(*_): return str(torch.ones(1).dtype)"""


def test_the_default_dtype_stays_behind_in_a_graded_launch_and_in_jupyter(launcher, notebook):
    notebook.run([("cell", DTYPE)])
    stand_in = StandIn("y")
    with launcher.fresh(notebook=notebook) as question:
        graded = launch_on(question, lambda *_: stand_in(), 1).results
    kept, here = torch.get_default_dtype(), {}
    try:
        exec(DTYPE, here)
        in_jupyter = launch(here["y"], 1).results
    finally:
        torch.set_default_dtype(kept)
    assert graded == in_jupyter == ["torch.float32"]


def test_an_endless_cell_is_stopped_and_the_next_ones_run(launcher, notebook, monkeypatch):
    notebook._cell_seconds = 1
    notebook.run([("endless", "y = 5\nwhile True: pass"), ("next", "z = y")])
    assert notebook.notes["endless"].endswith("and was stopped")
    assert value(launcher, notebook, "z") == "5"


def test_an_endless_cell_that_swallows_interrupts_is_left_out(launcher, notebook):
    notebook._cell_seconds = 1
    endless = "import time\nwhile True:\n    try: time.sleep(9)\n    except BaseException: pass"
    notebook.run([("endless", endless), ("next", "z = 6")])
    assert notebook.notes["endless"].endswith("it was left out")
    assert value(launcher, notebook, "z") == "6"


def test_a_cell_that_ends_its_process_is_left_out_of_another(launcher, notebook):
    notebook.run([("a", "y = 5"), ("dies", "import os\nos._exit(3)"), ("z", "z = y")])
    assert notebook.notes == {"dies": notebook.notes["dies"]}
    assert notebook.notes["dies"].endswith("it was left out")
    assert value(launcher, notebook, "z") == "5"


def test_a_notebook_that_dies_later_runs_again(launcher, notebook):
    notebook.run([("cell", "import os, threading\ny = 5")])
    notebook._team.interrupt()  # of no effect between cells
    assert value(launcher, notebook, "y") == "5"
    notebook.run([("bomb", "threading.Timer(0.2, os._exit, [0]).start()")])
    time.sleep(0.5)
    assert value(launcher, notebook, "y") == "5"


def test_cells_whose_turn_comes_too_late_are_not_run_and_named(launcher, notebook):
    notebook._left["own cells"] = 0.5
    cells = ("slow", "import time; time.sleep(9)"), ("answer", "y = 5"), ("b", "x"), ("c", "x")
    notebook.run(cells, own={"slow", "b", "c"})
    together = "the 120 s that the cells you added have together"
    assert notebook.notes == {
        "slow": f"it did not come to an end within {together}, and was stopped",
        "b, c": f"not run: {together} was used up",
    }
    assert value(launcher, notebook, "y") == "5"


def test_cells_of_ones_own_share_their_time_and_take_none_of_the_exercises(notebook):
    notebook.run([("training", "import time; time.sleep(1)"), ("answer", "x = 1")], {"training"})
    assert notebook._left["own cells"] < OWN_SECONDS - 0.9
    assert notebook._left["answer"] > CELL_SECONDS - 0.9
    assert notebook.notes == {}


def test_names_that_take_too_long_to_pickle_cannot_travel_any_more(launcher, notebook):
    slow = "import time\nclass Slow:\n    def __reduce__(self): time.sleep(0.7); return int, ()"
    notebook._left["all pickling"] = 0.5
    notebook.run([("cell", f"{slow}\ny = [Slow()]\nz = 5")])
    assert value(launcher, notebook, "y") == "[0]"
    with pytest.raises(NotebookError, match="z: to pickle took the 60 s of all launches"):
        value(launcher, notebook, "z")


def test_a_notebook_is_told_names_and_no_input_of_a_launch(launcher, notebook):
    spies = """import cloudpickle, pickle
seen = []
kept = cloudpickle.dumps
def dumps(what, *args): seen.append(repr(what)); return kept(what, *args)
cloudpickle.dumps = dumps
y = 5"""
    notebook.run([("cell", spies)])
    stand_in = StandIn("y")
    with launcher.fresh(notebook=notebook) as question:
        launch_on(question, lambda x: stand_in, 1, (987654,), setup=False, alone=True)
    assert "987654" not in value(launcher, notebook, "seen")


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
    assert verdict.message == f"{VALUES} not what the statement asks for"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("check.results(run, [1, 1])", VALUES),
        ("check.communication(run, all_reduce=1)", "the number of communication calls is"),
        ("check.messages(run, pairs=[(0, 1)])", "the messages that the ranks send are"),
        ("check.collectives(run, 0, all_reduce=[1, 1])", "the number of communication calls is"),
        ("check.sent_bytes(run, total=8)", "the number of bytes sent is"),
        ("check.peak_bytes(run, 0)", "the memory held at once is"),
        ("check.that(run.results == [7], 'seven')", VALUES),
        ("check.that(False, 'seven', of='memory')", "the memory held at once is"),
        ("check.equal(run.results, 7)", VALUES),
        ("assert run.results == [7]", VALUES),
        ("check.equal(float('nan'), 7.0)", VALUES),
    ],
)
def test_a_hidden_part_says_what_kind_of_thing_is_wrong(asked, said):
    run = launch(lambda rank, world_size: torch.ones(rank), 2, memory=True)
    source = f"### BEGIN HIDDEN TESTS\n{asked}\n### END HIDDEN TESTS"
    with pytest.raises(AssertionError) as raised:
        exec(compile(source, "<test>", "exec"), {"check": check, "run": run})
    verdict = verdicts.failed("test", 1, source, raised.value, limit=6, seconds=1)
    nan = ": there is a nan among them" if "nan" in asked else ""
    assert verdict.message == f"{said} not what the statement asks for{nan}"


def test_a_hidden_part_that_cannot_use_a_result_says_so():
    source = "### BEGIN HIDDEN TESTS\n987654 + None\n### END HIDDEN TESTS"
    with pytest.raises(TypeError) as raised:
        exec(compile(source, "<test>", "exec"), {})
    verdict = verdicts.failed("test", 1, source, raised.value, limit=6, seconds=1)
    assert verdict.message.startswith("a function did not return what the statement asks for")


def test_a_hidden_check_that_fails_on_a_rank_says_no_word_of_it():
    error = RankError(2, "987654", "987654", exception="CheckError")
    verdict = verdicts.failed("test", 1, "### BEGIN HIDDEN TESTS", error, limit=6, seconds=1)
    assert verdict.message.startswith("the values on a rank, or their shape or type, are not what")


def test_a_result_of_none_that_the_test_reckons_with_is_told_with_the_function(released, judge):
    asked = planned(released, 6, double="def double(n): 2 * n")
    first = asked.questions[0]
    driver = first.source.partition("with check")[0]
    reckons = f"{driver}launch(drive_double, 1, (1,)).results[0] + 1"
    found = judge.kernel.judge(replace(asked, questions=[replace(first, source=reckons)]), seed=0)
    message = found.verdicts[0].message
    assert message.startswith("there is None where the test needs a value")
    assert "the last launch ran double: does every way through your function end" in message


def test_a_driver_that_unpacks_none_asks_which_function_returned_it(released, judge):
    asked = planned(released, 6, double="def double(n): 2 * n")
    first = asked.questions[0]
    unpacks = first.source.replace("return double(number)", "x, y = double(number)\n    return x")
    found = judge.kernel.judge(replace(asked, questions=[replace(first, source=unpacks)]), seed=0)
    message = found.verdicts[0].message
    assert "cannot unpack non-iterable NoneType object" in message
    assert "Did double return None?" in message


OPEN_REQUEST = """def total(t):
    t = t.clone()
    work = dist.all_reduce(t, async_op=True)
    if dist.get_world_size() == 2: work.wait()
    return t"""


def test_a_hidden_part_says_that_a_request_was_never_waited_for(judge):
    verdict = judge(total=OPEN_REQUEST)["test-total"]
    assert (verdict.hidden, verdict.points) == (True, 0)
    assert verdict.message.startswith("a rank did not wait for a request: call wait()")


def test_a_visible_part_shows_the_request_that_nobody_waited_for(judge):
    verdict = judge(total=OPEN_REQUEST.replace("== 2", "== 3"))["test-total"]
    assert "what all_reduce returned was never waited for: call wait() on it" in verdict.message
    assert "total line 3, in total\n    work = dist.all_reduce(" in verdict.message


def test_an_exception_cannot_carry_a_hidden_input_into_the_feedback(judge):
    tells = (
        "def double(n):\n    if n > 0: return 2 * n\n    raise type(f'E{-n}', (Exception,), {})(n)"
    )
    verdict = judge(double=tells)["test-double"]
    assert verdict.hidden
    assert verdict.message == "a rank raised an exception"
    assert "987654" not in str(verdict)


ENDED = "crashed", "a rank's process ended before the function returned"
UNFIT = "deadlock", "the ranks' calls do not fit together"
HIDDEN_ENDS = {  # two answers each, that end alike and could tell a number by how
    "an exit code": (
        ENDED,
        "import os\ndef double(n): return 2 * n if n > 0 else os._exit({})",
        ("7", "9"),
    ),
    "a signal": (
        ENDED,
        "import os\ndef double(n): return 2 * n if n > 0 else os.kill(os.getpid(), {})",
        ("11", "12"),
    ),
    "an exception": (
        ("failed", "a rank raised an exception"),
        "def double(n):\n    if n > 0: return 2 * n\n    raise type('{}', (Exception,), {{}})",
        ("print", "Other"),
    ),
    "the rank that raises": (
        ("failed", "a rank raised an exception"),
        "def total(t):\n    if len(t) == 5 and dist.get_rank() == {}: raise ValueError\n"
        "    t = t.clone()\n    dist.all_reduce(t)\n    return t",
        ("0", "2"),
    ),
    "the calls that do not fit": (
        UNFIT,
        "def total(t):\n    t = t.clone()\n    if len(t) == 5 and dist.get_rank():\n        {}\n"
        "    dist.all_reduce(t)\n    return t",
        ("dist.barrier()", "dist.recv(t, 0)"),
    ),
    "the shape that does not fit": (
        UNFIT,
        "def total(t):\n    t = t.clone()\n"
        "    dist.all_reduce(torch.ones({}) if len(t) == 5 and dist.get_rank() else t)\n"
        "    return t",
        ("7", "9"),
    ),
}


@pytest.mark.parametrize("end", HIDDEN_ENDS)
def test_two_hidden_parts_that_end_alike_are_told_alike(judge, end):
    (kind, sentence), answer, choices = HIDDEN_ENDS[end]
    task = "double" if "def double" in answer else "total"
    for choice in choices:
        verdict = judge(**{task: answer.format(choice)})[f"test-{task}"]
        told = verdict.verdict, verdict.hidden, verdict.message, verdict.table
        assert told == (kind, True, sentence, "")


def test_the_notebook_has_ended_when_the_first_test_begins(released, judge):
    name = f"outlive-{os.getpid()}"
    asked = planned(
        released, 6, double=f"import ctypes\nctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)"
    )
    first, second = asked.questions
    looks = f"import psutil\nfound = [p for p in psutil.process_iter() if p.name() == '{name}']\n"
    looking = replace(first, source=f"{looks}assert not found, 'it lives'")
    found = judge.kernel.judge(replace(asked, questions=[looking, second]), seed=0).verdicts
    assert [v.verdict for v in found] == ["passed", "passed"]


def test_a_test_gets_what_was_defined_where_it_stands(judge):
    later = "def double(n): return 0\n" + tiny_course.TOTAL
    assert [v.points for v in judge(total=later).values()] == [2, 3]


def test_a_name_that_cannot_travel_costs_the_launches_that_name_it(launcher, notebook):
    notebook.run([("cell", "import threading\ny, z = threading.current_thread(), 5")])
    kept = Snapshot(notebook, ["y", "z", "w"])
    notebook.close()
    assert value(launcher, kept, "z") == "5"
    for name, why in (("y", "cannot travel"), ("w", "does not define w"), ("v", "not kept")):
        with pytest.raises(NotebookError, match=why):
            value(launcher, kept, name)


def test_names_that_are_too_large_together_cost_the_launches_of_one_test(launcher):
    notebook = students_notebook(launcher, {**LIMITS, "reply_bytes": 1_000_000})
    notebook.run([("cell", "y, z, w = bytes(600_000), bytes(600_001), 5")])
    both, other = Snapshot(notebook, ["y", "z"]), Snapshot(notebook, ["w"])
    notebook.close()
    for name in ("y", "z"):
        with pytest.raises(NotebookError, match=r"y, z did not leave .* more than 1,000,000 bytes"):
            value(launcher, both, name)
    assert value(launcher, other, "w") == "5"


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
    assert set(os.listdir(os.path.expanduser("~"))) == {WAY_TO_PYTHON}, "home"
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
        f"    return t if set(os.listdir('/tmp')) == {WAY_TO_PYTHON | {'mark', 'other'}} else None"
    )
    assert judge(double=leaves, total=looks)["test-total"].verdict == "passed"
    assert judge(total=looks)["test-total"].verdict == "failed"


def test_only_the_instructors_names_become_stand_ins(released):
    notebook = tiny_course.answered(tiny_course.solved(released), double="check = launch = 1")
    made = case_of(tiny_course.source(), notebook)
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
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
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
