"""The planner as a page: model, GPUs, machine and precision, and the five fastest layouts.

Each state is one search of byhand.planner, made when the book is: some half a second each, and as
many at once as there are cores.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from html import escape
from multiprocessing import get_context
from typing import Any

from autograder.book.explorer import Explorer, State
from byhand.planner import flags
from byhand.planner.explain import WORDS, Question, bounds
from byhand.planner.lab import GROUPS, grouped, short
from byhand.planner.lab.pictures import COLOURS, GIB, KINDS
from byhand.planner.machines import MACHINES
from byhand.planner.models import named
from byhand.planner.search import Found
from byhand.planner.software import usual
from byhand.planner.step import Step
from byhand.words import counted

NAME, MOST = "planner", 5
TOKENS = 2**22  # of a step
ROOM = 0.95  # of a GPU's memory: allocators leave gaps
MODELS = (
    "llama3-8b",
    "llama2-13b",
    "llama3-70b",
    "gpt3-175b",
    "nemotron-340b",
    "llama3-405b",
    "gpt-1t",
)
GPUS = "8", "64", "512", "4096", "16384"
ON = "a100-80gb", "h100-80gb", "h200"
PRECISIONS = "bf16", "fp8"
START = "llama3-70b", "512", "h100-80gb", "bf16"
STATIC = (START, ("gpt3-175b", "512", "a100-80gb", "bf16"), ("gpt-1t", "16384", "h200", "fp8"))


def explorer() -> Explorer:
    """Every state, searched for."""
    keys: list[tuple[str, ...]] = list(itertools.product(MODELS, GPUS, ON, PRECISIONS))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        states = dict(zip(keys, pool.map(state, *zip(*keys, strict=True)), strict=True))
    return Explorer(NAME, selects(), templates(), states)


def selects() -> dict[str, list[tuple[str, str]]]:
    """By label: values, and the words that a reader sees."""
    sizes = {name: named(name).parameters / 1e9 for name in MODELS}
    return {
        "Model": [(name, f"{name}: {size:.0f} billion") for name, size in sizes.items()],
        "GPUs": [(number, f"{int(number):,}") for number in GPUS],
        "Machine": [(name, name) for name in ON],
        "Precision": [(name, name) for name in PRECISIONS],
    }


def state(model: str, num_ranks: str, machine: str, precision: str) -> State:
    """The plans of one choice, or the sentence that there are none."""
    try:
        question, found = searched(model, num_ranks, machine, precision)
    except ValueError as error:
        told = str(error)
        return 0, [escape(told[0].upper() + told[1:])]
    values = [*about(question, found), *flagged(question, found)]
    slowest = found[-1][1].seconds
    for layout, step in found:
        values += plan_values(short(layout), step, slowest)
    return len(found), values


def searched(model: str, num_ranks: str, machine: str, precision: str) -> tuple[Question, Found]:
    """What was asked, and the fastest layouts, one of each set of degrees."""
    sized = named(model)
    counts = int(num_ranks), TOKENS // sized.num_positions
    on = MACHINES[machine]
    given: dict[str, Any] = {"precision": precision, "memory": ROOM * on.memory}
    given["software"] = usual(on.kind)
    question = Question.of(sized, on, *counts, **given)
    return question, question.found(one_each=True)[:MOST]


# Templates


def templates() -> list[str]:
    """Of a sentence, then of one plan, two, and so on."""
    return [
        '<p class="sentence">{0}.</p>',
        *(listed(number) for number in range(1, MOST + 1)),
    ]


def listed(number: int) -> str:
    """HTML of so many plans; holes: about, flagged, and each plan's."""
    size = len(plan_values("", EMPTY, 1.0))
    plans = "".join(
        plan(f"{{{5 + size * place + each}}}" for each in range(size)) for place in range(number)
    )
    return (
        "<p>{0} {1}</p><ol>" + plans + "</ol><details><summary>The first as flags</summary>"
        "<p>Megatron-LM {3}</p><pre>{2}</pre><p>torchtitan</p><pre>{4}</pre></details>"
    )


def plan(holes: Iterable[str]) -> str:
    """One plan: its name and numbers, a bar of seconds, a bar of bytes, and what they are."""
    given: Iterator[str] = iter(holes)
    name, seconds, memory, bound, kinds = itertools.islice(given, 5)
    return (
        f"<li><strong>{name}</strong><br>{seconds}: {bound}{bar(COLOURS, given)}"
        f"{memory}: {kinds}{bar(KINDS, given)}</li>"
    )


