"""The five fastest layouts of a model on a machine, why, and the flags of the first.

python -m byhand.planner llama3-70b --ranks 512 --machine h100-80gb --batch 1024 --sequence 8192
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from byhand.costs.layout import Layout
from byhand.planner import flags
from byhand.planner.explain import WORDS, Question, bounds, degrees, explained
from byhand.planner.machines import MACHINES
from byhand.planner.models import NAMES, named
from byhand.planner.published import beyond
from byhand.planner.search import Found
from byhand.planner.software import SOFTWARE, usual
from byhand.planner.step import PRECISIONS, Step, find

SHOWN = 5


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line's."""
    parser = argparse.ArgumentParser("python -m byhand.planner", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("model", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--ranks", type=int, required=True, help="GPUs")
    parser.add_argument(
        "--machine", default="h100-80gb", help=f"{', '.join(MACHINES)}; %(default)s if none"
    )
    parser.add_argument(
        "--batch", type=int, required=True, help="sequences of a step, on all ranks"
    )
    parser.add_argument(
        "--sequence", type=int, help="tokens of a sequence; the model's own if none"
    )
    parser.add_argument(
        "--precision", default="bf16", help=f"{' or '.join(PRECISIONS)}; %(default)s if none"
    )
    parser.add_argument(
        "--software", help=f"{', '.join(SOFTWARE)}; one that was fitted to such GPUs if none"
    )
    parser.add_argument("--memory", type=float, help="GiB of a rank; the machine's if none")
    parser.add_argument("--why", action="store_true", help="what would change the order: slower")
    parser.add_argument("--json", action="store_true", help="the same as JSON, for programs")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Print the plan; 2 and a sentence where there is none."""
    asked = parsed(words)
    try:
        question = understood(asked)
        found = question.found()
        why = explained(question, found) if asked.why else []
    except ValueError as error:
        print(f"byhand.planner: {error}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps(answer(question, found, why), indent=1))
    else:
        print(page(question, found, why))
    return 0


def understood(asked: argparse.Namespace) -> Question:
    """What is asked, with names looked up.

    Raises:
        ValueError: names that are not known, counts below 1.
    """
    for name in ("ranks", "batch", "sequence", "memory"):
        value = getattr(asked, name)
        if value is not None and not value >= 1:  # nan is not, either
            raise ValueError(f"--{name} is {value:g}: it must be at least 1")
    model, memory = named(asked.model, asked.sequence), asked.memory and asked.memory * 2**30
    machine = find(asked.machine, MACHINES, "machine")
    software = asked.software or usual(machine.kind)
    given = model, machine, asked.ranks, asked.batch
    return Question.of(*given, software=software, precision=asked.precision, memory=memory)


def answer(question: Question, found: Found, why: Sequence[str]) -> dict[str, Any]:
    """What --json prints."""
    program, words = told(question, found)
    return {
        "machine": question.machine.name,
        "software": question.software.name,
        "precision": question.precision,
        "layouts_that_fit": len(found),
        "best": [row(layout, step) for layout, step in best(found)],
        "why": list(why),
        "extrapolated": beyond(found[0][0], question.software.name),
        "program": program,
        "flags": words,
        "note": flags.uneven(question.model, found[0][0]) if program == flags.MEGATRON else "",
    }


def told(question: Question, found: Found) -> tuple[str, str]:
    """The program that runs as the software asked for does, and the winner's flags."""
    given = question.model, found[0][0], question.num_sequences
    return flags.told(*given, question.software, question.precision)


def best(found: Found) -> Found:
    """The fastest of each set of degrees: their other settings would fill the list."""
    first: dict[tuple[int, ...], tuple[Layout, Step]] = {}
    for layout, step in found:
        first.setdefault(degrees(layout), (layout, step))
    return list(first.values())[:SHOWN]


def row(layout: Layout, step: Step) -> dict[str, Any]:
    """One layout in plain numbers."""
    return {
        "layout": asdict(layout),
        "seconds": step.seconds,
        "error": step.error,
        "mfu": step.mfu,
        "parts": dict(step.parts),
        "memory": dict(step.memory),
        "bound_by": bounds(step)[0][0],
    }


def page(question: Question, found: Found, why: Sequence[str]) -> str:
    """What is printed for people."""
    model, machine = question.model, question.machine
    lines = [
        f"{model.parameters / 1e9:.1f} billion parameters, {question.num_sequences} sequences of "
        f"{model.num_positions} tokens a step, {question.num_ranks} × {machine.name}, "
        f"{question.precision}, {question.software.name}: {len(found)} layouts fit\n"
    ]
    for place, (layout, step) in enumerate(best(found), 1):
        lines += [f"{place}. {layout}", *shown(step), ""]
    lines += [*why, ""] if why else []
    if axes := beyond(found[0][0], question.software.name):
        lines += [f"Extrapolated: no published step of this software has {', '.join(axes)}.", ""]
    lines.append(": ".join(told(question, found)))
    if flags.MEGATRON in lines[-1] and (note := flags.uneven(model, found[0][0])):
        lines.append(f"({note})")
    return "\n".join(lines)


def shown(step: Step) -> list[str]:
    """Seconds, memory and what bounds it, a line each."""
    kinds = ", ".join(f"{kind} {n / 2**30:.1f}" for kind, n in step.memory.items() if n > 2**26)
    parts = ", ".join(f"{WORDS[name]} {share:.0%}" for name, share in bounds(step, 4))
    seconds = f"{step.seconds:.3g} s, typically within {step.error:.0%}"
    return [
        f"   {seconds}, MFU {step.mfu:.1%}, {step.num_bytes / 2**30:.1f} GiB of "
        f"{step.limit / 2**30:.0f}",
        f"   time: {parts}",
        f"   GiB: {kinds}",
    ]


if __name__ == "__main__":
    sys.exit(main())
