"""The levels of separation: what each keeps from a submission, and that each is recorded."""

import os
import subprocess
import sys
import time

import pytest
import tiny_course

from autograder.grade.plan import LIMITS, plan
from autograder.release.rules import problems
from byhand.runtime import Launcher, RankError
from byhand.runtime.walls import isolation, landlock

NO_LANDLOCK = isolation.why_no_landlock()
needs_landlock = pytest.mark.skipif(bool(NO_LANDLOCK), reason=str(NO_LANDLOCK))
NO_BUBBLEWRAP = isolation.why_no_bubblewrap()
needs_bubblewrap = pytest.mark.skipif(bool(NO_BUBBLEWRAP), reason=str(NO_BUBBLEWRAP))


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def question(request):
    """A question behind each kind of wall."""
    nests = request.param == "bubblewrap"
    why_not = NO_BUBBLEWRAP if nests else NO_LANDLOCK
    if why_not:
        pytest.skip(why_not)
    command = isolation.sandbox_command() if nests else isolation.confined_command()
    with Launcher(command, trusted=False) as launcher:
        yield launcher.fresh(isolate=nests, limits=LIMITS)


def look(place: str) -> str:
    import os

    try:
        return str(os.listdir(place))
    except OSError as error:
        return type(error).__name__


def test_a_submission_cannot_list_a_directory_of_its_graders(question, tmp_path):
    (tmp_path / "secret").touch()
    found = question.launch(look, 1, (str(tmp_path),), setup=False, alone=True).results[0]
    assert found in ("FileNotFoundError", "PermissionError")


def flood() -> int:
    import os
    import signal

    started = 0
    try:
        while started < 1000:
            if os.fork() == 0:
                signal.pause()
            started += 1
    except OSError:
        pass
    return started


def test_a_submission_starts_no_more_processes_than_its_limit_even_roots(question):
    if os.getuid() == 0 and not isolation.runs_as_stranger():
        pytest.skip("root's submissions cannot be another user's here")
    assert 0 < question.launch(flood, 1, setup=False, alone=True).results[0] < LIMITS["processes"]


def hog() -> int:
    return len([bytearray(1 << 28) for _ in range(64)])


def test_a_submission_gets_no_more_memory_than_its_limit(question):
    with pytest.raises(RankError, match="MemoryError"):
        question.launch(hog, 1, setup=False, alone=True)


def write_here(rank: int, world_size: int) -> bool:
    import os

    with open("mine", "w") as file:
        file.write("x")
    return os.path.exists("mine")


def test_a_submission_may_write_where_it_stands(question):
    assert question.launch(write_here, 2).results == [True, True]


def write_everywhere() -> list[str]:
    import os

    mounted = {line.split()[1] for line in open("/proc/self/mounts")}
    written = []
    for place in {"/", "/dev", "/etc", "/home", "/root", "/run", "/usr", "/var", *mounted}:
        try:
            open(os.path.join(place, "left-behind"), "w").close()
            written.append(place)
        except OSError:
            pass
    return sorted(written)


@needs_bubblewrap
def test_what_a_rank_writes_in_bubblewrap_no_other_rank_can_read():
    with Launcher(isolation.sandbox_command(hide=["/usr/share"]), trusted=False) as launcher:
        one = launcher.fresh(limits=LIMITS)
        found = one.launch(write_everywhere, 1, setup=False, alone=True).results[0]
        assert found == ["/dev/shm", "/tmp"]


def empty_files() -> int:
    made = 0
    try:
        while made < 100_000:
            open(f"/tmp/{made}", "w").close()
            made += 1
    except OSError:
        pass
    return made


@needs_bubblewrap
def test_files_of_no_bytes_are_limited_too():
    with Launcher(isolation.sandbox_command(), trusted=False) as launcher:
        one = launcher.fresh(limits=LIMITS)
        assert one.launch(empty_files, 1, setup=False, alone=True).results[0] <= 10_000


@needs_landlock
def test_landlocks_questions_do_not_see_each_others_files():
    with Launcher(isolation.confined_command(), trusted=False) as launcher:
        for _ in range(2):
            one = launcher.fresh(isolate=False)
            assert one.launch(look, 1, (".",), setup=False, alone=True).results == ["[]"]
            one.launch(write_here, 1)
            one.close()


