"""Checkpoints under faults that are real: ranks killed at random moments of training, a disk that
is full, a rank's file that is gone, programs that save at once. A sentence, or a right resume."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from byhand import RankError, launch
from byhand.checkpoint import CheckpointError, Shard, load, newest, save

NUMBERS = 3000  # of the weight


def gradient(step: int) -> torch.Tensor:
    """Whole numbers, so that sums are exact."""
    return (torch.arange(NUMBERS, dtype=torch.float64) * (step + 1)) % 1009


def weight_after(steps: int) -> torch.Tensor:
    """What an uninterrupted run has."""
    return sum((gradient(step) for step in range(steps)), torch.zeros(NUMBERS).double())


def trains(rank: int, n: int, folder: Path, victim: int, seconds: float, until: int | None) -> None:
    """Resume, then train and save every step; the victim is killed so many seconds later."""
    chosen = [newest(folder) if rank == 0 else None]
    dist.broadcast_object_list(chosen)
    pieces = torch.zeros(NUMBERS).double().tensor_split(n)
    mine = Shard(pieces[rank].clone(), (NUMBERS,), (sum(map(len, pieces[:rank])),))
    step = load(chosen[0], {"weight": mine})["step"] if chosen[0] else 0
    if rank == victim and until is None:
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
        timer.daemon = True
        timer.start()
    saving = None
    while until is None or step < until:
        total = gradient(step) / n
        dist.all_reduce(total)
        mine.tensor.add_(total.round().tensor_split(n)[rank])
        step += 1
        if saving is not None:
            saving.wait()
        named = folder / f"step-{step}"
        late = step % 2 == 0
        saving = save(named, {"weight": mine}, {"step": step}, keep=2, asynchronous=late)
    if saving is not None:
        saving.wait()


def test_a_run_killed_at_twenty_random_moments_has_the_weights_of_one_that_was_not(tmp_path):
    """In the middle of steps and of saves, of both kinds; each goes on from the last whole one."""
    draw, folder = random.Random(0), tmp_path / "runs"
    folder.mkdir()
    for number in range(20):
        n = 2 + number % 2  # and so in another cut each time
        victim, seconds = draw.randrange(n), draw.uniform(0, 0.3)
        with pytest.raises(
            RankError, match=r"SIGKILL|ended while it wrote"
        ):  # or who waited for it
            launch(trains, n, (folder, victim, seconds, None))
        if (last := newest(folder)) is not None:
            whole = Shard(torch.zeros(NUMBERS).double(), (NUMBERS,), (0,))
            step = load(last, {"weight": whole})["step"]
            assert last.name == f"step-{step}"
            assert torch.equal(whole.tensor, weight_after(step)), (number, step)
    begun = int(last.name.removeprefix("step-")) if last else 0
    launch(trains, 2, (folder, 0, 0.0, begun + 3))
    whole = Shard(torch.zeros(NUMBERS).double(), (NUMBERS,), (0,))
    assert load(newest(folder), {"weight": whole})["step"] == begun + 3
    assert torch.equal(whole.tensor, weight_after(begun + 3))
    assert len(list(folder.iterdir())) == 2, "what the killed left is gone"


def test_programs_that_save_the_same_folder_at_once_make_one_checkpoint_of_one_of_them(tmp_path):
    def races(rank: int, n: int) -> list[bool]:
        won = []
        for number in range(15):  # no process group: each is a program of its own
            mine = {"w": Shard(torch.full((500,), float(rank)), (500,), (0,))}
            try:
                save(tmp_path / f"{number}", mine, {"by": rank})
                won.append(True)
            except CheckpointError:
                won.append(False)
        return won

    run = launch(races, 4, setup=False)
    for number in range(15):
        winners = [rank for rank in range(4) if run.results[rank][number]]
        found = Shard(torch.zeros(500), (500,), (0,))
        by = load(tmp_path / f"{number}", {"w": found})["by"]
        assert [by] == winners
        assert found.tensor.tolist() == [by] * 500
    assert len(list(tmp_path.iterdir())) == 15


FULL = """
import errno, os, sys, torch
from pathlib import Path
from byhand.checkpoint import CheckpointError, Shard, load, newest, save

