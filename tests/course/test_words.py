"""What is counted in a sentence is in the singular where there is one."""

import re
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import byhand
from byhand import PerRank, launch
from byhand.data_parallel.lab import watch
from byhand.words import counted

HOUSE = [Path(byhand.__file__).parent, Path(byhand.__file__).parents[2] / "autograder"]
BY_HAND = re.compile(
    r"\} (all-reduces|submissions|pages|items|calls|messages|chunks|earlier attempts)\b"
)
ALWAYS_SEVERAL = {"calls": "log.py", "messages": "traffic.py", "chunks": "grid.py"}


@pytest.mark.parametrize(
    ("number", "noun", "form", "text"),
    [
        (0, "page", "", "0 pages"),
        (1, "all-reduce", "", "1 all-reduce"),
        (2, "micro-batch", "", "2 micro-batches"),
        (1500, "rank", ",", "1,500 ranks"),
    ],
)
def test_a_number_and_its_noun_agree(number, noun, form, text):
    assert counted(number, noun, form) == text


def test_one_of_a_thing_is_said_to_be_one():
    assert repr(watch(1 << 30)).startswith("1 all-reduce a step")
    run = launch(lambda rank, world_size: dist.all_reduce(torch.ones(1)), 1)
    assert repr(run.ledger).startswith("<Ledger: 1 call,")
    assert run.summary().startswith("1 rank ·")
    with pytest.raises(ValueError, match="has 1 item for 2 ranks"):
        launch(print, 2, (PerRank([0]),))


def test_nobody_makes_a_plural_by_hand_where_there_may_be_one():
    found = [
        f"{path.name}: {match[0]}"
        for folder in HOUSE
        for path in folder.rglob("*.py")
        for match in BY_HAND.finditer(path.read_text())
        if ALWAYS_SEVERAL.get(match[1]) != path.name
    ]
    assert found == []