@needs_landlock
def test_landlocks_directory_is_gone_afterwards():
    done = subprocess.run([*isolation.confined_command(), "pwd"], capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout.strip()
    assert not os.path.exists(done.stdout.strip())


GRADE = """
import sys
sys.path[:0] = [{tests!r} + "/..", {tests!r}]
import tiny_course
from pathlib import Path
from autograder.batch.grading import Options, grade
where = tiny_course.make_course(Path({folder!r}))
blank = tiny_course.released(where)
tiny_course.hand_in(where, "ada", tiny_course.solved(blank))
looks = "import os\\ndef double(n): return 2 * n if os.listdir({folder!r}) else 0"
tiny_course.hand_in(where, "ben", tiny_course.answered(tiny_course.solved(blank), double=looks))
done = grade(where, [tiny_course.ASSIGNMENT], [], Options(progress=False))
for judgement in done.judgements:
    print(judgement.student, judgement.sandbox, judgement.points)
"""


@needs_landlock
def test_a_class_is_graded_behind_landlock_where_there_is_no_bubblewrap(tmp_path):
    text = GRADE.format(tests=os.path.dirname(os.path.dirname(__file__)), folder=str(tmp_path))
    path = f"{os.path.dirname(sys.executable)}:/nowhere"
    assert not os.path.exists(f"{os.path.dirname(sys.executable)}/bwrap")
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, "PATH": path},
                          capture_output=True, text=True, timeout=110, check=False)  # fmt: skip
    assert done.stdout.split("\n")[:2] == ["ada landlock 5", "ben landlock 3"], done.stderr[-2000:]


def test_without_any_wall_the_reason_names_both(monkeypatch):
    monkeypatch.setattr(isolation, "why_no_bubblewrap", lambda: "bubblewrap is not installed")
    monkeypatch.setattr(isolation, "why_no_landlock", lambda: "this kernel has no Landlock")
    assert isolation.why_no_sandbox() == (
        "bubblewrap is not installed; and this kernel has no Landlock"
    )
    assert isolation.best_level() == isolation.Level(isolation.NONE)


def test_landlock_that_cannot_hide_a_directory_is_not_used_for_it(monkeypatch):
    monkeypatch.setattr(isolation, "why_no_bubblewrap", lambda: "bubblewrap is not installed")
    assert isolation.best_level(hide=["/usr/share"]).name == isolation.NONE


@needs_landlock
def test_confine_keeps_only_what_is_named(tmp_path):
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); import landlock\n"
        "landlock.confine(['/usr'], [sys.argv[1]])\n"
        "open(sys.argv[1] + '/x', 'w').close(); os.listdir('/usr')\n"
        "try: os.listdir('/etc')\nexcept PermissionError: print('kept')"
    )
    runtime = os.path.dirname(landlock.__file__)
    command = [sys.executable, "-c", code, str(tmp_path), runtime]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "kept", done.stderr


# Limits of an assignment and of a question


def with_limits(**limits: dict[str, int]):
    source = tiny_course.source()
    for cell in source.cells:
        if cell.id in limits:
            cell.metadata["limits"] = limits[cell.id]
    return source


def test_limits_are_the_defaults_then_the_assignments_then_the_questions():
    source = with_limits(imports={"processes": 9}, **{"test-total": {"memory_bytes": 7}})
    first, second = plan(source, source).questions
    assert first.limits == {**LIMITS, "processes": 9}
    assert second.limits == {**LIMITS, "processes": 9, "memory_bytes": 7}


def test_limits_that_are_no_numbers_are_refused_at_release():
    found = problems(with_limits(imports={"processes": "many"}))
    assert any("each must be a whole number above 0" in sentence for sentence in found)


@needs_bubblewrap
def test_a_rank_that_swallows_interrupts_is_ended_at_its_limit():
    def swallow():
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass

    with Launcher(isolation.sandbox_command(), trusted=False) as launcher:
        launcher.start()
        question = launcher.fresh(limits=LIMITS, until=time.monotonic() + 2)
        with pytest.raises(TimeoutError):
            question.launch(swallow, 1, setup=False, alone=True)
