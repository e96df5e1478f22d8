"""Mutants are small, whole and many; the reasons for those that survive belong to some."""

import ast

import answers
import pytest
from answers.mutants import all_mutants, reason, reasons
from answers.mutations import chosen, mutants

CELL = '''def f(x, peer):
    """Doc 1 + 2."""
    ### BEGIN SOLUTION
    if x is None:
        raise ValueError(f"{1 + 2}")
    elif x > 3: dist.send(x, peer)
    total = x[1:] * 2  # note
    for a, b in zip(x, x, strict=True):
        total += a
    return not total
    ### END SOLUTION
    return 1 + 1'''


def notebook(text: str) -> dict:
    solution = {
        "cell_type": "code",
        "id": "f",
        "source": text,
        "metadata": {"nbgrader": {"solution": True}},
    }
    test = {
        "cell_type": "code",
        "id": "test-f",
        "source": "",
        "metadata": {"nbgrader": {"grade": True}},
    }
    return {"cells": [solution, test]}


def test_every_kind_of_mistake_is_made_once_in_each_place():
    found = [(m.kind, m.before, m.after) for m in mutants(notebook(CELL), "00_x")]
    send = "dist.send(x, peer)"
    assert sorted(found) == sorted(
        [
            ("operator", "if x is None:", "if not x is None:"),
            ("operator", "if x is None:", "if x is not None:"),
            ("operator", "if x > 3:", "if not x > 3:"),
            ("operator", "if x > 3:", "if x >= 3:"),
            ("constant", "if x > 3:", "if x > 4:"),
            ("communication dropped", send, "pass"),
            ("communication repeated", send, f"{send}; {send}"),
            ("argument", send, "dist.send(peer, x)"),
            ("operator", "total = x[1:] * 2", "total = x[1:] + 2"),
            ("constant", "total = x[1:] * 2", "total = x[2:] * 2"),
            ("constant", "total = x[1:] * 2", "total = x[1:] * 3"),
            ("index", "total = x[1:] * 2", "total = x[:] * 2"),
            ("statement dropped", "total += a", "pass"),
            ("operator", "total += a", "total = a"),
            ("operator", "total += a", "total -= a"),
        ]
    )


def test_a_mutant_is_the_cell_with_one_statement_changed():
    texts = {m.after: m.text for m in mutants(notebook(CELL), "00_x")}
    assert "    elif x > 4: dist.send(x, peer)\n" in texts["if x > 4:"]
    assert (
        "elif x > 3: dist.send(x, peer); dist.send(x, peer)\n"
        in texts["dist.send(x, peer); dist.send(x, peer)"]
    )
    assert texts["total -= a"] == CELL.replace("total += a", "total -= a")


@pytest.mark.parametrize("stem", answers.STEMS)
def test_every_exercise_has_mutants_and_all_are_python(stem):
    found = all_mutants(stem)
    texts = {cell["id"]: "".join(cell["source"]) for cell in answers.source(stem)["cells"]}
    assert len(chosen(found, 30)) == 30
    for mutant in found:
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(texts[mutant.cell]))


def test_every_reason_is_that_of_some_mutant():
    found = [mutant for stem in answers.STEMS for mutant in all_mutants(stem)]
    assert len(found) >= 200
    for entry in reasons():
        assert entry["why"].endswith(".")
        assert any(reason(mutant, [entry]) for mutant in found), entry
