"""Answers judged as a class is: by the same judge in warm workers, several answers to a notebook.

A notebook holds one answer a task. That an answer touches no other task follows from its text: it
fills only the cells of its task, and no other task uses what those define. The exceptions, such as
all_reduce on top of task 3, stand in BUILDS_ON, and wrong ones go into notebooks of their own.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import answers
from autograder.batch.grading import GradeOptions, judgements_on
from autograder.batch.queue import cores
from autograder.grade.engine import Grader
from autograder.grade.verdicts import Verdict
from autograder.places import Places
from byhand.runtime.walls.isolation import why_no_sandbox

BUILDS_ON = {
    "test-all-reduce": "test-all-gather-reduce-scatter",
    "test-gpipe": "test-stage",
    "test-train": "test-one-forward-one-backward",
    "test-expert-groups": "test-groups",
    "test-step-seconds": "test-ring-seconds",
    "test-run": "test-step",
}


def batches(some: Iterable[Any], right: bool = False) -> list[list[Any]]:
    """These answers (or whatever has a stem and a test) in groups that fit into one notebook.

    On a wrong answer no other may build, for that would fail with it; on a right one it may.
    """
    groups, seen = defaultdict(list), Counter()
    for one in some:
        apart = not right and one.test in BUILDS_ON
        groups[one.stem, seen[one.stem, one.test], apart].append(one)
        seen[one.stem, one.test] += 1
    return list(groups.values())


def notebook(stem: str, tests: Sequence[str], cells: dict[str, str]) -> dict:
    """The exercise with these texts in cells of these tests' tasks; other tasks stay blank.

    What a task builds on is the solution's, and so is the rest of a task.
    """
    solved = {cell["id"]: cell["source"] for cell in answers.full(stem)["cells"]}
    book = answers.blank(stem)
    needed = [*tests, *(BUILDS_ON[test] for test in tests if test in BUILDS_ON)]
    filled = {name for test in needed for name in answers.task_cells(stem, test)}
    for cell in book["cells"]:
        if cell["id"] in filled:
            cell["source"] = cells.get(cell["id"], solved[cell["id"]])
    return book


def verdicts(
    folder: Path,
    books: Sequence[tuple[str, dict]],
    limit: float | None = None,
    jobs: int = cores(),  # more of these only share the processors
) -> Iterator[tuple[int, dict[str, Verdict]]]:
    """(number, verdicts by test) of each of these (stem, notebook), as they come."""
    where = Places(answers.ROOT, folder)
    places = [(f"book-{number}", stem) for number, (stem, _) in enumerate(books)]
    for (student, stem), (_, book) in zip(places, books, strict=True):
        path = where.submitted / student / stem / f"{stem.split('_', 1)[1]}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(book))
    options = GradeOptions(sandboxed=why_no_sandbox() is None, limit=limit, jobs=jobs)
    with Grader(where, **options.engine) as grader:
        for _, judgement, why in judgements_on(grader, places, options):
            assert judgement, why
            number = int(judgement.student.removeprefix("book-"))
            yield number, {verdict.question: verdict for verdict in judgement.verdicts}
