"""The exercises judge right: solutions full, blanks zero, wrong answers lose, unusual ones keep.

The first test judges what all the tests that were asked for need: see answers/judging.py.
"""

import ast
import fcntl
import os
import pickle
from collections import Counter

import answers
import pytest
from answers import STEMS, judging
from answers.judging import BUILDS_ON

from autograder.batch.queue import progress

pytestmark = pytest.mark.timeout(3600)  # the first test judges all that the others ask for
ALL = [answer for stem in STEMS for answer in answers.all_answers(stem)]
WRONG = [answer for answer in ALL if not answer.right]
RIGHT = [answer for answer in ALL if answer.right]


def book(*some):
    """One notebook with these answers to different tasks."""
    stem = some[0].stem
    cells = {c["id"] for c in answers.source(stem)["cells"] if answers.is_solution(c)}
    texts = {name: text for one in some for name, text in answers.pieces(one, cells).items()}
    return stem, judging.notebook(stem, [one.test for one in some], texts)


def two_wrong(stem):
    """Two wrong answers to tasks that no other task builds on."""
    first = next(batch for batch in judging.batches(WRONG) if batch[0].stem == stem)
    return [answer for answer in first if answer.test not in BUILDS_ON.values()][:2]


def with_two_wrong(stem):
    """The solution with two wrong answers in it."""
    return stem, answers.submission(answers.blank(stem), *two_wrong(stem))


WHOLE = {
    "test_the_solution_scores_full": lambda stem: (stem, answers.full(stem)),
    "test_the_blank_exercise_scores_nothing_on_every_task": lambda s: (s, answers.blank(s)),
    "test_wrong_tasks_lose_their_points_and_leave_the_others_theirs": with_two_wrong,
}


