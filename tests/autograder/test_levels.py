"""The levels of separation: what each keeps from a submission, and that each is recorded."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from autograder.grade import verdicts
from autograder.grade.engine import Grader
from autograder.grade.judge import LIMITS
from autograder.places import CourseError, Places
from byhand.runtime import LaunchError, RankError
from byhand.runtime.launching import launch_on
from byhand.runtime.walls import isolation, namespaces
from byhand.runtime.walls.cgroup import Cgroup
from byhand.runtime.walls.question import Sandbox

TOO_MUCH = r"SIGKILL|the ranks together held"  # from inside, or by the cgroup
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
    found = launch_on(question, look, 1, (str(tmp_path),), setup=False, alone=True).results[0]
    assert found in ("FileNotFoundError", "PermissionError")


KEYS = """from byhand.runtime.launching import launch_on
from byhand.runtime.walls import isolation, namespaces
from byhand.runtime.walls.cgroup import Cgroup
from byhand.runtime.walls.question import Sandbox

def call(*args):
    import ctypes
    return ctypes.CDLL(None).syscall(*args)

search = namespaces._KEYCTL, 10, -3, b"user", b"login", 0
namespaces._own_keys()
assert call(namespaces._KEYCTL - 2, b"user", b"login", b"secret", 6, -3) > 0
with Sandbox(isolation.sandbox_command()) as launcher, launcher.fresh() as question:
    found = launch_on(question, call, 1, search, setup=False, alone=True).results
print(call(*search) > 0, found)
"""


@needs_bubblewrap
@pytest.mark.skipif(not namespaces._KEYCTL, reason="no keys are known here")
def test_a_submission_finds_none_of_the_keys_of_who_logged_in():
    done = subprocess.run([sys.executable, "-c", KEYS], capture_output=True, text=True, check=True)
    assert done.stdout == "True [-1]\n"


@needs_bubblewrap
def test_a_class_in_pythons_own_folder_which_submissions_see_is_not_graded(tmp_path):
    with pytest.raises(CourseError, match="which every submission sees"):
        Grader(Places(tmp_path, Path(sys.prefix, "class")))


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
    assert (
        0 < launch_on(question, flood, 1, setup=False, alone=True).results[0] < LIMITS["processes"]
    )


def hold_in_children() -> None:
    for _ in range(6):
        if os.fork() == 0:
            kept = b"x" * (400 << 20)
            time.sleep(60 + 0 * len(kept))
    time.sleep(60)


def test_a_submissions_processes_get_no_more_memory_together(question):
    with pytest.raises(RankError, match=TOO_MUCH):
        launch_on(question, hold_in_children, 1, setup=False, alone=True)


def hold_in_segments(num_bytes: int) -> None:
    """Segments that nobody is attached to any more."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    for _ in range(num_bytes >> 26):
        place = libc.shmat(libc.shmget(0, 1 << 26, 0o1600), None, 0)
        ctypes.memset(place, 1, 1 << 26)
        libc.shmdt(ctypes.c_void_p(place))
    time.sleep(60)


def test_a_submissions_segments_of_system_v_are_weighed_too(launcher):
    one = launcher.fresh(limits={**LIMITS, "memory_bytes": 1 << 29})
    with pytest.raises(RankError, match=TOO_MUCH):
        launch_on(one, hold_in_segments, 1, (1 << 29,), setup=False, alone=True)


def hold_in_files(num_bytes: int) -> None:
    """Files in memory that nobody has mapped."""
    for _ in range(num_bytes >> 24):
        os.write(os.memfd_create("mine"), bytes(1 << 24))
    time.sleep(60)


def test_a_submissions_files_in_memory_are_weighed_too(launcher):
    if launcher.cgroup is None:
        pytest.skip("no memory cgroup may be made here")
    one = launcher.fresh(limits={**LIMITS, "memory_bytes": 1 << 29})
    with pytest.raises(RankError, match="the ranks together held"):
        launch_on(one, hold_in_files, 1, (1 << 30,), setup=False, alone=True)


def test_a_sandboxs_cgroup_goes_with_it_and_with_the_next_one():
    with Sandbox(isolation.sandbox_command()) as sandbox:
        if sandbox.cgroup is None:
            pytest.skip("no memory cgroup may be made here")
        assert launch_on(sandbox.fresh(), rank_of, 2).results == [0, 1]
        assert (sandbox.cgroup.folder / "cgroup.procs").read_text()
        sandbox.close()
        assert not sandbox.cgroup.folder.exists()
        assert launch_on(sandbox.fresh(), rank_of, 2).results == [0, 1], "it starts again"
    assert not sandbox.cgroup.folder.exists()
    kept = Cgroup.make()
    make = "from byhand.runtime.walls.cgroup import Cgroup; print(Cgroup.make().folder)"
    ended = subprocess.run([sys.executable, "-c", make], stdout=subprocess.PIPE, text=True)
    left = Path(ended.stdout.strip())
    assert left.name.startswith("byhand-")
    Cgroup.make().close()
    assert not left.exists(), "of a process that is gone"
    assert kept.folder.exists(), "of one that runs"
    kept.close()


def rank_of(rank: int, world_size: int) -> int:
    return rank


def give_back(rank: int, world_size: int, num_bytes: int) -> bytes:
    return bytes(num_bytes)


def test_replies_are_bounded_together():
    with Sandbox() as launcher:
        one = launcher.fresh(limits={"reply_bytes": 1 << 20})
        assert len(launch_on(one, give_back, 3, (300_000,), setup=False).results[2]) == 300_000
        with pytest.raises(RankError, match="together returned more than 1,048,576 bytes"):
            launch_on(one, give_back, 3, (400_000,), setup=False)


# What cannot start is no submission's fault


