"""Which module imports which, read from the source: the map of the house, by folder.

A module stands in a room, named by its folder; a room imports from those on its line below, and
from itself. Within a topic, `lab` is a room of its own, and so is each file whose docstring's
first sentence ends in "Pure."; a topic imports from those before it in TOPICS, and a lab, which no
topic imports, from any.
"""

from __future__ import annotations

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

TOPICS = (
    "collectives all_reduce communication_cost data_parallel zero tensor_parallel "
    "sequence_parallel pipeline_schedules pipeline_parallel rank_groups hybrid_parallel "
    "context_parallel expert_parallel memory checkpoint fault_tolerance planner frameworks"
).split()  # in the order in which one builds on another

MAY_IMPORT = {
    "autograder": "release collect grade batch report check figures runtime walls",
    "book": "autograder figures tools byhand lab pure",
    "report": "autograder batch collect grade figures",
    "batch": "autograder collect grade release walls",
    "grade": "autograder collect release check runtime walls watch",
    "collect": "autograder",
    "release": "autograder",
    "byhand": "runtime tools model",
    "lab": "byhand tools figures check topic pure model costs runtime",
    "tools": "byhand figures runtime walls trace pure model",
    "figures": "",
    "check": "runtime trace",
    "topic": "pure model costs",
    "pure": "costs",
    "costs": "pure",
    "model": "costs",
    "runtime": "process watch trace walls network slurm",
    "walls": "runtime process trace",
    "network": "runtime walls process",
    "process": "runtime trace",
    "slurm": "runtime process trace watch",
    "watch": "runtime process trace",
    "trace": "runtime",
    "words": "",
}
EVERYBODYS = "words"
OPTIONAL = (
    "accelerate",
    "deepspeed",
    "jax",
    "megatron",
)  # imported where they are used: lecture 18's
MAY_IMPORT_OF_OTHERS = {
    "topic": {"torch", *OPTIONAL},
    "model": {"torch", "sklearn"},
    "pure": {"numpy", "scipy"},
    "figures": {"matplotlib", "numpy", "IPython"},
    "runtime": {"torch", "cloudpickle", "psutil"},
    "process": {"torch", "cloudpickle", "psutil"},
    "slurm": {"psutil"},
    "watch": {"torch"},
    "trace": {"torch"},
    "walls": {"torch", "numpy", "psutil", "IPython", "traitlets"},
    "network": {"psutil"},
}


def room(module: str, path: Path | None = None) -> str:
    """The room of a module: a folder's name, or "topic", "lab" or "pure" inside a topic."""
    package, *parts = module.split(".")
    if package == "autograder" or not parts:
        inner = parts[0] if parts and parts[0] in MAY_IMPORT else package
        return inner
    if parts[0] == "runtime":
        return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else "runtime"
    if parts[0] not in TOPICS:
        return {"mlp": "model", "__main__": "tools"}.get(parts[0], parts[0])
    if len(parts) > 1 and parts[1] == "lab":
        return "lab"
    return "pure" if path is not None and _is_pure(path) else "topic"


def _is_pure(path: Path) -> bool:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return docstring.partition("\n\n")[0].endswith("Pure.")


def modules(root: Path) -> dict[str, Path]:
    """Every module of the two packages, by its dotted name."""
    found = {}
    for place in (root / "lib", root):
        for path in sorted(place.glob("byhand/**/*.py")) + sorted(place.glob("autograder/**/*.py")):
            name = ".".join(path.relative_to(place).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imports(root: Path) -> dict[str, set[str]]:
    """For each module: the modules of the course it imports, and the packages of others."""
    known = modules(root)
    return {name: _imported(name, path, set(known)) for name, path in known.items()}


def _imported(name: str, path: Path, known: set[str]) -> set[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*start, *([node.module] if node.module else [])])
            source = base if node.level else node.module
            submodules = {f"{source}.{alias.name}" for alias in node.names} & known
            found |= submodules
            if len(submodules) < len(node.names):
                found.add(source)
    ours = {other for other in found if other in known}
    others = {other for other in found - ours if other.split(".")[0] in ("byhand", "autograder")}
    others |= {other.split(".")[0] for other in found - ours - others}
    return (ours - {name}) | (others - set(sys.stdlib_module_names))


def back_arrows(root: Path) -> list[str]:
    """One sentence for each import that the map does not have."""
    places = modules(root)
    rooms = {name: room(name, path) for name, path in places.items()}
    wrong = []
    for module, imported in sorted(imports(root).items()):
        here = rooms[module]
        allowed = {here, EVERYBODYS, *MAY_IMPORT[here].split()}
        for other in sorted(imported):
            if other in rooms and rooms[other] not in allowed:
                wrong.append(f"{module} ({here}) imports {other} ({rooms[other]})")
            elif other in rooms and here != "lab" and _topic(other) > _topic(module) >= 0:
                wrong.append(f"{module} imports {other}, a later topic")
            elif other not in rooms and other not in MAY_IMPORT_OF_OTHERS.get(here, {other}):
                wrong.append(f"{module} ({here}) imports {other}")
    return wrong


def _topic(module: str) -> int:
    part = [*module.split("."), ""][1]
    return TOPICS.index(part) if part in TOPICS else -1


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle of imports; empty when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
