"""The corpus: every case, graded in one class as by an instructor, and what it left behind.

    [JOBS=8] python tests/submissions/corpus.py FOLDER [NAME ...]

writes FOLDER/result.json: for each case its verdicts, points and seconds, and a list of everything
that is not as it was before. Run as the user whose class it is to be; `graded_by` does that.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import arena  # noqa: E402
from arena import Case, verdicts, written  # noqa: E402
from attack_cases import ATTACKS  # noqa: E402
from distributed_cases import DISTRIBUTED  # noqa: E402
from fault_cases import FAULTS  # noqa: E402
import honest_cases  # noqa: E402
import honest_exercises  # noqa: E402
import honest_files  # noqa: E402
from intake_cases import INTAKE  # noqa: E402
from judge_cases import JUDGE  # noqa: E402

LIMIT = 4.0
JOBS = 2
ORDINARY = 65_534  # the user that root's tests grade as, too
ROOT = Path(__file__).resolve().parent.parent.parent
WITH_WORKERS = """from torch.utils.data import DataLoader


def double(number):
    loader = DataLoader([number, number], num_workers=2)
    return sum(int(batch) for batch in loader)
"""
HONEST = [written(f"{letter}-honest", verdicts(), noted=()) for letter in "bdhlrtx"]
HONEST += [written("reads-with-two-workers", "passed", noted=(), double=WITH_WORKERS)]
HABITS = [*honest_cases.HABITS, *honest_files.HABITS, *honest_exercises.HABITS]
ATTACKS = [*ATTACKS, *JUDGE]
KINDS = {"intake": INTAKE, "faults": FAULTS, "distributed": DISTRIBUTED, "attacks": ATTACKS,
         "habits": HABITS}
CASES: list[Case] = [*INTAKE, *FAULTS, *DISTRIBUTED, *ATTACKS, *HONEST, *HABITS]
# What reaches for files, processes or the kernel depends on who grades, so two users grade all of
# it; of the rest, and of attacks that only tell the judge something, each grades a part, and both
# together all. CORPUS=all in the environment lets both grade everything.
TELLS = ("equals-", "patched-", "script-", "escape-codes-", "reply-", "log-", "a-hidden-number-")
TOLD = [case for case in ATTACKS if case.name.startswith(TELLS)]
REACHES = [case for case in ATTACKS if case not in TOLD]
PART = [*INTAKE[::4], *FAULTS[::3], *DISTRIBUTED[::3], *HABITS[::2], *TOLD[::2]]
FOR_A_USER = [*PART, *REACHES, *HONEST]
FOR_ROOT = [case for case in CASES if case not in PART]
if os.environ.get("CORPUS") == "all":
    FOR_A_USER = FOR_ROOT = CASES


def grade_corpus(folder: Path, names: list[str], jobs: int) -> dict:
    """Grade these cases (all, for no names) in a fresh class below `folder`, `jobs` at a time."""
    from autograder.report.feedback import write_feedback

    cases = [case for case in CASES if not names or case.name in names]
    exercises = sorted({case.assignment for case in cases} - {arena.ASSIGNMENT})
    where, secrets, home = arena.make_course(folder, exercises), folder / "secrets", Path.home()
    _plant(secrets, home)
    with _Listener() as listener:
        about = arena.surroundings(where, secrets, listener.port)
        arena.write_class(where, cases, about)
        before = _seen(where, secrets, home)
        began = time.monotonic()
        judgements, failures = _graded(where, exercises, jobs)
        seconds = time.monotonic() - began
        touched = _differences(before, _seen(where, secrets, home))
    pages = write_feedback(where, [arena.ASSIGNMENT, *exercises], [])
    return {
        "judgements": {j.student: _told(j) for j in judgements},
        "pages": {page.parts[-3]: html.unescape(page.read_text()) for page in pages},
        "shown": {str(p): p.read_text(errors="replace") for p in _student_facing(where)},
        "failures": failures,
        "touched": touched,
        "called": listener.calls,
        "seconds": seconds,
        "user": os.getuid(),
    }


def _graded(where, exercises: list[str], jobs: int) -> tuple[list, list[str]]:
    """Judgements made now, and failures: the arena at LIMIT, real exercises at their own limits."""
    from autograder.batch.grading import GradeOptions, grade
    from byhand.runtime.walls.isolation import why_no_sandbox

    options = GradeOptions(again=True, sandboxed=not why_no_sandbox(), progress=False, jobs=jobs)
    judgements, failures = [], []
    for names, limit in (([arena.ASSIGNMENT], LIMIT), (exercises, None)):
        if any(where.submitted.glob(f"*/{name}") for name in names):
            outcome = grade(where, names, [], replace(options, limit=limit))
            judgements += outcome.judgements
            failures += outcome.failures
    return judgements, failures


def _told(judgement) -> dict:
    return {
        "verdicts": {v.question: [v.verdict, v.message] for v in judgement.verdicts},
        "points": judgement.points,
        "seconds": judgement.seconds,
        "sandbox": judgement.sandbox,
        "suspicions": judgement.suspicions,
    }


def _student_facing(where) -> list[Path]:
    """Every file that a student may be given: feedback, released notebooks."""
    places = (where.feedback, where.exercises)
    return [path for place in places for path in sorted(place.rglob("*")) if path.is_file()]


def _plant(secrets: Path, home: Path) -> None:
    """A tree that nobody may touch, some of it writable for everybody."""
    (secrets / "open").mkdir(parents=True)
    for name in ("hidden.ipynb", "open/expected.json"):
        (secrets / name).write_text(f"{arena.CANARY} 987654 BEGIN SOLUTION")
    for place in (secrets, secrets / "open"):
        place.chmod(0o777)
    (home / ".ipython" / "profile_default" / "startup").mkdir(parents=True, exist_ok=True)
    (home / ".bashrc").write_text("# as it was\n")


def _seen(where, secrets: Path, home: Path) -> dict[str, str]:
    """Every file that grading has no business in, and what is in it."""
    kept = [where.course, where.submitted, secrets, home / ".ipython", home / ".bashrc"]
    files = {}
    for place in kept:
        for path in [place, *sorted(place.rglob("*"))]:
            if path.is_symlink() or not path.is_file():
                files[str(path)] = "a link" if path.is_symlink() else "no file"
            elif path.stat().st_size < 1 << 28:
                files[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    packages = Path(json.__file__).parent, Path(arena.release.__file__).parent
    for folder in (*packages, *(Path(p) for p in sys.path if p.endswith("site-packages"))):
        files[str(folder)] = " ".join(sorted(n for n in os.listdir(folder) if n != "__pycache__"))
    return files


def _differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys()
                  if before.get(name) != after.get(name))


class _Listener:
    """A server of this machine that no submission should reach; `calls` counts who did."""

    def __enter__(self):
        self.calls = 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def _listen(self) -> None:
        try:
            while True:
                self.server.accept()[0].close()
                self.calls += 1
        except OSError:
            pass

    def __exit__(self, *_) -> None:
        self.server.close()


def become(user: int) -> tuple[str, ...]:
    """The words by which root runs a Python command as this user, who sees Python and no home."""
    from byhand.runtime.walls.isolation import ROOTS, bound, python_folders, setpriv

    places = ("--dev-bind", "/", "/", "--tmpfs", str(Path.home()), *bound(python_folders()))
    return ("bwrap", *ROOTS, *places, "--", *setpriv(user))


def graded_by(user: int | None, names: list[str] = (), jobs: int = JOBS) -> dict:
    """The result of grading the corpus in a process of its own: as this user, for None as now."""
    folder = Path(tempfile.mkdtemp(prefix="corpus-", dir="/tmp"))  # short: sockets lie below it
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    words = []
    if user is not None:
        folder.chmod(0o755)
        for path in (folder, folder / "home", folder / "tmp"):
            os.chown(path, user, user)
        words = become(user)
    here = os.pathsep.join(map(str, (ROOT, ROOT / "lib", ROOT / "tests")))
    about = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": here,
             "JOBS": str(jobs)}
    try:
        subprocess.run([*words, sys.executable, __file__, str(folder), *names], check=True,
                       cwd=folder, env={**os.environ, **about})
        return json.loads((folder / "result.json").read_text())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def complaints(case: Case, result: dict) -> list[str]:
    """What is not as it should be with this case."""
    found = result["judgements"][case.name]
    wrong = []
    for test, (verdict, message) in found["verdicts"].items():
        wanted = case.expected[test]
        if verdict != wanted and (wanted != arena.LOST or verdict in (arena.PASSED, "infrastructure")):
            wrong.append(f"{test}: {verdict} and not {wanted}: {message[:500]}")
    if found["points"] != case.points:
        wrong.append(f"{found['points']} points and not {case.points}")
    # TCP's headers and acknowledgements vary with load, and with them the megabytes carried.
    noted = [re.sub(r"carried [\d.]+ MB", "carried … MB", note) for note in found["suspicions"]]
    if case.noted is not None and noted != list(case.noted):
        wrong.append(f"the instructor sees {noted} and not {list(case.noted)}")
    page = result["pages"].get(case.name, "")
    wrong += [f"a student reads {note!r}" for note in found["suspicions"] if note in page]
    wrong += [f"the feedback does not say {words!r}" for words in case.says if words not in page]
    return wrong


if __name__ == "__main__":
    place = Path(sys.argv[1])
    found = grade_corpus(place, sys.argv[2:], int(os.environ.get("JOBS", JOBS)))
    (place / "result.json").write_text(json.dumps(found))
