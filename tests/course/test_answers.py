"""The exercises judge right: solutions full, blanks zero, wrong answers lose, unusual ones keep.

Answers are judged several to a notebook, one a task. That an answer touches no other task follows
from its text: it fills only the cells of its task, and no other task uses what those define (the
exceptions, such as all_reduce on top of task 3, stand in BUILDS_ON).
"""

import ast
from collections import Counter, defaultdict

import answers
import nbformat
import pytest

from autograder.grade.judge import judge_cells
from byhand.runtime.walls.isolation import why_no_sandbox
from byhand.runtime.walls.question import Sandbox

STEMS = (
    "01_ranks",
    "02_collectives",
    "03_all_reduce",
    "04_communication_cost",
    "05_data_parallel",
    "07_tensor_parallel",
    "09_pipeline_parallel",
    "11_rank_groups",
    "12_hybrid_parallel",
)
BUILDS_ON = {
    "test-all-reduce": "test-all-gather-reduce-scatter",
    "test-hierarchical-all-reduce": "test-ring-all-reduce",
    "test-gpipe": "test-stage",
    "test-train": "test-one-forward-one-backward",
    "test-expert-groups": "test-groups",
}
ALL = [answer for stem in STEMS for answer in answers.all_answers(stem)]
WRONG = [answer for answer in ALL if not answer.right]
RIGHT = [answer for answer in ALL if answer.right]


@pytest.fixture(scope="module")
def launcher():
    launcher = Sandbox(trusted=True)
    yield launcher
    launcher.close()


def judge(launcher, stem, notebook, tests=None, isolate=False):
    """Verdicts by test cell; only of `tests` where given. `isolate`: in namespaces, as graded."""
    source = nbformat.from_dict(answers.source(stem))
    if tests is not None:
        source.cells = [c for c in source.cells if not is_test(c) or c["id"] in tests]
    student = nbformat.from_dict(notebook)
    for notebook in (source, student):
        for cell in notebook.cells:
            cell.source = "".join(cell.source)
    verdicts = judge_cells(source, student, launcher, isolate=isolate)
    return {verdict.question: verdict for verdict in verdicts}


def is_test(cell) -> bool:
    return bool(cell["metadata"].get("nbgrader", {}).get("grade"))


def graded_cells(stem):
    return [cell for cell in answers.source(stem)["cells"] if is_test(cell)]


def scores(verdicts) -> dict[str, int]:
    return {name: verdict.points for name, verdict in verdicts.items()}


@pytest.mark.parametrize("stem", STEMS)
def test_the_solution_scores_full(launcher, stem):
    isolate = why_no_sandbox() is None
    verdicts = judge(launcher, stem, answers.full(stem), isolate=isolate)
    points = {c["id"]: c["metadata"]["nbgrader"]["points"] for c in graded_cells(stem)}
    assert scores(verdicts) == points, verdicts


@pytest.mark.parametrize("stem", STEMS)
def test_the_blank_exercise_scores_nothing_on_every_task(launcher, stem):
    verdicts = judge(launcher, stem, answers.blank(stem))
    assert set(scores(verdicts).values()) == {0}, verdicts
    assert set(verdicts) == {cell["id"] for cell in graded_cells(stem)}
    assert all("NotImplementedError" in v.message for v in verdicts.values()), verdicts


def batches(some):
    """These answers in groups that fit into one notebook: one a task, none below another."""
    groups, seen = defaultdict(list), Counter()
    for answer in some:
        groups[answer.stem, seen[answer.test], answer.test in BUILDS_ON].append(answer)
        seen[answer.test] += 1
    return list(groups.values())


@pytest.fixture(scope="module")
def verdict_of(launcher):
    """The verdict on an answer's task, from one notebook that holds several answers."""
    known = {}

    def look_up(answer):
        if answer not in known:
            batch = next(b for b in BATCHES if answer in b)
            notebook = answers.submission(answers.blank(answer.stem), *batch)
            verdicts = judge(launcher, answer.stem, notebook, {a.test for a in batch})
            known.update((member, verdicts[member.test]) for member in batch)
        return known[answer]

    return look_up


BATCHES = batches(WRONG) + batches(RIGHT)


def first_and_others(some):
    """These answers as parameters; all but the first of each task are left to make test-all."""
    seen, found = set(), []
    for answer in some:
        marks = [pytest.mark.answers] if (answer.stem, answer.task) in seen else []
        seen.add((answer.stem, answer.task))
        found.append(pytest.param(answer, marks=marks, id=str(answer)))
    return found


