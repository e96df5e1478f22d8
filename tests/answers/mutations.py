"""Small mistakes made in right solutions, each in one place: the mutants of an exercise.

Pure: a notebook in, mutants out. Whether a test notices them is another question; see mutants.py.
Only what stands between the solution markers is touched; messages of exceptions are left alone.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
COMMUNICATION = set(
    "all_reduce all_gather all_gather_into_tensor all_to_all all_to_all_single barrier"
    " batch_isend_irecv broadcast gather irecv isend recv reduce reduce_scatter"
    " reduce_scatter_tensor scatter send wait".split()
)
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
SYMMETRIC = {"transpose", "min", "max"}  # in their first two arguments
CONSTANTS = {"SUM": "MAX", "MAX": "SUM", "AVG": "SUM"}


@dataclass(frozen=True)
class Mutant:
    """One changed solution cell: `before` and `after` are the changed statement, on one line."""

    stem: str
    cell: str
    test: str
    kind: str
    before: str
    after: str
    text: str

    @property
    def order(self) -> str:
        """Sorts mutants at random, but always the same way, whatever stands around them."""
        return hashlib.sha256(f"{self}".encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.stem}/{self.cell}: {self.before}  ->  {self.after}"


def mutants(notebook: dict, stem: str) -> list[Mutant]:
    """Every mutant of an exercise's source notebook, in reading order."""
    found, waiting = [], []
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] != "code":
            continue
        if about.get("solution"):
            waiting.append((cell["id"], "".join(cell["source"])))
        elif about.get("grade"):
            for name, text in waiting:
                found += _of_cell(stem, name, cell["id"], text)
            waiting = []
    return found


def chosen(all_mutants: list[Mutant], count: int) -> list[Mutant]:
    """`count` of them, spread over the tests and the kinds of mistake; always the same ones."""
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in sorted(all_mutants, key=lambda mutant: mutant.order):
        groups.setdefault((mutant.test, mutant.kind), []).append(mutant)
    piles = [groups[name] for name in sorted(groups)]
    rounds = [pile[turn] for turn in range(len(all_mutants)) for pile in piles if turn < len(pile)]
    return rounds[:count]


def _of_cell(stem: str, name: str, test: str, text: str) -> Iterator[Mutant]:
    tree, seen = ast.parse(text), set()
    for statement in _statements(tree, _solution_lines(text)):
        for kind, changed in _changes(statement):
            after = "; ".join(map(_shown, changed))
            mutated = _replaced(text, statement, changed)
            if mutated not in seen and mutated != text:
                seen.add(mutated)
                yield Mutant(stem, name, test, kind, _shown(statement), after, mutated)


def _solution_lines(text: str) -> set[int]:
    """Line numbers between the markers."""
    inside, found = False, set()
    for number, line in enumerate(text.splitlines(), 1):
        inside = (inside or BEGIN in line) and END not in line
        if inside and BEGIN not in line:
            found.add(number)
    return found


def _statements(tree: ast.AST, lines: set[int]) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno in lines and not _is_talk(node):
            yield node


def _is_talk(node: ast.stmt) -> bool:
    """Docstrings, exceptions and imports: not what a test is about."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.Pass)


def _changes(statement: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """(kind, the statements that take its place) of each mistake in this statement alone."""
    if isinstance(statement, ast.Expr | ast.AugAssign):
        kind = "communication" if _communicates(statement) else "statement"
        yield f"{kind} dropped", [ast.Pass()]
    if _communicates(statement):
        yield "communication repeated", [statement, statement]
    if isinstance(statement, ast.AugAssign):
        yield "operator", [ast.Assign([statement.target], statement.value, lineno=0)]
    if isinstance(statement, ast.If | ast.While):
        yield (
            "operator",
            [_with(statement, statement, "test", ast.UnaryOp(ast.Not(), statement.test))],
        )
    for node in _own_nodes(statement):
        for kind, field, value in _mistakes(node):
            yield kind, [_with(statement, node, field, value)]


def _communicates(statement: ast.stmt) -> bool:
    """Whether it is nothing but a call that sends, receives or waits."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    name = getattr(call, "func", None)
    return getattr(name, "attr", getattr(name, "id", None)) in COMMUNICATION


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement's nodes, without those of the statements in its body, and no annotation."""
    yield statement
    for field, value in ast.iter_fields(statement):
        if field not in ("annotation", "args", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.expr | ast.withitem):
                    yield from _walk(child)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """As ast.walk, but past zip's `strict`, which says what holds and changes nothing."""
    yield node
    for child in ast.iter_child_nodes(node):
        if getattr(child, "arg", None) != "strict":
            yield from _walk(child)


def _with(statement: ast.stmt, node: ast.AST, field: str, value: object) -> ast.stmt:
    """A copy of the statement in which one field of one node is another."""
    before = getattr(node, field)
    setattr(node, field, value)
    try:
        return copy.deepcopy(statement)
    finally:
        setattr(node, field, before)


def _shown(statement: ast.stmt) -> str:
    """A statement on one line; of one that holds others, its head."""
    if not hasattr(statement, "body"):
        return ast.unparse(statement)
    alone = copy.copy(statement)
    alone.body, alone.orelse = [ast.Pass()], []
    return ast.unparse(alone).rpartition("\n")[0]


def _replaced(text: str, statement: ast.stmt, changed: list[ast.stmt]) -> str:
    """The cell's text with other statements in the place of one."""
    lines = [line.encode() for line in text.split("\n")]
    first, last = statement.lineno - 1, statement.end_lineno - 1
    start, end = statement.col_offset, statement.end_col_offset
    if hasattr(statement, "body"):  # only its head
        inner = statement.body[0]
        last, end = inner.lineno - 1, inner.col_offset
        while not lines[last][:end].rstrip().endswith(b":"):
            last, end = last - 1, len(lines[last - 1])
        end = len(lines[last][:end].rstrip())
    before, after = lines[first][:start], lines[last][end:]
    between = b"\n" + b" " * start if not before.strip() else b"; "
    new = between.join(_shown(one).encode() for one in changed)
    if lines[first][start:].startswith(b"elif"):
        new = b"el" + new
    whole = [*lines[:first], before + new + after, *lines[last + 1 :]]
    return b"\n".join(whole).decode()


def _mistakes(node: ast.AST) -> Iterator[tuple[str, str, object]]:
    """(kind, field, its new value) of each mistake in one node, not in what it holds."""
    for name in ("op", "ops"):
        old = getattr(node, name, None)
        first = old[0] if isinstance(old, list) else old
        if type(first) in OPERATORS:
            new = OPERATORS[type(first)]()
            yield "operator", name, [new, *old[1:]] if isinstance(old, list) else new
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "operator", "op", ast.UAdd()
    if isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        value = node.value
        yield "constant", "value", not value if isinstance(value, bool) else value + 1
    if isinstance(node, ast.Slice):
        for name in ("lower", "upper"):
            if getattr(node, name) is not None:
                yield "index", name, None
    if isinstance(node, ast.Attribute) and node.attr in CONSTANTS:
        yield "argument", "attr", CONSTANTS[node.attr]
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        if (
            len(node.args) > 1
            and name not in SYMMETRIC
            and ast.dump(node.args[0]) != ast.dump(node.args[1])
        ):
            yield "argument", "args", [node.args[1], node.args[0], *node.args[2:]]
        for number, keyword in enumerate(node.keywords):
            if keyword.arg == "strict":
                continue
            left = node.keywords[:number] + node.keywords[number + 1 :]
            yield "argument", "keywords", left
