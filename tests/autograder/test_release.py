"""Release: the same bytes each time, nothing secret in them, and wrong sources are refused."""

import graded_class
import nbformat
import pytest
import tiny_course
from benchmarks import grading as benchmark

from autograder.places import CourseError, chosen_assignments, places
from autograder.release import generate as release
from autograder.release.generate import HiddenTests
from autograder.release.rules import problems


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return tiny_course.make_course(tmp_path_factory.mktemp("release"))


def test_release_gives_the_same_bytes_twice(course):
    source = course.source(tiny_course.ASSIGNMENT)
    assert release.blank(source) == release.blank(source)
    assert release.blank(source) == course.released(tiny_course.ASSIGNMENT).read_bytes()


def test_a_released_notebook_holds_neither_solution_nor_hidden_test(course):
    text = course.released(tiny_course.ASSIGNMENT).read_text()
    for secret in ("SOLUTION", "HIDDEN", "987654", "2 * number", tiny_course.WORDS):
        assert secret not in text


def test_a_released_notebook_keeps_its_cells_and_has_no_outputs(course):
    before, after = tiny_course.source(), tiny_course.released(course)
    assert [cell.id for cell in after.cells] == [cell.id for cell in before.cells]
    assert all(not c.outputs and c.execution_count is None for c in after.cells if "outputs" in c)


def test_the_exercise_of_the_grading_benchmark_can_be_released(tmp_path):
    assert benchmark.make_class(tmp_path, 1).released(tiny_course.ASSIGNMENT).exists()


def test_release_touches_no_gradebook(course):
    release.release(course, [tiny_course.ASSIGNMENT])
    assert not course.gradebook.exists()


def test_an_exercise_that_somebody_works_in_is_not_written_over(tmp_path):
    where = tiny_course.make_course(tmp_path)
    path, source = where.released(tiny_course.ASSIGNMENT), where.source(tiny_course.ASSIGNMENT)
    solved = tiny_course.as_bytes(tiny_course.solved(tiny_course.released(where)))
    path.write_bytes(solved)
    source.write_text(source.read_text().replace("## Task 1", "## Task one"))
    with pytest.raises(CourseError, match=r"01_tiny/tiny\.ipynb\. Nothing was written"):
        release.release(where, [tiny_course.ASSIGNMENT])
    assert path.read_bytes() == solved
    release.release(where, [tiny_course.ASSIGNMENT], overwrite=True)
    assert path.read_bytes() == release.blank(source)


def test_a_changed_source_is_released_over_what_release_wrote(tmp_path):
    where = tiny_course.make_course(tmp_path)
    path, source = where.released(tiny_course.ASSIGNMENT), where.source(tiny_course.ASSIGNMENT)
    for title in ("## Task one", "## The first task"):
        source.write_text(source.read_text().replace("## Task 1", title))
        release.release(where, [tiny_course.ASSIGNMENT])
        assert path.read_bytes() == release.blank(source)


def test_graded_cells_that_change_after_hand_ins_are_refused_and_a_way_is_told(tmp_path):
    where = graded_class.make(tmp_path)
    notebook = tiny_course.source()
    for cell in notebook.cells:
        if cell.id in ("total", "test-total"):
            cell.id = cell.metadata.nbgrader.grade_id = cell.id.replace("total", "triple")
    nbformat.write(notebook, where.source(tiny_course.ASSIGNMENT))
    told = r"01_tiny: its graded cells are not those .* or move .*gradebook\.db away"
    with pytest.raises(CourseError, match=told):
        release.register(where, tiny_course.ASSIGNMENT)


def spoil_points(cells):
    cells["test-double"].metadata.nbgrader.points = 2.5


def spoil_total(cells):
    cells["tiny"].source = cells["tiny"].source.replace("Points: 6", "Points: 5")


def spoil_header(cells):
    cells["tiny"].source = "# Tiny"


def spoil_lock(cells):
    cells["test-total"].metadata.nbgrader.locked = False


