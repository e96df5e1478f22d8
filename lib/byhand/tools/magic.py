"""`%%ranks 4`: run a notebook cell on every rank, and see what each one printed.

    %load_ext byhand

    %%ranks 4
    x = torch.tensor([rank])
    dist.all_reduce(x)
    x

The cell sees `rank`, `world_size`, `dist` and `torch`, and the notebook's own names that it reads,
as copies. What it assigns stays on the ranks; its last expression is shown, by rank, and with
`--to NAME` the finished Run is kept in the notebook under that name.
"""

from __future__ import annotations

import ast
import builtins
import copy
import dis
import warnings
from types import CodeType, FunctionType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from byhand.runtime import default_launcher, launch
from byhand.runtime.pickling import why_not
from byhand.runtime.run import blocks_html, blocks_text
from byhand.runtime.trace import sources
from byhand.words import an

_GIVEN = ("rank", "world_size", "dist", "torch")
_LOOK_UP = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_NAME"}


def run_cell(
    rank: int,
    world_size: int,
    source: str,
    names: dict[str, Any],
    notebooks: FunctionType,
    filename: str,
) -> Any:
    """On a rank: execute a cell's source; the value of its last expression.

    notebooks: a function of the notebook's. Its globals are those of all others that came along, so
    what the cell assigns there, they read, as in a cell of the notebook.
    """
    import torch
    import torch.distributed as dist

    given = {"rank": rank, "world_size": world_size, "dist": dist, "torch": torch}
    namespace = notebooks.__globals__
    namespace |= {"__name__": "__main__", **names, **given}
    tree = ast.parse(source)
    shown = None
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        tree.body.pop()
        shown = ast.Expression(last.value)
    exec(compile(tree, filename, "exec"), namespace)
    return eval(compile(shown, filename, "eval"), namespace) if shown else None


def names_used(source: str, namespace: dict[str, Any], hidden: dict[str, Any]) -> dict[str, Any]:
    """The names of `namespace` that a cell's source reads before it assigns them.

    hidden: what IPython put there; its own `open`, say, is not the notebook's.
    """
    with warnings.catch_warnings(action="ignore"):  # of what is compiled: the ranks give them
        read = _read(ast.parse(source).body, {*_GIVEN, "__name__", "__annotations__"})
    own = {name: namespace[name] for name in read if name in namespace}
    theirs = {name: value for name, value in hidden.items() if hasattr(builtins, name)}
    return {name: value for name, value in own.items() if theirs.get(name, namespace) is not value}


def _read(body: list[ast.stmt], assigned: set[str]) -> set[str]:
    """The names that statements look up before they, or those before them, assign them.

    assigned: gets those that have another value after the statements, whichever way they went.
    """
    read: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.Break | ast.Continue):  # which name nothing
            continue
        head, blocks = _apart(statement)
        looked_up, stored = _names(
            compile(ast.Module([head], []), "<cell>", "exec", dont_inherit=True)
        )
        read |= looked_up - assigned
        is_certain = isinstance(statement, ast.With | ast.AsyncWith)
        if is_certain or not blocks:
            assigned |= stored
        for block in blocks:
            read |= _read(block, assigned if is_certain else assigned | stored)
    return read


def _apart(statement: ast.stmt) -> tuple[ast.stmt, list[list[ast.stmt]]]:
    """A statement without its blocks, and these; a function or a class stays whole."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return statement, []
    head, blocks = copy.copy(statement), []
    parts: list[ast.AST] = [head]
    for name in ("handlers", "cases"):
        if hasattr(head, name):
            setattr(head, name, [copy.copy(part) for part in getattr(head, name)])
            parts += getattr(head, name)
    for part in parts:
        for name in ("body", "orelse", "finalbody"):
            if block := getattr(part, name, None):
                blocks.append(block)
                setattr(part, name, [ast.Raise()])
    return ast.fix_missing_locations(head), blocks


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """The names that code looks up beyond its own, before it stores them; and those that it stores.

    The compiler knows them: what is a parameter, or a comprehension's, is none of them.
    """
    looked_up: set[str] = set()
    stored: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            stored.add(step.argval)
        elif step.opname in _LOOK_UP and step.argval not in stored:
            looked_up.add(step.argval)
    inner = [_names(part)[0] for part in code.co_consts if isinstance(part, CodeType)]
    return looked_up.union(*inner), stored


@magics_class
class RanksMagic(Magics):
    """Holds the `%%ranks` cell magic."""

    @magic_arguments()
    @argument("world_size", type=int, help="how many ranks there are")
    @argument("--to", metavar="NAME", help="where the notebook keeps the finished Run")
    @argument("--backend", default="auto", help="auto, gloo or nccl")
    @argument("--deadline", type=float, default=60.0, help="seconds for all of it")
    @cell_magic
    def ranks(self, line: str, cell: str) -> None:
        """Run the cell on every rank."""
        try:
            options = parse_argstring(self.ranks, line)
        except UsageError as error:
            raise UsageError(f"%%ranks: {error}. Write, for example, %%ranks 4") from None
        shell: Any = self.shell
        count = shell.execution_count
        label = f"%%ranks cell [{count}]"
        sources.remember(label, cell)
        _check_cell(cell)
        if options.to and not options.to.isidentifier():
            raise UsageError(f"%%ranks: --to names a variable, such as run, not {options.to}")
        names = names_used(cell, shell.user_ns, shell.user_ns_hidden)
        notebooks = FunctionType((lambda: None).__code__, shell.user_ns)
        arguments = cell, names, notebooks, f"<{label}>"
        how = {"backend": options.backend, "deadline": options.deadline}
        try:
            run = launch(run_cell, options.world_size, arguments, **how)
        except ValueError as error:
            raise UsageError(f"%%ranks: {_that_stays(names) or error}") from None
        if options.to:
            shell.user_ns[options.to] = run
        shown = {"text/plain": blocks_text(run), "text/html": blocks_html(run)}
        display(shown, raw=True)


def _check_cell(cell: str) -> None:
    """Refuse a cell that is not Python, before any rank starts."""
    try:
        with warnings.catch_warnings(action="ignore"):  # the ranks give them
            compile(cell, "<cell>", "exec", dont_inherit=True)
    except SyntaxError as error:
        number, lines = error.lineno or 1, ["", *cell.splitlines(), ""]
        raise UsageError(
            f"%%ranks: line {number}, {lines[number].strip()}: {error.msg}. A rank runs plain"
            " Python: no magics (%), no commands (!), and no await outside a function"
        ) from None


def _that_stays(names: dict[str, Any]) -> str | None:
    """A sentence on the first of these names that cannot travel; None where all can."""
    for name, value in names.items():
        if (why := why_not(value)) is not None:
            return (
                f"the cell reads {name}, {an(type(value).__name__)}, which cannot travel to another"
                f" process: {why}. Make {name} in the cell, or let it read plain data"
            )
    return None


def load(shell: Any) -> None:
    """Register the magic, and start the fork server so that the first cell need not wait."""
    shell.register_magics(RanksMagic)
    default_launcher().start()
