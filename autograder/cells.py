"""Which names a cell of the instructor's defines. Pure text in, names out."""

from __future__ import annotations

import ast


def defined_names(source: str) -> list[str]:
    """Functions, classes and plain variables that a cell defines at its top level."""
    names: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (name for target in targets for name in ast.walk(target)):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    names.append(name.id)
    return names
