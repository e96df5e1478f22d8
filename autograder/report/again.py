"""What grading again changed, task by task, and why."""

from collections.abc import Iterable, Iterator

from autograder.grade.journal import Judgement
from autograder.grade.marks import read_marks
from autograder.grade.verdicts import Verdict, first_paragraph
from autograder.places import Places


def changes(
    where: Places, before: Iterable[Judgement], after: Iterable[Judgement]
) -> Iterator[str]:
    """A sentence for each judgement that gives other points than the last one on the same work."""
    last = {(one.assignment, one.student): one for one in before}
    pairs = [(last.get((now.assignment, now.student)), now) for now in after]
    found = [
        (was, now)
        for was, now in pairs
        if was and was.complete and now.complete and was.points != now.points
    ]
    marks = read_marks(where, [now for _, now in found]) if found else {}
    for was, now in found:
        first = f"{now.student}, {now.assignment}: {was.points} -> {now.points} points from tests"
        by_hand = marks[now.assignment, now.student].by_hand
        if any(verdict.question in by_hand for verdict in now.verdicts):
            first += ", and the mark by hand stays"
        yield "\n  ".join([f"{first}; {_why(was, now)}", *_tasks(was, now)])


def _why(was: Judgement, now: Judgement) -> str:
    old, new = ({name: text for name, _, text in one.cells} for one in (was, now))
    if cells := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
        return f"the submission changed, in {', '.join(cells)}"
    for name in ("sandbox", "devices"):
        if getattr(was, name) != getattr(now, name):
            return f"{name}: {getattr(now, name)} instead of {getattr(was, name)}"
    if was.key != now.key:
        return "the tests, their limits, the seed or the library changed since"
    return "nothing else changed: the answer itself depends on chance or on time"


def _tasks(was: Judgement, now: Judgement) -> Iterator[str]:
    old = {verdict.question: verdict for verdict in was.verdicts}
    for verdict in now.verdicts:
        one = old.get(verdict.question, verdict)
        if one.points != verdict.points:
            yield f"{verdict.question}: {_said(one)} -> {_said(verdict)}"


def _said(verdict: Verdict) -> str:
    where = f" in “{verdict.part}”" if verdict.part else ""
    message = first_paragraph(verdict.message).partition("\n")[0]
    what = f"{verdict.verdict}{where} ({verdict.points} of {verdict.max_points})"
    return f"{what}: {message}" if message else what
