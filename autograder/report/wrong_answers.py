"""Submissions that fail the same test in the same way, put together. Pure: judgements in.

Two answers count as the same wrong answer when the same part of the same test ends them with the
same verdict and the same first paragraph of the message, whatever numbers stand in it: "rank 2: got
4.0, expected 6.0" and "rank 1: got 3.5, expected 5.0" are one mistake made with two inputs. What
is no answer (a blank, another assignment's notebook) is no wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.grade.journal import Judgement
from autograder.grade.verdicts import INFRASTRUCTURE, NO_ANSWER, PASSED, Verdict

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[-+]?(?<![A-Za-z_\d])\d+(?:\.\d*)?(?:e[-+]?\d+)?j?")
_RUN = re.compile(r"#(?:[\s,;\[\]()]*#)+")


@dataclass(frozen=True)
class Group:
    """Students who fail one test in the same way; `example` is the first one's verdict."""

    students: list[str]
    example: Verdict

    @property
    def message(self) -> str:
        """The message of the example, without a traceback."""
        return first_paragraph(self.example.message)


def groups(judgements: Iterable[Judgement]) -> list[Group]:
    """All groups of one assignment, the largest first."""
    found: dict[tuple[str, ...], Group] = {}
    for judgement in judgements:
        for verdict in judgement.verdicts:
            if verdict.verdict not in (PASSED, *NO_ANSWER, INFRASTRUCTURE):
                same = masked(first_paragraph(verdict.message))
                key = (verdict.question, verdict.verdict, verdict.part, same)
                found.setdefault(key, Group([], verdict)).students.append(judgement.student)
    return sorted(found.values(), key=lambda g: (-len(g.students), g.example.question, g.message))


def first_paragraph(message: str) -> str:
    """A message up to its first empty line."""
    return message.strip().partition("\n\n")[0]


def masked(text: str) -> str:
    """A text with each number, and each row of numbers, as one #."""
    return _RUN.sub("#", _NUMBER.sub("#", " ".join(text.split())))