@pytest.mark.parametrize("answer", first_and_others(WRONG))
def test_a_wrong_answer_loses_its_task(verdict_of, answer):
    verdict = verdict_of(answer)
    assert verdict.points == 0
    assert verdict.verdict in ("failed", "deadlock"), verdict
    assert verdict.message


BREAKS = {
    "micro_batches": "with 3 micro-batches: loss, norm or weights are not those of one device",
    "table": "the first and the last stage have different tables of tokens",
    "direction": "a max_norm that clips: one stage's update was scaled by",
    "whole_parameters": "of the parameters that both hold whole differ between them",
    "rows": "Two tensor-parallel ranks that loaded different rows: the first loss is",
}
HALF_MENDED = [a for a in WRONG if a.name.startswith(("wrong_left_", "wrong_mended_"))]


@pytest.mark.answers
@pytest.mark.parametrize("answer", HALF_MENDED, ids=str)
def test_a_half_mended_step_is_told_what_is_still_broken_and_nothing_else(verdict_of, answer):
    _, what, name = answer.name.split("_", 2)
    left = {error for error in BREAKS if (error == name) == (what == "left")}
    message = verdict_of(answer).message
    assert {error for error, sentence in BREAKS.items() if sentence in message} == left
    assert f"{len(left)} of the five errors remain" in message


@pytest.mark.answers
def test_a_nan_is_a_symptom_too(verdict_of):
    answer = next(a for a in WRONG if a.name == "wrong_nan_where_no_loss_is")
    assert "the first loss is nan and nan" in verdict_of(answer).message


@pytest.mark.parametrize("answer", first_and_others(RIGHT))
def test_an_unusual_right_answer_keeps_its_task(verdict_of, answer):
    verdict = verdict_of(answer)
    assert verdict.points == verdict.max_points, verdict


@pytest.mark.answers
@pytest.mark.parametrize("stem", STEMS)
def test_wrong_tasks_leave_the_others_their_points(launcher, stem):
    first = next(batch for batch in BATCHES if batch[0].stem == stem)
    wrong = [answer for answer in first if answer.test not in BUILDS_ON.values()][:2]
    notebook = answers.submission(answers.blank(stem), *wrong)
    lost = [name for name, got in scores(judge(launcher, stem, notebook)).items() if not got]
    assert sorted(lost) == sorted(answer.test for answer in wrong)


@pytest.mark.parametrize("stem", STEMS)
def test_no_other_task_uses_what_an_answer_defines(stem):
    cells = {c["id"] for c in answers.source(stem)["cells"] if answers.is_solution(c)}
    used = names_used(stem)
    for answer in answers.all_answers(stem):
        pieces = answers.pieces(answer, cells)
        assert pieces, f"{answer} fills no cell"
        assert set(pieces) <= set(answers.task_cells(stem, answer.test)), answer
        own = {name.replace("-", "_") for name in pieces}
        others = [test for test in used if answer.test not in (test, BUILDS_ON.get(test))]
        assert not [test for test in others if used[test] & own], answer


def names_used(stem) -> dict[str, set[str]]:
    """By test cell: the names that it and its task's solution cells read."""
    notebook = answers.full(stem)
    texts = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    used = {}
    for test in (cell["id"] for cell in graded_cells(stem)):
        cells = [*answers.task_cells(stem, test), test]
        trees = [ast.walk(ast.parse(texts[cell])) for cell in cells]
        used[test] = {n.id for tree in trees for n in tree if isinstance(n, ast.Name)}
    return used


@pytest.mark.parametrize("stem", STEMS)
def test_every_task_has_four_wrong_answers_and_an_unusual_right_one(stem):
    wrong = Counter(answer.test for answer in WRONG if answer.stem == stem)
    right = Counter(answer.test for answer in RIGHT if answer.stem == stem)
    for cell in graded_cells(stem):
        assert wrong[cell["id"]] >= 4
        assert right[cell["id"]] >= 1
    assert set(wrong) == set(right) == {cell["id"] for cell in graded_cells(stem)}


def test_an_answer_says_in_its_first_line_what_it_is():
    for answer in ALL:
        docstring = ast.get_docstring(ast.parse(answer.path.read_text()))
        assert docstring, answer
        assert "\n" not in docstring, answer
