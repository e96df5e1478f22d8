"""What an instructor may want to look at: notes, that never cost a point.

A rank runs a student's code, so a student can make it lie about what it sent. Two things show
that: code that names what no answer needs, and a question whose loopback carried far more or less
than the calls in its ledger make gloo send. Both are coarse, and both have honest explanations.
"""

import re

from byhand.runtime import Run

NAMES = (
    r"byhand\.runtime",  # the recorder, the ranks' channels
    r"ctypes",
    r"/proc\b",
    r"os\.p?write\b",  # into descriptors that the library opened
    r"\bgc\.get_\w+",  # finds objects that nobody handed out
    r"sys\._getframe|inspect\.(?:stack|currentframe)",
    r"torch\.library",
    r"__torch_dispatch__|__torch_function__|_python_dispatch",
    r"_get_default_store",  # messages that no ledger holds
    r"\bsocket\b|multiprocessing\.shared_memory|\bmmap\b",
)
TOLERANCE = 0.25  # of the bytes that are expected
SLACK_BYTES = 256 << 10  # less than this is start, store and clean-up
MESSAGE_BYTES = 2048  # for each call and peer: headers, acknowledgements (1 400 were measured)
WIRE = {"reduce_scatter": 2.0}  # gloo's bytes over the ledger's: it does a whole all-reduce


def in_cells(cells: list[tuple[str, str, str]]) -> list[str]:
    """A note for each cell (name, type, text) that names what no answer needs."""
    pattern = re.compile("|".join(NAMES))
    notes = []
    for name, kind, text in cells:
        found = dict.fromkeys(pattern.findall(text)) if kind == "code" else ()
        if found:
            notes.append(f"{name} names {', '.join(found)}")
    return notes


def of_run(run: Run) -> str:
    """A note on a launch whose loopback carried other bytes than its calls send; else ""."""
    carried = getattr(run, "loopback_bytes", None)
    if carried is None or run.backend != "gloo":
        return ""
    expected, messages = 0.0, 0
    for event in run.ledger.events:
        n = len(event.group)
        expected += event.sent_bytes * (
            1 + 1 / n if event.op == "reduce" else WIRE.get(event.op, 1)
        )
        shards = n if event.op == "reduce_scatter" else 1  # of lists, it does an all-reduce each
        messages += 1 if event.peer is not None else shards * (n - 1)
    slack = max(TOLERANCE * expected, SLACK_BYTES) + MESSAGE_BYTES * messages
    if abs(carried - expected) <= slack:
        return ""
    return (
        f"the loopback carried {carried / 1e6:.1f} MB, and the calls in the ledger make"
        f" {expected / 1e6:.1f} MB"
    )