def spoil_solution_lock(cells):
    cells["double"].metadata.nbgrader.locked = True


def spoil_grade_id(cells):
    cells["double"].metadata.nbgrader.grade_id = "triple"


def spoil_id(cells):
    cells["double"].id = "total"
    cells["double"].metadata.nbgrader.grade_id = "total"


def spoil_markers(cells):
    cells["test-double"].source = cells["test-double"].source.replace("### END HIDDEN TESTS", "")


def spoil_place_of_hidden_tests(cells):
    cells["test-double"].source += "\nassert double"


def spoil_place_of_solution(cells):
    cells["imports"].source += "\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION"


def spoil_test_name(cells):
    cells["test-total"].id = cells["test-total"].metadata.nbgrader.grade_id = "total-test"


def spoil_name_of_a_helper(cells):
    cells["test-total"].source = cells["test-total"].source.replace("_run", "run")


def spoil_names_of_loops_and_imports(cells):
    cells["test-double"].source = f"import math, os as _os\nfor size in ():\n    pass\n{DOUBLED}"


DOUBLED = "(_doubled := double(21))\nassert _doubled == 42"


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (spoil_points, "cell test-double: its points are 2.5"),
        (spoil_total, "cell tiny: it states Points: 5, but the graded cells add up to 6"),
        (spoil_header, "no cell has the header line"),
        (spoil_lock, "cell test-total: students must not change it"),
        (spoil_solution_lock, "cell double: students write in it"),
        (spoil_grade_id, "cell double: its grade_id is triple"),
        (spoil_id, "cell total: the id is used 2 times"),
        (spoil_markers, "cell test-double: 1 time '### BEGIN HIDDEN TESTS' but 0 times"),
        (spoil_place_of_hidden_tests, "cell test-double: something comes after its first"),
        (spoil_place_of_solution, "cell imports: it holds a solution but is not a solution cell"),
        (spoil_name_of_a_helper, "cell test-total: it defines run: in JupyterLab a student's"),
        (spoil_names_of_loops_and_imports, "cell test-double: it defines math, size: in"),
        (spoil_test_name, "cell total-test: the name of a test cell begins with test-"),
    ],
)
def test_a_wrong_source_is_refused_by_naming_the_cell(spoil, sentence):
    notebook = tiny_course.source()
    spoil({cell.id: cell for cell in notebook.cells})
    assert any(sentence in problem for problem in problems(notebook)), problems(notebook)


def test_the_refusal_names_the_file_and_writes_nothing(tmp_path):
    where = tiny_course.make_course(tmp_path)
    before = where.released(tiny_course.ASSIGNMENT).read_bytes()
    notebook = tiny_course.source()
    spoil_total({cell.id: cell for cell in notebook.cells})
    nbformat.write(notebook, where.source(tiny_course.ASSIGNMENT))
    with pytest.raises(CourseError, match=r"tiny\.ipynb cannot be released:\n.*Points: 5"):
        release.release(where, [tiny_course.ASSIGNMENT])
    assert where.released(tiny_course.ASSIGNMENT).read_bytes() == before


def test_an_unknown_assignment_is_answered_with_those_there_are(course):
    with pytest.raises(CourseError, match="no assignment 99_x; there are 01_tiny"):
        chosen_assignments(course, ["99_x"])


def test_a_class_directory_that_nbgrader_cannot_work_in_is_refused():
    with pytest.raises(CourseError, match="nbgrader reads paths as patterns"):
        places("/tmp/a+b[c]")


def test_a_released_test_tells_how_many_parts_passed_and_how_many_are_hidden():
    source = nbformat.read(places().source("01_ranks"), as_version=4)
    cell = next(cell for cell in source.cells if cell.id == "test-share-and-mean")
    released, _ = HiddenTests().preprocess_cell(cell, {}, 0)
    last = released.source.splitlines()[-1]
    assert (
        last == 'print("2 visible parts passed; 5 hidden parts will vary ranks, sizes and inputs.")'
    )