@needs_bubblewrap
def test_a_rank_that_cannot_be_forked_is_no_submissions_fault():
    command = [*isolation.sandbox_command(), "prlimit", "--nproc=1:1"]
    with Sandbox(command) as launcher, pytest.raises(LaunchError, match="unavailable") as refused:
        launch_on(launcher, write_here, 2)
    verdict = verdicts.failed("test-double", 2, "", refused.value, 30, 1)
    assert verdict.verdict == verdicts.INFRASTRUCTURE


@pytest.mark.parametrize("limits", [{"open_files": 8}, {"processes": 1}])
def test_a_rank_that_cannot_start_is_no_submissions_fault(launcher, limits):
    one = launcher.fresh(limits={**LIMITS, **limits})
    with pytest.raises(LaunchError, match=r"rank \d could not start") as refused:
        launch_on(one, write_here, 2)
    verdict = verdicts.failed("test-double", 2, "", refused.value, 30, 1)
    assert verdict.verdict == verdicts.INFRASTRUCTURE


def kill_all(rank: int, world_size: int) -> None:
    import signal

    if rank == 0:
        os.kill(-1, signal.SIGKILL)
    time.sleep(60)


def test_a_rank_that_ends_the_others_while_they_start_is_to_blame(question):
    with pytest.raises(RankError, match="SIGKILL"):
        launch_on(question, kill_all, 8, setup=False)


def write_here(rank: int, world_size: int) -> bool:

    with open("mine", "w") as file:
        file.write("x")
    return os.path.exists("mine")


def walls_here() -> list[str]:

    return sorted(
        n.rpartition(".")[2] for n in sys.modules if n.startswith("byhand.runtime.walls.")
    )


def test_a_rank_on_the_cpu_loads_nothing_for_gpus_and_nothing_of_the_judges(question):
    found = launch_on(question, walls_here, 1, setup=False, alone=True).results[0]
    assert found == ["codec", "limits", "namespaces", "notebook"]


def test_a_submission_may_write_where_it_stands(question):
    assert launch_on(question, write_here, 2).results == [True, True]


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


@needs_bubblewrap
def test_a_rank_in_bubblewrap_writes_only_where_its_question_ends():
    with Sandbox(isolation.sandbox_command(hide=["/usr/share"])) as launcher:
        one = launcher.fresh(limits=LIMITS)
        found = launch_on(one, write_everywhere, 1, setup=False, alone=True).results[0]
        assert found == ["/dev/shm", "/tmp"]


def make_namespaces() -> dict[str, str]:
    """What the kernel says to each way to namespaces and mounts."""
    import ctypes
    import errno
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    user, mounts, new = 0x10000000, 0x00020000, struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0)
    ways = {
        "unshare user": lambda: libc.unshare(user),
        "unshare mounts": lambda: libc.unshare(mounts),
        "clone3": lambda: libc.syscall(435, new, len(new)),
        "mount": lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "umount": lambda: libc.umount2(b"/tmp", 2),
    }
    found = {}
    for name, way in ways.items():
        if (done := way()) == 0 and name == "clone3":
            os._exit(0)  # in a child
        found[name] = "done" if done >= 0 else errno.errorcode[ctypes.get_errno()]
    return found


def test_a_rank_makes_no_namespace_and_mounts_nothing(question):
    found = launch_on(question, make_namespaces, 1, setup=False, alone=True).results[0]
    assert set(found.values()) == {"ENOSPC", "EPERM"}, found


def add_up_batches(rank: int, world_size: int) -> tuple[float, str]:
    data = TensorDataset(torch.arange(8.0).chunk(world_size)[rank])
    loader = DataLoader(data, batch_size=2, num_workers=2)
    total = sum(batch.sum() for (batch,) in loader)
    dist.all_reduce(total)
    return total.item(), open("/proc/self/oom_score_adj").read().strip()


def test_the_workers_of_a_data_loader_start_and_the_kernel_ends_them_first(question):
    assert launch_on(question, add_up_batches, 2).results == [(28.0, "1000")] * 2


def total_of(rank: int, world_size: int, num_bytes: int) -> None:
    dist.all_reduce(torch.ones(num_bytes // 4))


@pytest.mark.parametrize("num_bytes", [1 << 20, 8 << 20])
def test_the_loopback_of_a_question_is_counted_coarsely(question, num_bytes):
    run = launch_on(question, total_of, 3, (num_bytes,))
    sent = 2 * (3 - 1) * num_bytes  # all ranks together, in gloo's ring
    assert abs(run.loopback_bytes - sent) < 0.25 * sent + (256 << 10)


def test_the_machines_own_loopback_is_not_counted():
    with Sandbox() as launcher, launcher.fresh() as question:
        assert launch_on(question, total_of, 2, (4,)).loopback_bytes is None


def empty_files() -> int:
    made = 0
    try:
        while made < 100_000:
            open(f"/tmp/{made}", "w").close()
            made += 1
    except OSError:
        pass
    return made


def test_files_of_no_bytes_are_limited_too(question):
    assert launch_on(question, empty_files, 1, setup=False, alone=True).results[0] <= 10_000


def who() -> tuple[int, list[str], bool]:
    """Who a submission is, which files named after root it may open, whether it may be more."""
    import ctypes

    seen = [path for path in ("/root/.bashrc", "/root/.ssh", "/etc/shadow") if os.path.exists(path)]
    return os.getuid(), seen, ctypes.CDLL(None).setuid(0) == 0


def test_a_submission_is_not_root_and_sees_none_of_its_files(question):
    assert launch_on(question, who, 1, setup=False, alone=True).results[0][1:] == ([], False)
    assert launch_on(question, who, 1, setup=False, alone=True).results[0][0] != 0
