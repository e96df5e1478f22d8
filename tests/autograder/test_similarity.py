"""Similarity: copies are found whatever their names, and what the task itself asks for is not."""

import json
import random

import answers
import nbformat
import pytest
import tiny_course
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.grade.engine import students_cells
from autograder.grade.journal import Journal, Judgement
from autograder.places import COURSE, Places
from autograder.report import similarity
from autograder.report.similarity import MAX_CHARACTERS, K, pairs, program, tokens, write_similarity

NAME = tiny_course.ASSIGNMENT
STUB = '''def ring(tensor, group):
    """Sum over a ring."""
    raise NotImplementedError'''
RING = '''import torch.distributed as dist

def ring(tensor, group):
    """Sum over a ring."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    total, moving = tensor.clone(), tensor.clone()
    for step in range(size - 1):
        arriving = moving.new_empty(moving.shape)
        sending = dist.isend(moving, (rank + 1) % size)  # never blocks
        dist.recv(arriving, (rank - 1) % size)
        sending.wait()
        total, moving = total + arriving, arriving
    return total'''
RENAMED = """import torch.distributed as td

# my own work

def ring(t, g):
    me, n = td.get_rank(g), td.get_world_size(g)
    acc, cur = t.clone(), t.clone()
    for i in range(n - 1):

        new = cur.new_empty(cur.shape)
        handle = td.isend(cur, (me + 1) % n)
        td.recv(new, (me - 1) % n)
        handle.wait()
        acc, cur = acc + new, new
    return acc"""
OTHER = """import torch

def ring(tensor, group):
    gathered = [torch.zeros_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, tensor)
    result = gathered[0]
    for piece in gathered[1:]:
        result += piece
    return result if tensor.numel() else tensor"""


def compared(*texts: str):
    return pairs([program(f"s{n}", text) for n, text in enumerate(texts)], [STUB])


def test_a_copy_with_other_names_numbers_comments_and_layout_is_a_copy():
    (pair,) = compared(RING, RENAMED)
    assert min(pair.shares) > 0.9
    marked = {RING.split("\n")[line].strip() for line in pair.marked[0]}
    assert "dist.recv(arriving, (rank - 1) % size)" in marked


def test_an_answer_of_ones_own_is_not_alike():
    assert compared(RING, OTHER) == []


def test_two_blanks_are_not_alike():
    assert compared(STUB, STUB) == []


def test_functions_in_another_order_are_still_found():
    second = OTHER.replace("ring", "other")
    (pair,) = compared(RING + "\n\n" + second, second + "\n\n" + RENAMED)
    assert min(pair.shares) > 0.85


def test_what_more_students_than_the_ring_share_is_the_tasks_own(monkeypatch):
    monkeypatch.setattr(similarity, "RING", 3)
    assert len(compared(RING, RENAMED, RING)) == 3
    assert compared(RING, RENAMED, RING, RENAMED) == []


@pytest.mark.parametrize("broken", ["def f(:\n  'open", "\t\x00(((", "é = ½", "if x:\n  a\n b"])
def test_text_that_is_no_python_is_compared_too(broken):
    assert list(tokens(broken))
    (pair,) = compared(RING + "\n" + broken, RENAMED)
    assert min(pair.shares) > 0.75


def test_of_a_flood_only_the_beginning_is_compared():
    flood = program("eve", RING + "\na" * MAX_CHARACTERS)
    assert len(flood.lines) < MAX_CHARACTERS
    (pair,) = pairs([flood, program("ada", RENAMED)], [STUB])
    assert pair.shares[1] > 0.9


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(0, 60), st.integers(0, 60))
def test_every_shared_run_of_k_tokens_is_marked(seed, before, after):
    """On random programs of operators, one to a line."""
    draw = random.Random(seed)
    shared, one, two = ("\n".join(draw.choices("+-*/%&|^", k=n)) for n in (3 * K, before, after))
    programs = [
        program("a", f"{one}\n{shared}"),
        program("b", f"{shared}\n{two}"),
    ]
    (pair,) = pairs(programs, [])
    assert set(range(3 * K)) <= pair.marked[1]


@pytest.mark.parametrize(
    ("source", "count_as"),
    [
        ("a.float32(b) # c", "name . float32 ( name )"),
        ("self.total = 1.5", "name . name = literal"),
        ("print(f'a{b}', rb'x' 'y')", "print ( literal , literal literal )"),
        ('def f():\n    """Words."""', "def name ( ) :"),
    ],
)
def test_names_of_ones_own_and_literals_do_not_count(source, count_as):
    assert [text for _, text in tokens(source)] == count_as.split()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tiny_course.make_course(tmp_path_factory.mktemp("course"))


def judged(student, assignment, cells):
    return Judgement(student, student, assignment, "", 1, "none", 1.0, [], [], cells)


def test_the_page_marks_pairs_and_runs_nothing_and_junk_hides_no_answer(tmp_path, made):
    where = type(made)(made.course, tmp_path / "class")
    junk, answer = "1 +\n" * MAX_CHARACTERS, "# <script>alert(1)</script>\n" + RING
    for student in ("ada", "ben"):
        cells = [("own-1", "code", junk), ("double", "code", answer)]
        Journal(where.journal).append(judged(student, NAME, cells))
    page = write_similarity(where, [NAME], where.class_dir / "similarity.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<mark>" in page
    assert "100 %</strong> of ada" in page


def test_blanks_of_many_small_cells_are_not_alike(tmp_path):
    where = Places(COURSE, tmp_path / "class")
    blank = nbformat.reads(json.dumps(answers.blank("01_ranks")), as_version=4)
    for student in ("ada", "ben"):
        one = judged(student, "01_ranks", students_cells(blank))
        Journal(where.journal).append(one)
    page = write_similarity(where, ["01_ranks"], tmp_path / "similarity.html").read_text()
    assert "2 submissions" in page
    assert "of ada" not in page
