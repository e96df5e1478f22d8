"""A page for each public package of byhand: its map, and every public name's contract.

Docstrings are shown as they are written, in lines: their tables are made of spaces.
"""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import byhand

LEFT_OUT = {"lab", "tools", "words"}


def write_reference(folder: Path) -> list[str]:
    """Write the pages; their names for the table of contents."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ["byhand", *(f"byhand.{name}" for name in _packages())]
    for name in names:
        (folder / f"{name}.md").write_text(_page(importlib.import_module(name)))
    return [f"reference/{name}" for name in names]


def _packages() -> list[str]:
    place = Path(byhand.__file__).parent
    found = [path.parent.name for path in place.glob("*/__init__.py")]
    return sorted(set(found) - LEFT_OUT)


def _page(module: ModuleType) -> str:
    parts = [f"# {module.__name__}", _lines(inspect.getdoc(module) or "")]
    for name in getattr(module, "__all__", []):
        parts += _entry(name, getattr(module, name), 2)
    return "\n\n".join(parts) + "\n"


def _entry(name: str, thing: Any, level: int) -> Iterator[str]:
    """One public name: its signature, its docstring, and its own public methods."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return
    yield f"{'#' * level} {name}"
    yield _lines(f"{name}{_signature(thing)}", "python")
    if text := inspect.getdoc(thing):
        yield _lines(text)
    if inspect.isclass(thing):
        for inner, method in vars(thing).items():
            if not inner.startswith("_") and inspect.isfunction(method):
                yield from _entry(inner, method, level + 1)


def _signature(thing: Any) -> str:
    try:
        return str(inspect.signature(thing)).replace("torch.Tensor", "Tensor")
    except (ValueError, TypeError):
        return "(...)"


def _lines(text: str, language: str = "text") -> str:
    return f"```{language}\n{text}\n```"