folder = Path(sys.argv[1])


def shard(value, count):
    return {"w": Shard(torch.full((count,), value), (count,), (0,))}


save(folder / "old", shard(1.0, 1000))
try:
    save(folder / "new", shard(2.0, 1_000_000))
except CheckpointError as error:
    assert os.strerror(errno.ENOSPC) in str(error), error
    print("refused:", error)
assert [path.name for path in folder.iterdir()] == ["old"]
found = shard(0.0, 1000)
load(newest(folder), found)
assert found["w"].tensor.eq(1).all()
save(folder / "new", shard(2.0, 2000))  # there is room again
print("whole:", newest(folder).name)
"""


def on_a_small_disk(program: str, folder: Path) -> str:
    """What a program prints whose argument is a disk of a megabyte."""
    (folder / "full.py").write_text(program)
    (folder / "small").mkdir()
    own = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = f"mount -t tmpfs -o size=1m none {folder}/small"
    if not shutil.which("unshare") or subprocess.run([*own, "sh", "-c", mount]).returncode:
        pytest.skip("the kernel lets nobody mount a small disk here")
    run = f"{sys.executable} {folder}/full.py {folder}/small"
    done = subprocess.run(
        [*own, "sh", "-c", f"{mount} && {run}"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_disk_that_is_full_is_a_sentence_and_the_old_checkpoint_stays(tmp_path):
    said = on_a_small_disk(FULL, tmp_path)
    assert "refused:" in said
    assert "whole: new" in said


FULL_OF_MANY = """
import sys
from pathlib import Path

import torch

from byhand import launch
from byhand.checkpoint import CheckpointError, Shard, save


def saves(rank, n, folder, asynchronous):
    count = 3_000_000 if rank == n - 1 else 1
    shard = Shard(torch.zeros(count), (n - 1 + 3_000_000,), (rank,))
    try:
        saving = save(folder / "new", {"w": shard}, asynchronous=asynchronous)
        if saving is not None:
            saving.wait()
    except CheckpointError as error:
        return str(error)


for asynchronous in (False, True) * 4:
    for said in launch(saves, 2, (Path(sys.argv[1]), asynchronous)).results:
        print(said)
"""


def test_of_many_ranks_none_is_said_to_have_ended_where_the_disk_is_full(tmp_path):
    said = on_a_small_disk(FULL_OF_MANY, tmp_path).splitlines()
    assert len(said) == 16
    assert [line for line in said if os.strerror(errno.ENOSPC) not in line] == []


@pytest.mark.parametrize("loss", ["gone", "torn"])
def test_a_ranks_file_that_is_gone_is_a_sentence_on_all_and_the_one_before_is_loaded(
    tmp_path, loss
):
    def saves(rank: int, n: int) -> None:
        for value in (1.0, 2.0):
            mine = Shard(torch.full((4,), value + rank), (4 * n,), (4 * rank,))
            save(tmp_path / f"{value}", {"w": mine})

    def loads(rank: int, n: int) -> tuple[str, float, list[float]]:
        mine = Shard(torch.zeros(6), (6 * n,), (6 * rank,))
        with pytest.raises(CheckpointError) as error:
            load(tmp_path / "2.0", {"w": mine})
        before = float(mine.tensor.sum())
        load(newest(tmp_path), {"w": mine})
        return str(error.value), before, mine.tensor.tolist()

    launch(saves, 3)
    path = tmp_path / "2.0" / "00001.bin"
    path.unlink() if loss == "gone" else path.write_bytes(path.read_bytes()[:5])
    assert newest(tmp_path) == tmp_path / "1.0"
    found = launch(loads, 2).results
    assert {said for said, _, _ in found} == {found[0][0]}
    assert ("is missing" if loss == "gone" else "has 5 bytes of") in found[0][0]
    assert [before for _, before, _ in found] == [0, 0]
    assert found[0][2] + found[1][2] == [1.0] * 4 + [2.0] * 4 + [3.0] * 4
