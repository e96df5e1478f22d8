"""What is counted in a sentence is in the singular where there is one."""

import pytest
import torch
import torch.distributed as dist

from byhand import PerRank, launch
from byhand.data_parallel.lab import watch
from byhand.words import counted, plain_text


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


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("tabs\tand\r\nlines", "tabs\tand\nlines"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2K\x1b]0;owned\x07\x9b1A", r"\x1b[2K\x1b]0;owned\x07\x9b1A"),
        ("\x1b\x1b[0m[31m", r"\x1b[31m"),
        ("a\r\0b\u2028c\ud800", r"a\r\x00b\u2028c?"),
        ("x\u202e0\u2066\ufeff\U000e0041", r"x\u202e0\u2066\ufeff\U000e0041"),
        ("Zürich 東京 می\u200cخواهم 👩\u200d🔬", "Zürich 東京 می\u200cخواهم 👩\u200d🔬"),
    ],
)
def test_what_a_terminal_would_obey_or_a_page_would_hide_is_written_out(said, shown):
    assert plain_text(said) == plain_text(shown) == shown


def test_one_of_a_thing_is_said_to_be_one():
    assert repr(watch(1 << 30)).startswith("1 all-reduce a step")
    run = launch(lambda rank, world_size: dist.all_reduce(torch.ones(1)), 1)
    assert repr(run.ledger).startswith("<Ledger: 1 call,")
    assert run.summary().startswith("1 rank ·")
    with pytest.raises(ValueError, match="has 1 item for 2 ranks"):
        launch(print, 2, (PerRank([0]),))