def once(folder, books, seen):
    """The verdicts on each book: the first process of the session judges, the others read.

    That takes minutes, so its progress is to be seen; `seen` is a context in which it is.
    """
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with open(folder / "answers.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = folder / "answers.verdicts"
        if not known.exists():
            with seen, progress(len(books), "notebook") as bar:
                found = {}
                for number, verdicts in judging.verdicts(folder / "answers", books):
                    found[number] = verdicts
                    bar.update()
            known.write_bytes(pickle.dumps(found))
        return pickle.loads(known.read_bytes())


@pytest.fixture(scope="module")
def judged(request, tmp_path_factory):
    """Verdicts by test, of what the selected tests ask for: a stem and test name, or an answer."""
    asked, wholes = [], []
    for item in request.session.items:
        if item.module is request.module and "judged" in item.fixturenames:
            given = item.callspec.params if hasattr(item, "callspec") else {"answer": NAN}
            if "answer" in given:
                asked.append(given["answer"])
            else:
                wholes.append((item.originalname, given["stem"]))
    asked = list(dict.fromkeys(asked))
    groups = judging.batches(a for a in asked if not a.right)
    groups += judging.batches((a for a in asked if a.right), right=True)
    books = [WHOLE[name](stem) for name, stem in wholes] + [book(*group) for group in groups]
    seen = request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled()
    found = once(tmp_path_factory.getbasetemp(), books, seen)
    known = {whole: found[number] for number, whole in enumerate(wholes)}
    for number, group in enumerate(groups, len(wholes)):
        known |= {answer: found[number][answer.test] for answer in group}
    return known


def graded_cells(stem):
    """The test cells of an exercise."""
    cells = answers.source(stem)["cells"]
    return [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade")]


def scores(verdicts) -> dict[str, int]:
    return {name: verdict.points for name, verdict in verdicts.items()}


@pytest.mark.answers
@pytest.mark.parametrize("stem", STEMS)
def test_the_solution_scores_full(judged, stem):
    verdicts = judged["test_the_solution_scores_full", stem]
    points = {c["id"]: c["metadata"]["nbgrader"]["points"] for c in graded_cells(stem)}
    assert scores(verdicts) == points, verdicts


@pytest.mark.answers
@pytest.mark.parametrize("stem", STEMS)
def test_the_blank_exercise_scores_nothing_on_every_task(judged, stem):
    verdicts = judged["test_the_blank_exercise_scores_nothing_on_every_task", stem]
    assert set(scores(verdicts).values()) == {0}, verdicts
    assert set(verdicts) == {cell["id"] for cell in graded_cells(stem)}
    assert {v.verdict for v in verdicts.values()} == {"blank"}, verdicts


@pytest.mark.answers
@pytest.mark.parametrize("answer", WRONG, ids=str)
def test_a_wrong_answer_loses_its_task(judged, answer):
    verdict = judged[answer]
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
def test_a_half_mended_step_is_told_what_is_still_broken_and_nothing_else(judged, answer):
    _, what, name = answer.name.split("_", 2)
    left = {error for error in BREAKS if (error == name) == (what == "left")}
    message = judged[answer].message
    assert {error for error, sentence in BREAKS.items() if sentence in message} == left
    assert f"{len(left)} of the five errors remain" in message


MISTAKES = {
    "micro_batches": "but its idle share went from",
    "cards": "summing the gradients takes",
    "operations": "operations that count in its mfu went from",
}
HALF_PLANS = [
    a for a in WRONG if a.task == "mended_plan" and a.name.endswith(("_remain", "_mended"))
]


@pytest.mark.answers
@pytest.mark.parametrize("answer", HALF_PLANS, ids=str)
def test_a_half_mended_plan_is_told_what_is_still_wrong_and_nothing_else(judged, answer):
    remain = answer.name.endswith("_remain")
    left = {mistake for mistake in MISTAKES if (mistake in answer.name) == remain}
    message = judged[answer].message
    assert {mistake for mistake, sentence in MISTAKES.items() if sentence in message} == left
    assert f"{len(left)} of the three mistakes remain" in message


NAN = next(a for a in WRONG if a.name == "wrong_nan_where_no_loss_is")


@pytest.mark.answers
def test_a_nan_is_a_symptom_too(judged):
    assert "the first loss is nan and nan" in judged[NAN].message


@pytest.mark.answers
@pytest.mark.parametrize("answer", RIGHT, ids=str)
def test_an_unusual_right_answer_keeps_its_task(judged, answer):
    verdict = judged[answer]
    assert verdict.points == verdict.max_points, verdict
    assert not verdict.suspicion, verdict


NAMED = [answer for answer in ALL if answer.right and 'BOARD_NAME = "' in answer.path.read_text()]


@pytest.mark.answers
@pytest.mark.parametrize("answer", NAMED, ids=str)
def test_a_pseudonym_comes_to_the_board(judged, answer):
    assert judged[answer].board["name"].startswith(("Euler", "<b>Ada\\u202e</b> xxx"))


def test_both_exercises_with_a_board_have_an_answer_with_a_pseudonym():
    assert {answer.stem for answer in NAMED} == {"10_pipeline_schedules", "18_frameworks"}


@pytest.mark.answers
@pytest.mark.parametrize("stem", STEMS)
def test_wrong_tasks_lose_their_points_and_leave_the_others_theirs(judged, stem):
    verdicts = judged["test_wrong_tasks_lose_their_points_and_leave_the_others_theirs", stem]
    points = {c["id"]: c["metadata"]["nbgrader"]["points"] for c in graded_cells(stem)}
    lost = [answer.test for answer in two_wrong(stem)]
    assert scores(verdicts) == points | dict.fromkeys(lost, 0), verdicts
    assert {verdicts[test].verdict for test in lost} <= {"failed", "deadlock"}, verdicts


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


@pytest.mark.parametrize(("line", "times"), [("machine.stop()", 0), ("machine.call()", 2)])
def test_a_change_of_what_does_not_stand_once_is_refused(tmp_path, line, times):
    path = tmp_path / "wrong_x.py"
    path.write_text(f'"""X."""\n\nCHANGE = """\n-        {line}\n"""\n')
    answer = answers.Answer("04_communication_cost", "median_seconds", "wrong_x", path)
    with pytest.raises(ValueError, match=f"wrong_x changes what stands {times} times, not once"):
        answers.pieces(answer, {"median-seconds"})
