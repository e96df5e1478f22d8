"""Grading that is killed at random points and started again must end as if nothing had happened.

    python tests/autograder/soak.py [kills]

A small class is graded by two workers; the process that grades is ended with SIGKILL after a
random time, and grading starts again, until it comes to its end. Then the gradebook must equal
that of a class graded without a kill, row by row, the journal must hold each judgement once, and
no process and no folder may be left. A test does the same with a judge that only pretends.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import leftovers
import tiny_course
from nbgrader import api
from tqdm import tqdm

from autograder.batch.grading import GradeOptions, grade
from autograder.grade.journal import Journal
from autograder.grade.judge import Case
from autograder.grade.verdicts import passed
from autograder.grade.warm_kernel import Verdicts, WarmKernel
from autograder.places import Places
from byhand.runtime.walls.isolation import why_no_sandbox

KILLS = 100
NAME = [tiny_course.ASSIGNMENT]
SHARED_ID = ("grade_cells", "solution_cells", "task_cells")  # their id is a base_cell's


def make_class(folder: Path) -> Places:
    """Four hand-ins that get different marks."""
    where = tiny_course.make_course(folder)
    blank = tiny_course.released(where)
    right = tiny_course.solved(blank)
    negative = "def double(number):\n    return 2 * abs(number)"
    tiny_course.hand_in(where, "ada", right)
    tiny_course.hand_in(where, "ben", blank)
    tiny_course.hand_in(where, "cem", tiny_course.answered(right, double=negative))
    tiny_course.hand_in(where, "dee", b"{")
    return where


def rows(gradebook: Path) -> list[tuple]:
    """Every row of nbgrader's gradebook, with what a random id stands for in its place."""
    with sqlite3.connect(gradebook) as database:
        database.row_factory = sqlite3.Row
        tables = [
            name
            for (name,) in database.execute("select name from sqlite_master where type = 'table'")
        ]
        found = [
            (table, dict(row))
            for table in tables
            for row in database.execute(f"select * from {table}")
        ]
    named = {
        row["id"]: (table, row) for table, row in found if "id" in row and table not in SHARED_ID
    }

    def meaning(value: Any) -> Any:
        return plain(*named[value]) if value in named else value

    def plain(table: str, row: dict[str, Any]) -> tuple:
        own = {} if table in SHARED_ID else {"id": None}
        shown = {**row, **own}
        return (table, *((column, meaning(value)) for column, value in sorted(shown.items())))

    return sorted((plain(table, row) for table, row in found), key=repr)


def grade_until(where: Places, options: GradeOptions, seconds: float | None) -> bool:
    """Grade in a process that is killed after `seconds`. Whether it came to its end before."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = len(grade(where, NAME, [], options).failures)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    until = time.monotonic() + (600 if seconds is None else seconds)
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0, f"grading ended with status {status}"
            return True
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert seconds is not None, "grading did not come to its end"
    return False


def check_class(where: Places, expected: list[tuple]) -> None:
    """The gradebook is the expected one, and the journal holds each judgement once."""
    assert rows(where.gradebook) == expected, "the gradebook differs"
    journal = Journal(where.journal)
    assert len(journal.latest()) == 4, "a judgement is missing"
    whole = [line for line in where.journal.read_bytes().split(b"\n") if line.endswith(b"}")]
    assert len(whole) == 4, "a judgement was written twice"


def soak(folder: Path, kills: int, options: GradeOptions, chance: random.Random) -> int:
    """Kill and go on until `kills` are done; how many classes came to their end meanwhile."""
    where = make_class(folder)
    began = time.monotonic()
    grade_until(where, options, None)
    seconds, expected, classes, killed = time.monotonic() - began, rows(where.gradebook), 0, 0
    every = 0.1 if sys.stderr.isatty() else 30.0

    def after(killed: int) -> float | None:  # the last class comes to its end in peace
        return chance.uniform(0, seconds) if killed < kills else None

    with tqdm(total=kills, unit="kill", mininterval=every) as bar:
        while killed < kills:
            again = Places(where.course, folder / f"class-{classes}")
            shutil.copytree(where.submitted, again.submitted)
            while not grade_until(again, options, after(killed)):
                killed += 1
                bar.update()
            check_class(again, expected)
            shutil.rmtree(again.class_dir)
            classes += 1
    return classes


def pretend() -> None:
    """Judge without a kernel or a sandbox: by what the answer's text says."""

    def judge(self: WarmKernel, case: Case, seed: int) -> Verdicts:
        time.sleep(0.05)
        right = "return 2 * number" in repr(case.questions[0].cells)
        verdicts = [
            passed(q.name, q.points, 0.1)
            if right
            else replace(passed(q.name, q.points, 0.1), verdict="failed", points=0)
            for q in case.questions
        ]
        return Verdicts(verdicts, [])

    WarmKernel.judge = judge
    api.get_alembic_version = cache(api.get_alembic_version)  # a second, each time
    api.get_alembic_version()


def main(kills: int, pretending: bool) -> None:
    """Soak, and say how it went."""
    mark, pids, _ = leftovers.begin()
    if pretending:
        pretend()
    walls = not pretending and not why_no_sandbox()
    options = GradeOptions(sandboxed=walls, progress=False, jobs=1 if pretending else 2)
    seed = random.randrange(10**6)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        classes = soak(Path(folder), kills, options, random.Random(seed))
    left = leftovers.processes(mark, pids, patience=10.0)
    print(
        f"killed {kills} times (seed {seed}); {classes} classes graded to their end in between:"
        f" every gradebook as without a kill; {len(left)} processes left"
    )
    sys.exit("\n".join(left) if left else 0)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(numbers[0] if numbers else KILLS, "--pretend" in sys.argv)
