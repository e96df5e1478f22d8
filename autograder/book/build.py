"""`make book`: lectures are executed if something changed, then Sphinx writes build/book."""

import importlib.util
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from autograder.book import drawn, planner
from autograder.book.explorer import FOLDER
from autograder.book.gather import address_of, gather, place_of
from autograder.course import run_lectures
from autograder.places import COURSE, Places
from byhand.words import counted

NEEDED = ("sphinx", "myst_nb", "furo", "latex2mathml")


def build(course: Path, executed: Path, target: Path) -> list[str]:
    """Write the book of a course whose executed lectures lie in `executed`, to `target`.

    Returns what is wrong with it, a sentence each: Sphinx's warnings.
    """
    source = target.with_name(f"{target.name}-source")
    settings = tomllib.loads((course / "pyproject.toml").read_text())
    names = [path.stem for path in sorted((course / "lectures").glob("*.ipynb"))]
    forms = drawn.forms(names, executed, executed.parent)
    where = Places(course, course / "build" / "class")
    gather(where, executed, source, address_of(settings), forms)
    explorer = planner.explorer()
    (source / f"{explorer.name}.md").write_text(planner.page(explorer))
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-c", str(Path(__file__).parent)]
    command += ["-D", f"html_baseurl={place_of(settings)}"]
    command += ["-q", "-j", "auto", "-d", str(source / ".doctrees"), str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    explorer.write(target)
    for name in forms:
        shutil.copy(executed.parent / FOLDER / f"{name}.js", target / FOLDER)
    problems = [line for line in done.stderr.splitlines() if "WARNING" in line or "ERROR" in line]
    return problems or ([done.stderr[-2000:]] if done.returncode else [])


def main() -> int:
    """0 when the book is whole."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"The book needs {', '.join(missing)}: pip install -e '.[book]'", file=sys.stderr)
        return 1
    began, target = time.monotonic(), COURSE / "build" / "book"
    lectures = run_lectures(COURSE / "lectures", COURSE / "build")
    print(lectures.what, flush=True)
    problems = lectures.problems or build(COURSE, COURSE / "build" / "lectures", target)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    pages = len(list(target.rglob("*.html")))
    print(f"{counted(pages, 'page')} in {time.monotonic() - began:.0f} s: build/book/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
