"""Which module imports which, read from the source: the map of DESIGN's house as data.

Layers, top to bottom; a module imports only from layers below its own, or from its own:

    autograder                      check and runtime; nothing else of the library
    figures, widgets, check, ...    draw, examine, or show: the teaching modules, and the runtime
    teaching modules                torch, and the pure ones
    digits                          the data: torch and scikit-learn
    runtime                         torch and cloudpickle
    pure                            numbers in, numbers out: no torch (numpy), no process
"""

from __future__ import annotations

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PURE = {
    "all_reduce_plans",
    "all_reduce_programs",
    "all_reduce_trees",
    "rank_groups",
    "mesh",
    "placement",
    "pipeline_actions",
    "pipeline_schedules",
    "communication_cost",
    "hybrid_parallel_cost",
    "hybrid_parallel_layouts",
    "communication_fit",
    "communication_networks",
    "communication_rounds",
    "hardware",
    "memory",
    "planner",
    "step_cost",
}
DATA = {"digits"}
SHOWING = {
    "all_reduce_demonstrations",
    "check",
    "communication_demonstrations",
    "communication_explorer",
    "data_parallel_demonstrations",
    "demonstrations",
    "differences",
    "doctor",
    "figures",
    "grid_explorer",
    "hybrid_parallel_demonstrations",
    "hybrid_parallel_explorer",
    "magic",
    "monitoring",
    "pipeline_demonstrations",
    "rank_groups_demonstrations",
    "step_demonstrations",
    "tensor_parallel_demonstrations",
    "widgets",
}
FACADE = "byhand"  # the package itself: a short name for a few things of the runtime

MAY_IMPORT = {
    "autograder": {"autograder", "facade", "showing", "runtime"},
    "showing": {"showing", "facade", "teaching", "data", "pure", "runtime"},
    "facade": {"runtime", "showing"},
    "teaching": {"teaching", "pure"},
    "data": set(),
    "runtime": {"runtime"},
    "pure": {"pure"},
}
MAY_IMPORT_OF_OTHERS = {
    "teaching": {"torch"},
    "data": {"torch", "sklearn"},
    "runtime": {"torch", "cloudpickle"},
    "pure": {"numpy"},
}


def layer(module: str) -> str:
    """The layer that a module of the course belongs to."""
    if module.split(".")[0] == "autograder":
        return "autograder"
    if module == FACADE:
        return "facade"
    part = module.split(".")[1]
    if part == "runtime":
        return "runtime"
    named = {"pure": PURE, "data": DATA, "showing": SHOWING}
    return next((name for name, parts in named.items() if part in parts), "teaching")


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


def back_arrows(graph: dict[str, set[str]]) -> list[str]:
    """One sentence for each import that DESIGN's map does not have."""
    wrong = []
    for module, imported in sorted(graph.items()):
        here = layer(module)
        for other in sorted(imported):
            if other in graph and layer(other) not in MAY_IMPORT[here]:
                wrong.append(f"{module} ({here}) imports {other} ({layer(other)})")
            elif other not in graph and other not in MAY_IMPORT_OF_OTHERS.get(here, {other}):
                wrong.append(f"{module} ({here}) imports {other}")
    return wrong


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle of imports; empty when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
