"""The journal: every judgement of a class, one JSON line each, appended and synced to the disk.

The gradebook, the feedback and the reports are made from it, so a judgement is never lost and
never made twice. A line that a crash cut short is ignored, and the next one begins after it.
"""

import contextlib
import fcntl
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from nbformat import NotebookNode

from autograder.collect.names import student_name
from autograder.grade.verdicts import BLANK, INFRASTRUCTURE, NO_ANSWER, Verdict
from autograder.places import Places
from byhand.runtime.walls.gpus import NO_GPUS

LIBRARY = Path(__import__("byhand").__file__).parent  # type: ignore[arg-type] # it has one


@dataclass(frozen=True)
class Judgement:
    """What became of one submission. `cells` are the student's: (name, cell type, text).

    `notes` are for the student, `suspicions` for the instructor alone. `sandbox` and `devices` say
    what it ran in and on. `not_judged`: why there is none, of what only stands for a judgement.
    `in_words`: the answers that a person marks and that are not as they were given out.
    """

    key: str
    student: str
    assignment: str
    when: str
    seed: int
    sandbox: str
    seconds: float
    notes: list[str]
    verdicts: list[Verdict]
    cells: list[tuple[str, str, str]] = field(default_factory=list)
    devices: str = str(NO_GPUS)
    suspicions: list[str] = field(default_factory=list)
    not_judged: str = ""
    in_words: list[str] = field(default_factory=list)

    @property
    def points(self) -> int:
        """Points earned by tests."""
        return sum(verdict.points for verdict in self.verdicts)

    @property
    def max_points(self) -> int:
        """Points that tests can give."""
        return sum(verdict.max_points for verdict in self.verdicts)

    @property
    def complete(self) -> bool:
        """Whether every question could be judged."""
        return not self.not_judged and all(v.verdict != INFRASTRUCTURE for v in self.verdicts)

    @property
    def why_incomplete(self) -> str:
        """Why the first question that could not be judged was not; "" where all were."""
        of_questions = (v.message for v in self.verdicts if v.verdict == INFRASTRUCTURE)
        return self.not_judged or next(of_questions, "")

    @property
    def standing(self) -> str:
        """One of NO_ANSWER where every question ended so; else "". Words are an answer, too."""
        kinds = {verdict.verdict for verdict in self.verdicts}
        standing = kinds.pop() if len(kinds) == 1 and kinds <= set(NO_ANSWER) else ""
        return "" if standing == BLANK and self.in_words else standing

    @property
    def stamp(self) -> dict[str, Any]:
        """What the gradebook's notebook of this submission says of the judgement that it holds."""
        return {"key": self.key, "when": self.when, "notes": self.notes}

    def is_recorded(self, where: Places) -> bool:
        """Whether autograded/ holds exactly this judgement: it is written after the scores are."""
        stem = where.source(self.assignment).stem
        path = where.autograded / self.student / self.assignment / f"{stem}.ipynb"
        try:
            stamp = json.loads(path.read_text())["metadata"]["autograder"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return where.gradebook.exists() and stamp == self.stamp

    def as_line(self) -> bytes:
        """One line of the journal."""
        return json.dumps(asdict(self), ensure_ascii=True, sort_keys=True).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """The judgement that `as_line` wrote.

        Raises:
            ValueError, TypeError, KeyError: the line is not whole.
        """
        data: dict[str, Any] = json.loads(line)
        data["student"] = student_name(data["student"])
        data["verdicts"] = [Verdict(**verdict) for verdict in data["verdicts"]]
        data["cells"] = [tuple(cell) for cell in data["cells"]]
        return cls(**data)


class Journal:
    """An append-only file of judgements; the latest with a key is the one that counts.

    What could not be judged is no judgement, and is not kept: the next run tries it again.
    """

    def __init__(self, path: Path):
        self.path = path
        self._by_key: dict[str, Judgement] = {}
        self._by_place: dict[tuple[str, str], Judgement] = {}
        self._read_to = 0

    def find(self, key: str) -> Judgement | None:
        """The latest judgement with this key."""
        self._read()
        return self._by_key.get(key)

    def latest(self) -> list[Judgement]:
        """The latest judgement of each student's assignment, by assignment and student."""
        self._read()
        return [self._by_place[place] for place in sorted(self._by_place)]

    def last(self, student: str, assignment: str) -> Judgement | None:
        """The latest judgement on a student's assignment."""
        self._read()
        return self._by_place.get((assignment, student))

    def append(self, judgement: Judgement) -> None:
        """Write one judgement; it is on the disk when this returns.

        Raises:
            OSError: the disk is full or the file cannot be written; nothing else is lost.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the formgrader may be writing too
            end = file.seek(0, os.SEEK_END)
            is_torn = end and os.pread(file.fileno(), 1, end - 1) != b"\n"
            file.write((b"\n" if is_torn else b"") + judgement.as_line())
            file.flush()
            os.fsync(file)

    def count(self, judgement: Judgement) -> Judgement:
        """Write a judgement, if it is not the latest on its student's assignment already.

        Work that is handed in again as it was before counts again, and what came between does not.

        Raises:
            OSError: as `append`.
        """
        if self.last(judgement.student, judgement.assignment) != judgement:
            self.append(judgement)
        return judgement

    def _read(self) -> None:
        """Take in what was appended since the last look, but for lines that a crash cut short."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            file.seek(self._read_to)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError):
                judgement = Judgement.from_line(line)
                if judgement.complete:  # as older journals hold others, too
                    self._by_key[judgement.key] = judgement
                    self._by_place[judgement.assignment, judgement.student] = judgement


def judgement_key(
    about: list[str], notebook: NotebookNode, source: NotebookNode, means: str
) -> str:
    """hash(submission, tests, means): the same key means the same judgement."""
    submission = [[cell.id, cell.cell_type, cell.source] for cell in notebook.cells]
    code = [cell for cell in source.cells if cell.cell_type == "code"]
    tests = [[cell.id, cell.source, cell.metadata] for cell in code]
    text = json.dumps([about, submission, tests, means], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def default_seed(source: NotebookNode) -> int:
    """The seed of an assignment's random inputs: fixed by its tests, unlike the students' own."""
    text = json.dumps([cell.source for cell in source.cells])
    return int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)


@functools.cache
def environment() -> str:
    """What besides the submission and the tests decides a verdict: Python, torch, this library.

    As it was when this process first asked, which is when it loaded them.
    """
    torch = importlib.metadata.version("torch")
    files = sorted(set(LIBRARY.rglob("*.py")) - set(LIBRARY.glob("figures/*.py")))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return f"python {platform.python_version()}, torch {torch}, byhand {digest[:12]}"
