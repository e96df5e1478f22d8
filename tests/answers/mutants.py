"""Do the exercises' tests notice a small mistake? Solutions are changed in one place and judged.

    PYTHONPATH=.:tests python -m answers.mutants [STEM...] [--count N] [--jobs N] [--all]

Each mutant is judged as a student's answer is, on the test of its task. One that loses no point
survives: the tests have a hole, or the change is none. What is none stands, with the reason, in
mutants_equivalent.toml; any other survivor is listed at the end, and fails the run. Judged mutants
are kept in build/mutants.jsonl, so that a run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from tqdm import tqdm

import answers
from answers import judging
from answers.mutations import Mutant, chosen, mutants
from autograder.batch.queue import cores
from autograder.grade.journal import environment
from autograder.grade.verdicts import INFRASTRUCTURE, PASSED

EQUIVALENT = Path(__file__).with_name("mutants_equivalent.toml")
KNOWN = answers.ROOT / "build" / "mutants.jsonl"
PER_EXERCISE = 30
LIMIT = 30.0


def all_mutants(stem: str) -> list[Mutant]:
    """Every mutant of one exercise."""
    return mutants(answers.source(stem), stem)


@cache
def exercise(stem: str, test: str) -> dict:
    """The source notebook with this test alone."""
    notebook = answers.source(stem)
    notebook["cells"] = [
        cell
        for cell in notebook["cells"]
        if cell["id"] == test or not cell["metadata"].get("nbgrader", {}).get("grade")
    ]
    return notebook


def key(mutant: Mutant) -> str:
    """What the verdict on a mutant depends on."""
    text = json.dumps([str(mutant), mutant.text, exercise(mutant.stem, mutant.test), environment()])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def verdicts(wanted: list[Mutant], jobs: int) -> dict[Mutant, str]:
    """The verdict on each mutant: those known from an earlier run, and the others judged now."""
    known = _known()
    found = {mutant: known[key(mutant)] for mutant in wanted if key(mutant) in known}
    groups = judging.batches(mutant for mutant in wanted if mutant not in found)
    books = [
        (
            group[0].stem,
            judging.notebook(
                group[0].stem, [m.test for m in group], {m.cell: m.text for m in group}
            ),
        )
        for group in groups
    ]
    KNOWN.parent.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        open(KNOWN, "a", encoding="utf-8") as file,
        tqdm(total=len(wanted), initial=len(found), unit="mutant") as bar,
    ):
        for number, judged in judging.verdicts(Path(folder), books, LIMIT, jobs):
            for mutant in groups[number]:
                found[mutant] = judged[mutant.test].verdict
                line = {"key": key(mutant), "verdict": found[mutant], "mutant": str(mutant)}
                print(json.dumps(line), file=file, flush=True)
                bar.update()
    return found


def _known() -> dict[str, str]:
    lines = KNOWN.read_text(encoding="utf-8").splitlines() if KNOWN.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith("}")]
    return {e["key"]: e["verdict"] for e in entries if e["verdict"] != INFRASTRUCTURE}


def reasons() -> list[dict[str, str]]:
    """Changes that are none: cell, before and after (shell patterns; any, where not given), why."""
    return tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])


def reason(mutant: Mutant, entries: Iterable[dict[str, str]]) -> str | None:
    """Why a mutant does what the solution does; None where nobody gave a reason."""
    texts = {"cell": f"{mutant.stem}/{mutant.cell}", "before": mutant.before, "after": mutant.after}
    for entry in entries:
        if all(fnmatchcase(text, entry.get(name, "*")) for name, text in texts.items()):
            return entry["why"]
    return None


def report(found: dict[Mutant, str]) -> Iterator[str]:
    """The table: by exercise, how many mutants were killed, and by which verdict."""
    entries = reasons()
    yield f"{'exercise':26}{'mutants':>8}{'killed':>8}{'equivalent':>11}{'survive':>8}  killed by"
    total: Counter[str] = Counter()
    for stem in sorted({mutant.stem for mutant in found}):
        own = {mutant: verdict for mutant, verdict in found.items() if mutant.stem == stem}
        count = _counts(own, entries)
        total += count
        by = Counter(verdict for verdict in own.values() if verdict != PASSED)
        words = ", ".join(f"{number} {verdict}" for verdict, number in by.most_common())
        yield _row(stem, count) + f"  {words}"
    yield _row("together", total)
    change = total["mutants"] - total["equivalent"]
    yield f"killed, of those that change anything: {total['killed']} of {change}" + (
        f" ({total['killed'] / change:.1%})" if change else ""
    )


def _counts(own: dict[Mutant, str], entries: list[dict[str, str]]) -> Counter[str]:
    left = [mutant for mutant, verdict in own.items() if verdict == PASSED]
    excused = sum(reason(mutant, entries) is not None for mutant in left)
    return Counter(
        mutants=len(own),
        killed=len(own) - len(left),
        equivalent=excused,
        survive=len(left) - excused,
    )


def _row(name: str, count: Counter[str]) -> str:
    numbers = [count[what] for what in ("mutants", "killed", "equivalent", "survive")]
    return f"{name:26}{numbers[0]:8}{numbers[1]:8}{numbers[2]:11}{numbers[3]:8}"


def survivors(found: dict[Mutant, str]) -> tuple[list[str], list[str]]:
    """Mutants that lost nothing: with the reason why they are right, and without."""
    entries, excused, alive = reasons(), [], []
    for mutant in sorted((m for m, verdict in found.items() if verdict == PASSED), key=str):
        why = reason(mutant, entries)
        (alive if why is None else excused).append(f"{mutant}" + (f"\n    {why}" if why else ""))
    return excused, alive


def main(arguments: list[str]) -> int:
    """Judge the mutants and print the table; 0 when every survivor has a reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stems", nargs="*", metavar="STEM", help="exercises (default: all)")
    parser.add_argument("--count", type=int, default=PER_EXERCISE, help="mutants of each exercise")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--jobs", type=int, default=cores())
    options = parser.parse_args(arguments)
    wanted = []
    for stem in options.stems or answers.STEMS:
        every = all_mutants(stem)
        wanted += every if options.all else chosen(every, options.count)
    found = verdicts(wanted, options.jobs)
    print("\n".join(report(found)))
    excused, alive = survivors(found)
    if excused:
        print("\nThese survive, and are right:\n  " + "\n  ".join(excused))
    if alive:
        print("\nThese survive, and nobody said why they are right:\n  " + "\n  ".join(alive))
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
