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
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from byhand.runtime import default_launcher, launch
from byhand.runtime.run import blocks_html, blocks_text
from byhand.runtime.trace import sources

_GIVEN = ("rank", "world_size", "dist", "torch")


def run_cell(rank: int, world_size: int, source: str, names: dict[str, Any], filename: str) -> Any:
    """On a rank: execute a cell's source in a fresh namespace; the value of its last expression."""
    import torch
    import torch.distributed as dist

    given = {"rank": rank, "world_size": world_size, "dist": dist, "torch": torch}
    namespace = {"__name__": "__main__", **names, **given}
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
    read: set[str] = set()
    assigned = set(_GIVEN)
    for statement in ast.parse(source).body:
        nodes = list(ast.walk(statement))
        changed = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        read |= {n.id for n in names if n in changed or not isinstance(n.ctx, ast.Store)} - assigned
        assigned |= _assigned(statement)
    own = {name: namespace[name] for name in read if name in namespace}
    theirs = {name: value for name, value in hidden.items() if hasattr(builtins, name)}
    return {name: value for name, value in own.items() if theirs.get(name, namespace) is not value}


def _assigned(statement: ast.stmt) -> set[str]:
    """The names that have another value after a statement of a cell, whatever happens in it."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if not isinstance(statement, ast.Assign):
        return set()
    nodes = [node for target in statement.targets for node in ast.walk(target)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


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
        names = names_used(cell, shell.user_ns, shell.user_ns_hidden)
        run = launch(
            run_cell,
            options.world_size,
            (cell, names, f"<{label}>"),
            backend=options.backend,
            deadline=options.deadline,
        )
        if options.to:
            shell.user_ns[options.to] = run
        shown = {"text/plain": blocks_text(run), "text/html": blocks_html(run)}
        display(shown, raw=True)


def load(shell: Any) -> None:
    """Register the magic, and start the fork server so that the first cell need not wait."""
    shell.register_magics(RanksMagic)
    default_launcher().start()
