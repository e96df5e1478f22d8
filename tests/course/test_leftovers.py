"""The suite's last check, itself checked: what would be left behind is seen."""

import subprocess
import sys
from multiprocessing import shared_memory

import leftovers
import pytest

# Popen may return while the new program's environment and command line still read as empty. So
# each child here says when it runs, and is looked for only then.
SLEEPER = "import time; print('running', flush=True); time.sleep(60)  # byhand.runtime"


@pytest.fixture
def mark(request):
    return request.config.leftovers_before[0]


def test_a_child_that_left_the_session_with_setsid_is_seen_until_it_ends(mark):
    command = [sys.executable, "-c", SLEEPER]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout.readline() == b"running\n"
    seen = leftovers.processes(mark, patience=0)
    child.kill()
    child.communicate()
    assert any(line.startswith(f"{child.pid} ") for line in seen)
    assert not any(
        line.startswith(f"{child.pid} ") for line in leftovers.processes(mark, patience=0)
    )


def test_an_orphan_without_the_mark_is_seen_by_the_runtimes_name():
    command = [sys.executable, "-c", SLEEPER]
    pipes = "stdout=subprocess.PIPE, stderr=subprocess.DEVNULL"
    started = f"subprocess.Popen({command}, env={{}}, {pipes})"
    parent = f"import subprocess; child = {started}; child.stdout.readline(); print(child.pid)"
    output = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True)
    pid = int(output.stdout)
    seen = leftovers.processes("no such mark", patience=0)
    subprocess.run(["kill", str(pid)], check=True)
    assert any(line.startswith(f"{pid} ") for line in seen), (pid, seen)


def test_a_segment_counts_as_abandoned_only_once_nobody_holds_it():
    before = leftovers.segments()
    segment = shared_memory.SharedMemory(create=True, size=4096)
    held = leftovers.abandoned_segments(before)
    segment.close()
    abandoned = leftovers.abandoned_segments(before)
    segment.unlink()
    assert segment.name not in held
    assert segment.name in abandoned