def bar(colours: Mapping[str, str], widths: Iterator[str]) -> str:
    """Stripes end to end; the text beside it says the same."""
    stripes = "".join(
        f'<i style="background:{colour};width:{next(widths)}%"></i>' for colour in colours.values()
    )
    return f'<span class="bar" aria-hidden="true">{stripes}</span>'


def key(colours: Mapping[str, str]) -> str:
    """The colours' names."""
    return " ".join(
        f'<span class="key"><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in colours.items()
    )


# Values


def about(question: Question, found: Found) -> list[str]:
    """What was asked, and how far one can tell these plans apart."""
    model, best = question.model, found[0][1]
    ties = sum(step.seconds <= best.seconds * (1 + best.error) for _, step in found)
    asked = (
        f"{model.parameters / 1e9:.1f} billion parameters, {question.num_sequences:,} sequences of "
        f"{model.num_positions:,} tokens a step, {question.software.name}."
    )
    told = f"{counted(ties, 'plan')} of {len(found)} within the error of the first."
    return [asked, told]


def flagged(question: Question, found: Found) -> list[str]:
    """The first plan for Megatron-LM, a note on it, and for torchtitan."""
    given = question.model, found[0][0], question.num_sequences, question.precision
    note = flags.uneven(question.model, found[0][0])
    told = flags.megatron(*given), note and f"({note})", flags.torchtitan(*given)
    return [escape(each) for each in told]


def plan_values(name: str, step: Step, slowest: float) -> list[str]:
    """What a plan's holes are filled with. slowest: seconds of the longest bar."""
    parts = ", ".join(f"{WORDS[part]} {share:.0%}" for part, share in bounds(step))
    kinds = ", ".join(
        f"{kind} {num_bytes / GIB:.0f}"
        for kind, num_bytes in step.memory.items()
        if num_bytes >= GIB / 2
    )
    places = 2 if step.seconds < 10 else 1 if step.seconds < 100 else 0
    seconds = f"{step.seconds:.{places}f} s ± {step.error:.0%}, MFU {step.mfu:.0%}"
    memory = f"{step.num_bytes / GIB:.0f} GiB of {step.limit / GIB:.0f}"
    shares = [each / slowest for each in grouped(step).values()]
    shares += [step.memory[kind] / step.limit for kind in KINDS]
    texts = [escape(each, quote=False) for each in (name, seconds, memory, parts, kinds)]
    return [*texts, *(f"{100 * share:.3g}" for share in shares)]


EMPTY = Step(
    dict.fromkeys(itertools.chain.from_iterable(GROUPS.values()), 0.1),
    dict.fromkeys(KINDS, 0.0),
    limit=1.0,
    mfu=0.0,
    error=0.0,
)


# The page


def static(found: Explorer) -> str:
    """A table of a few states, for a page whose script does not run."""
    rows = []
    for chosen in STATIC:
        values = found.states[chosen][1]
        first = values[5:8]
        cells = "".join(f"<td>{cell}</td>" for cell in (", ".join(chosen), *first))
        rows.append(f"<tr>{cells}</tr>")
    head = "".join(
        f'<th scope="col">{word}</th>' for word in ("asked", "fastest layout", "a step", "a rank")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def page(found: Explorer) -> str:
    """The page's Markdown."""
    keys = f'<p class="keys">Seconds: {key(COLOURS)}<br>Bytes of a rank: {key(KINDS)}</p>'
    return TEXT.format(form=found.form(START, static(found)), keys=keys)


TEXT = """# The planner: what would your model need?

Choose a model, how many GPUs and which, and see the five fastest of all the layouts that fit, as
[lecture 17](lectures/17_planner.ipynb) finds them: seconds of a training step, bytes of the fullest
rank, and what both consist of.

{form}

{keys}

A step has four million tokens, and a twentieth of each GPU's memory is left to its allocator. The
constants are fitted to published steps: on A100 GPUs those of Megatron in 2022, elsewhere those of
NVIDIA's NeMo on H100 GPUs in FP8. Where they are borrowed the error says 10 %. Plans closer than
the error are a tie. MFU counts the peak of the precision, and *v* the chunks of a stage; *sp* is
sequence parallelism, and *stages near* puts stages, not replicas, on neighbouring ranks. For any
other model, number or batch: `python -m byhand.planner --help`.
"""
