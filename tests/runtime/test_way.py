"""A function's way from a cell to its ranks and back: which files it takes, and which it leaves."""

import os
import subprocess
import sys
from pathlib import Path

from byhand.runtime import Launcher
from byhand.runtime.launching import launch_on

TRACER = """
import os, sys, threading
seen = set()
def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event != "call" or name in seen or "byhand/runtime/" not in name:
        return
    if name.endswith("__init__.py") or not os.path.exists(os.environ["WAY"]):
        return
    seen.add(name)
    with open(os.environ["WAY"], "a") as file:
        file.write(name.partition("byhand/runtime/")[2] + "\\n")
sys.setprofile(note)
threading.setprofile(note)
"""

PROGRAM = """
import os, torch, torch.distributed as dist
from byhand import launch
def add_up(rank, world_size, x):
    dist.all_reduce(x)
    return x
launch(add_up, 2, (torch.ones(1),))
open(os.environ["WAY"], "w").close()  # from now on, with everything loaded, files are noted
launch(add_up, 2, (torch.ones(1),))
"""


def run(program: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_launch_takes_the_files_that_its_docstring_names(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TRACER)
    way = tmp_path / "way"
    run(PROGRAM, PYTHONPATH=str(tmp_path), WAY=str(way))
    files = sorted(set(way.read_text().split()))
    told = {"launching.py", "pickling.py", "messages.py", "process/place.py", "process/server.py"}
    assert told | {"process/rank.py", "process/member.py", "trace/log.py"} <= set(files)


def rooms(rank: int, world_size: int) -> list[str]:
    return [n for n in sys.modules if n.startswith(("byhand.runtime.walls", "byhand.runtime.net"))]


def test_an_ordinary_rank_loads_neither_walls_nor_network():
    with Launcher() as launcher:  # whose fork server has heard of neither
        assert launch_on(launcher, rooms, 2).results == [[], []]


def test_importing_byhand_does_not_import_torch():
    said = run("import sys, byhand; print('torch' in sys.modules, byhand.launch.__name__)")
    assert said.split() == ["False", "launch"]


def test_the_way_told_in_the_docstring_names_files_that_are_there():
    import byhand.runtime as runtime

    folder = Path(runtime.__file__).parent
    told = {word.strip(",.()") for word in runtime.__doc__.split() if ".py" in word}
    assert {name for name in told if not list(folder.rglob(name))} == set()
