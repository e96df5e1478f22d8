"""Examples in docstrings are run, and whatever the library offers has one or is on a list."""

import doctest
import importlib
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import byhand

HOME = Path(byhand.__file__).parent
# Wide outputs and messages go on in the next line.
HOW = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(path: Path) -> str:
    parts = path.relative_to(HOME.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in HOME.rglob("*.py")}
WITH_EXAMPLES = sorted(name for name, path in FILES.items() if ">>>" in path.read_text())


def known(module) -> dict:
    """What an example can name: torch, dist, launch, its package's public names, its module's own.

    Its functions are then no module's, as those of a notebook's cell: they travel by value.
    """
    package = sys.modules[".".join(module.__name__.split(".")[:2])]
    public = {name: getattr(package, name) for name in getattr(package, "__all__", ())}
    own = {n: v for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__}
    return {"torch": torch, "dist": dist, "launch": byhand.launch, **public, **own}


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_say_what_comes(name):
    module = importlib.import_module(name)
    names = known(module) | {"__name__": "__main__"}
    tests = doctest.DocTestFinder().find(module, name, globs=names)
    said = []
    runner = doctest.DocTestRunner(optionflags=HOW, verbose=False)
    for test in tests:
        runner.run(test, out=said.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(said)
