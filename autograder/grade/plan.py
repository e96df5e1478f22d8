"""What the judge is asked about one submission: plain data, made from the source and the answer.

Nothing that a student wrote gives the judge a name, or anything else, but the text of cells that
run in the sandbox.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autograder.cells import defined_names, is_grade, is_locked, is_solution
from byhand.runtime.walls.gpus import NO_GPUS, Gpus

if TYPE_CHECKING:
    from nbformat import NotebookNode

MIME = "application/vnd.byhand.verdict+json"  # of a verdict, as a display of the judge's notebook
NOTES_MIME = "application/vnd.byhand.notes+json"
LIMIT_SECONDS = 30.0
LIMITS = {
    "memory_bytes": 1 << 30,  # that a rank may write to; torch takes 0.3 GB of it
    "address_bytes": 16 << 30,  # mapped, read-only libraries included
    "processes": 48,  # of each rank, threads included
    "cpu_seconds": 120,
    "file_bytes": 64 << 20,
    "scratch_bytes": 64 << 20,  # each rank's /tmp
    "open_files": 256,
    "output_bytes": 4 << 20,
    "log_bytes": 12 << 20,
    "reply_bytes": 64 << 20,  # of all ranks of a launch together
}


@dataclass(frozen=True)
class Question:
    """A test cell: its name, points, text with hidden tests, and the student's cells before it."""

    name: str
    points: int
    source: str
    cells: list[tuple[str, str]]
    limit: float = LIMIT_SECONDS
    limits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """All that the judge needs of one submission, as plain data."""

    stand_ins: list[str]
    preparation: list[str]
    questions: list[Question]

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan whose fields JSON holds."""
        data = json.loads(text)
        return cls(**{**data, "questions": [Question(**one) for one in data["questions"]]})


def plan(
    source: NotebookNode, student: NotebookNode, limit: float | None = None, gpus: Gpus = NO_GPUS
) -> Plan:
    """The questions of a source notebook, each with the cells of a restored submission.

    Only names that the source's solution cells define become stand-ins. `limit` overrides each
    cell's own `metadata.limit_seconds`. `metadata.limits` of a locked cell changes some of LIMITS
    for the assignment, and that of a test cell for its question. `gpus` changes both as CUDA needs.
    """
    limits = dict(LIMITS)
    names: list[str] = []
    preparation: list[str] = []
    questions: list[Question] = []
    for cell in source.cells:
        if cell.cell_type != "code":
            continue
        if is_solution(cell):
            names += defined_names(cell.source)
        elif is_grade(cell):
            usual = float(cell.metadata.get("limit_seconds", LIMIT_SECONDS)) * gpus.patience
            own = gpus.limits({**limits, **cell.metadata.get("limits", {})})
            questions.append(
                Question(
                    cell.id,
                    cell.metadata.nbgrader.points,
                    cell.source,
                    cells_before(student, cell.id),
                    limit or usual,
                    own,
                )
            )
        elif is_locked(cell):
            limits.update(cell.metadata.get("limits", {}))
            preparation.append(cell.source)
    return Plan(list(dict.fromkeys(names)), preparation, questions)


def cells_before(student: NotebookNode, test: str) -> list[tuple[str, str]]:
    """(label, text) of the code cells of a restored notebook before this test, tests left out."""
    cells = []
    for cell in student.cells:
        if cell.id == test:
            break
        if cell.cell_type == "code" and (is_solution(cell) or not is_grade(cell)):
            cells.append((cell.id, cell.source))
    return [cell for cell in cells if cell[1].strip()]
