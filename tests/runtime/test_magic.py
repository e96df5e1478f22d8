"""The `%%ranks` cell magic, in a real IPython shell."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from byhand import RankError


@pytest.fixture(scope="module")
def shell():
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "byhand")
    yield shell
    InteractiveShell.clear_instance()


def test_each_rank_has_its_own_block_with_output_and_value(shell):
    with capture_output() as captured:
        shell.run_cell_magic("ranks", "3", "print('I am', rank)\nrank * 10\n")
    shown = captured.outputs[0].data
    for rank in range(3):
        assert f"rank {rank}  I am {rank}" in shown["text/plain"]
    assert "20" in shown["text/plain"]
    assert shown["text/html"].count("<th scope='row'>rank ") == 3
    assert "color" not in shown["text/html"]  # those of a light page, or of a dark one


def test_the_notebooks_names_travel_and_the_run_can_be_kept(shell):
    shell.run_cell("def scaled(x):\n    return factor * x\nfactor = 7")
    with capture_output():
        shell.run_cell_magic(
            "ranks", "2 --to kept", "y = scaled(torch.ones(1))\ndist.all_reduce(y)\ny"
        )
    kept = shell.user_ns["kept"]
    assert [result.item() for result in kept.results] == [14.0, 14.0]
    assert kept.ledger.count("all_reduce") == 2
    assert "y" not in shell.user_ns


def test_a_name_that_is_also_pythons_is_the_notebooks_where_it_has_one(shell):
    shell.run_cell("import torch\ninput = torch.ones(3)\n")
    with capture_output():
        shell.run_cell_magic("ranks", "1 --to kept", "open.__name__, len(input)\n")
    assert shell.user_ns["kept"].results == [("open", 3)]


def test_what_the_cell_assigns_first_need_not_travel(shell):
    shell.run_cell("total, lines, pick = 5, (i for i in range(3)), (i for i in range(3))")
    cell = "lines = [2]\ndef pick():\n    return lines\ntotal += 1\npick(), total\n"
    with capture_output():
        shell.run_cell_magic("ranks", "1 --to kept", cell)
    assert shell.user_ns["kept"].results == [([2], 6)]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("with open('/dev/null') as g:\n    text = g.read()\ntext", ""),
        ("for g in range(3):\n    if g == 1:\n        break\n    last = g\nlast", 0),
        ("[g for g in range(2)], {g: 1 for g in 'a'}", ([0, 1], {"a": 1})),
        ("def double(g):\n    return 2 * g\ndouble(2), (lambda g: g)(1)", (4, 1)),
        (
            "try:\n    1 / 0\nexcept ZeroDivisionError as g:\n    what = str(g)\nwhat",
            "division by zero",
        ),
        ("match [1, 2]:\n    case [1, g] if g > 1:\n        pair = g\npair", 2),
        ("import math as g\ng.floor(1.5)", 1),
    ],
)
def test_a_name_that_the_cell_binds_in_any_way_need_not_travel(shell, cell, value):
    shell.run_cell("g = (i for i in range(3))")
    with capture_output():
        shell.run_cell_magic("ranks", "1 --to kept", cell)
    assert shell.user_ns["kept"].results == [value]


def test_what_the_cell_may_have_left_as_it_was_travels(shell):
    shell.run_cell("x, y, count = 'old', 'old', 1")
    cell = "if rank == 0:\n    x = 'new'\nfor _ in range(rank):\n    y = 'new'\n"
    cell += "def more():\n    global count\n    count += 1\nmore()\n"
    cell += "class Both:\n    x = x\nBoth.x, y, count"
    with capture_output():
        shell.run_cell_magic("ranks", "2 --to kept", cell)
    assert shell.user_ns["kept"].results == [("new", "old", 2), ("old", "new", 2)]


def test_a_name_that_cannot_travel_is_named(shell):
    shell.run_cell("g = (i for i in range(3))\ndef all_of_it():\n    return list(g)")
    for cell, words in (
        ("x = 1\nlist(g)", "the cell reads g, a generator, which cannot travel"),
        (
            "all_of_it()",
            r"the cell reads all_of_it, a function, .*: it uses g, a generator: cannot",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            shell.run_cell_magic("ranks", "2", cell)


def test_an_error_names_the_line_of_the_cell(shell):
    with pytest.raises(RankError, match=r"%%ranks cell \[\d+\] line 2: division by zero") as caught:
        shell.run_cell_magic("ranks", "2", "a = 1\n1 / 0")
    assert "1 / 0" in caught.value.traceback


@pytest.mark.parametrize(
    ("line", "words"),
    [("0", "world_size .*0"), ("2 --backend mpi", "mpi"), ("2 --deadline 0", "0")],
)
def test_what_launch_refuses_is_told_in_its_sentence_alone(shell, line, words):
    with pytest.raises(UsageError, match=f"%%ranks: .*{words}"):
        shell.run_cell_magic("ranks", line, "rank")


@pytest.mark.parametrize("line", ["", "four", "2 --colour red"])
def test_a_line_that_is_none_is_answered_with_one(shell, line):
    with pytest.raises(UsageError, match="for example, %%ranks 4"):
        shell.run_cell_magic("ranks", line, "rank")


def test_what_the_cell_assigns_the_notebooks_functions_read(shell):
    shell.run_cell("rate = 0.1\ndef step(w):\n    return w - rate * w\n")
    shell.run_cell("count = 0\ndef more():\n    global count\n    count += 1\n")
    with capture_output():
        shell.run_cell_magic("ranks", "1 --to kept", "rate = 0.5\nmore(); more()\nstep(1), count\n")
    assert shell.user_ns["kept"].results == [(0.5, 2)]
    assert (shell.user_ns["rate"], shell.user_ns["count"]) == (0.1, 0)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("a = 1\nx = (1\n", "line 2, x = (1: '(' was never closed"),
        ("%time x = 1\n", "line 1, %time x = 1: invalid syntax"),
        ("await f()\n", "line 1, await f(): 'await' outside function"),
    ],
)
def test_a_cell_that_is_not_python_is_told_with_its_line_before_any_rank_starts(shell, cell, told):
    with pytest.raises(UsageError) as refused:
        shell.run_cell_magic("ranks", "2", cell)
    assert told in str(refused.value)


def test_a_run_is_kept_under_a_name_that_can_be_written(shell):
    with pytest.raises(UsageError, match="--to names a variable, such as run, not my-run"):
        shell.run_cell_magic("ranks", "2 --to my-run", "rank\n")
