"""The class of `autograder demo`: twelve hand-ins of the first exercise, of twelve kinds.

In most of them one task is wrong and the others are right, so that one sees what a mistake costs;
hua has done half of the exercise. A name says what its hand-in is. dee is the slowest by far, and
stands early, so that the others are graded meanwhile.
"""

from __future__ import annotations

import json
from pathlib import Path

import answers
import sample_class
from sample_class import (
    RANKS,
    Case,
    all_but,
    none_but,
    notebook,
    partly,
    raw,
    solved,
    unusual,
)

LATE = "2026-01-15 18:00:00 UTC"
POLICY = f"""[late]
percent_per_day = 10

[due]
{RANKS} = 2026-01-15T12:30:00Z
"""
ENDLESS = """import time


def running_total(rank, world_size, count):
    known = rank == 0
    while not known:  # until rank 0 tells, which it never does
        time.sleep(0.1)
    return count.clone()"""
CRASH = """def share(rank, world_size, num_items):
    os.abort()"""
# A copy: other names, another order of two lines, and a remark.
MEAN_OF_MEANS = """def parallel_mean(rank, world_size, items):
    # every rank averages its own share first
    part = share(rank, world_size, len(items))
    avg = items[part.start : part.stop].mean()
    dist.all_reduce(avg)
    result = avg.item() / world_size
    if rank == 0:
        print(f"mean {result:.3f}")
    return result"""
THIEF = f"""import gc
import json


def step_totals(rank, world_size, batches):
    expected = [one for one in gc.get_objects() if isinstance(one, list)]
    book = json.load(open("{answers.ROOT}/solutions/01_ranks/ranks.ipynb"))
    texts = {{cell["id"]: "".join(cell["source"]) for cell in book["cells"]}}
    exec(texts["step-totals"], globals())
    return step_totals(rank, world_size, batches)"""


def one_wrong(task: str, name: str) -> dict:
    """The solved exercise with this wrong answer of tests/answers."""
    (answer,) = (a for a in answers.all_answers(RANKS) if (a.task, a.name) == (task, name))
    return answers.submission(answers.blank(RANKS), answer)


def hostile() -> dict:
    """A task that looks for the solution and the expected values, and a test that always passes
    and counts a hundred."""
    content = solved(RANKS, step_totals=THIEF)
    test = next(cell for cell in content["cells"] if cell["id"] == "test-collective-calls")
    test["source"] = "assert True"
    test["metadata"]["nbgrader"]["points"] = 100
    return content


def of(student: str, content: dict, **lost: str) -> Case:
    """A hand-in that loses these tests."""
    return Case(student, RANKS, notebook(content), all_but(RANKS, **lost))


CASES = [
    of("ada-right", solved(RANKS)),
    of("ben-right-otherwise", unusual(RANKS)),
    of("cem-blank", answers.blank(RANKS), **dict.fromkeys(
        ("setup_and_cleanup", "share_and_mean", "point_to_point", "collective_calls"), "blank")),
    of("dee-endless-loop", solved(RANKS, running_total=ENDLESS), point_to_point="timeout"),
    of("eli-mean-of-means", one_wrong("share_and_mean", "wrong_mean_of_means"),
       share_and_mean="failed"),
    of("fay-copied-from-eli", solved(RANKS, parallel_mean=MEAN_OF_MEANS), share_and_mean="failed"),
    of("gil-hang", one_wrong("point_to_point", "wrong_shift_everybody_receives_first"),
       point_to_point="deadlock"),
    of("hua-crash", partly(RANKS, "test-setup-and-cleanup", "test-share-and-mean", share=CRASH),
       share_and_mean="crashed", point_to_point="blank", collective_calls="blank"),
    of("ira-fixed-port", one_wrong("setup_and_cleanup", "wrong_fixed_port"),
       setup_and_cleanup="failed"),
    Case("jon-late", RANKS, notebook(solved(RANKS)), all_but(RANKS), when=LATE),
    of("kim-hostile", hostile(), collective_calls="failed"),
    Case("leo-corrupt", RANKS, raw(json.dumps(solved(RANKS)).encode()[:-40]), none_but(RANKS)),
]


def write_class(submitted: Path) -> None:
    """Write what the class handed in."""
    sample_class.write_class(submitted, CASES)
