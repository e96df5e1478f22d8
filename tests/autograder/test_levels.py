"""The levels of separation: what each keeps from a submission, and that each is recorded."""

import os
import sys
import time

import pytest
import tiny_course

from autograder.grade import verdicts
from autograder.grade.judge import LIMITS
from autograder.grade.notebook import plan
from autograder.release.rules import problems
from byhand.runtime import LaunchError, RankError
from byhand.runtime.walls import isolation, namespaces
from byhand.runtime.walls.question import Sandbox

needs_bubblewrap = pytest.mark.skipif(
    bool(isolation.why_no_sandbox()), reason=str(isolation.why_no_sandbox())
)


@pytest.fixture(scope="module")
def launcher():
    """What questions behind the walls are forked from."""
    if why_not := isolation.why_no_sandbox():
        pytest.skip(why_not)
    with Sandbox(isolation.sandbox_command(hide=["/usr/share"])) as launcher:
        yield launcher


@pytest.fixture(scope="module")
def question(launcher):
    """A question behind the walls."""
    return launcher.fresh(limits=LIMITS)


def look(place: str) -> str:

    try:
        return str(os.listdir(place))
    except OSError as error:
        return type(error).__name__


def test_a_submission_cannot_list_a_directory_of_its_graders(question, tmp_path):
    (tmp_path / "secret").touch()
    found = question.launch(look, 1, (str(tmp_path),), setup=False, alone=True).results[0]
    assert found in ("FileNotFoundError", "PermissionError")


def flood() -> int:
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
    assert 0 < question.launch(flood, 1, setup=False, alone=True).results[0] < LIMITS["processes"]


def hog() -> int:
    return len([bytearray(1 << 28) for _ in range(64)])


def test_a_submission_gets_no_more_memory_than_its_limit(question):
    with pytest.raises(RankError, match="MemoryError"):
        question.launch(hog, 1, setup=False, alone=True)


def hold_in_children() -> None:
    for _ in range(6):
        if os.fork() == 0:
            kept = b"x" * (400 << 20)
            time.sleep(60 + 0 * len(kept))
    time.sleep(60)


def hold_in_sockets() -> None:
    import socket

    for _ in range(6):
        if os.fork() == 0:
            kept = [socket.socketpair() for _ in range(100)]
            time.sleep(60 + 0 * len(kept))
    time.sleep(60)


@needs_bubblewrap
@pytest.mark.parametrize("hold", [hold_in_children, hold_in_sockets])
def test_a_submissions_processes_get_no_more_memory_together(question, hold):
    with pytest.raises(RankError, match="SIGKILL"):
        question.launch(hold, 1, setup=False, alone=True)


def fill_a_connection() -> int:
    """Bytes that one connection holds when nobody reads."""
    import socket

    listening = socket.create_server(("127.0.0.1", 0))
    sending = socket.create_connection(listening.getsockname())
    sending.setblocking(False)
    held, silent = 0, 0
    while silent < 50:
        try:
            held, silent = held + sending.send(bytes(1 << 16)), 0
        except BlockingIOError:
            silent += 1
            time.sleep(0.01)
    return held


@needs_bubblewrap
def test_a_connection_holds_no_more_than_it_is_counted_for(question):
    held = question.launch(fill_a_connection, 1, setup=False, alone=True).results[0]
    assert 0 < held <= 2 * namespaces.BUFFER_BYTES


def give_back(rank: int, world_size: int, num_bytes: int) -> bytes:
    return bytes(num_bytes)


def test_replies_are_bounded_together():
    with Sandbox() as launcher:
        one = launcher.fresh(limits={"reply_bytes": 1 << 20})
        assert len(one.launch(give_back, 3, (300_000,), setup=False).results[2]) == 300_000
        with pytest.raises(RankError, match="together returned more than 1,048,576 bytes"):
            one.launch(give_back, 3, (400_000,), setup=False)


# What cannot start is no submission's fault


@needs_bubblewrap
def test_a_rank_that_cannot_be_forked_is_no_submissions_fault():
    command = [*isolation.sandbox_command(), "prlimit", "--nproc=1:1"]
    with Sandbox(command) as launcher, pytest.raises(LaunchError, match="unavailable") as refused:
        launcher.launch(write_here, 2)
    verdict = verdicts.failed("test-double", 2, "", refused.value, 30, 1)
    assert verdicts.without_score(verdict)


@pytest.mark.parametrize("limits", [{"open_files": 8}, {"processes": 1}])
def test_a_rank_that_cannot_start_is_no_submissions_fault(launcher, limits):
    one = launcher.fresh(limits={**LIMITS, **limits})
    with pytest.raises(LaunchError, match=r"rank \d could not start") as refused:
        one.launch(write_here, 2)
    verdict = verdicts.failed("test-double", 2, "", refused.value, 30, 1)
    assert verdicts.without_score(verdict)


def kill_all(rank: int, world_size: int) -> None:
    import signal

    if rank == 0:
        os.kill(-1, signal.SIGKILL)
    time.sleep(60)


@needs_bubblewrap
def test_a_rank_that_ends_the_others_while_they_start_is_to_blame(question):
    with pytest.raises(RankError, match="SIGKILL"):
        question.launch(kill_all, 8, setup=False)


def write_here(rank: int, world_size: int) -> bool:

    with open("mine", "w") as file:
        file.write("x")
    return os.path.exists("mine")


def walls_here() -> list[str]:

    return sorted(
        n.rpartition(".")[2] for n in sys.modules if n.startswith("byhand.runtime.walls.")
    )


def test_a_rank_on_the_cpu_loads_nothing_for_gpus_and_nothing_of_the_judges(question):
    found = question.launch(walls_here, 1, setup=False, alone=True).results[0]
    assert found == ["limits", "namespaces", "notebook", "seccomp"]


def test_a_submission_may_write_where_it_stands(question):
    assert question.launch(write_here, 2).results == [True, True]


def write_everywhere() -> list[str]:

    mounted = {line.split()[1] for line in open("/proc/self/mounts")}
    written = []
    for place in {"/", "/dev", "/etc", "/home", "/root", "/run", "/usr", "/var", *mounted}:
        try:
            open(os.path.join(place, "left-behind"), "w").close()
            written.append(place)
        except OSError:
            pass
    return sorted(written)


def test_what_a_rank_writes_in_bubblewrap_no_other_rank_can_read(launcher):
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


def test_files_of_no_bytes_are_limited_too(launcher):
    one = launcher.fresh(limits=LIMITS)
    assert one.launch(empty_files, 1, setup=False, alone=True).results[0] <= 10_000


def test_without_bubblewrap_there_is_no_wall_and_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setattr(isolation.shutil, "which", lambda name: None)
    assert "apt-get install bubblewrap" in isolation.why_no_sandbox.__wrapped__()
    with Sandbox() as launcher:
        assert not launcher.isolate


def who() -> tuple[int, list[str], bool]:
    """Who a submission is, which files named after root it may open, whether it may be more."""
    import ctypes

    seen = [path for path in ("/root/.bashrc", "/root/.ssh", "/etc/shadow") if os.path.exists(path)]
    return os.getuid(), seen, ctypes.CDLL(None).setuid(0) == 0


def test_a_submission_is_not_root_and_sees_none_of_its_files(question):
    assert question.launch(who, 1, setup=False, alone=True).results[0][1:] == ([], False)
    assert question.launch(who, 1, setup=False, alone=True).results[0][0] != 0


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


def test_a_rank_that_swallows_interrupts_is_ended_at_its_limit(launcher):
    def swallow():
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass

    question = launcher.fresh(limits=LIMITS, seconds=1)
    with pytest.raises(TimeoutError):
        question.launch(swallow, 1, setup=False, alone=True)
