"""A student's notebook as it was at one test, for the launches of that test.

It is taken before any test begins, and then the notebook's process ends: whatever a rank does,
there is nobody of the student's outside its own question who could see it.
"""

from __future__ import annotations

from collections.abc import Sequence

from byhand.runtime.walls.notebook import Notebook, NotebookError


class Snapshot:
    """What a notebook's names are now, pickled together, as one launch would name them.

    A name that cannot travel costs the launches that name it, and no others. Names that can travel
    alone and not together cost those of this one test.
    """

    def __init__(self, notebook: Notebook, names: Sequence[str]):
        """Keep these names.

        Raises:
            LaunchError: no process can be made for the notebook.
        """
        self.cells = dict(notebook.cells)
        self._why: dict[str, str] = {}  # by the name that cannot travel
        self._kept = frozenset(names)
        self._data = b""
        try:
            self._data = notebook.packed(names) if names else b""
        except NotebookError:
            for name in names:
                try:
                    notebook.packed([name])
                except NotebookError as error:
                    self._why[name] = str(error)
            rest = [name for name in names if name not in self._why]
            try:
                self._data = notebook.packed(rest) if rest else b""
            except NotebookError as error:  # each could alone: together they are too large
                self._why |= dict.fromkeys(rest, str(error))

    def packed(self, names: Sequence[str]) -> bytes:
        """What brings the objects of these names to a rank.

        Raises:
            NotebookError: one was not there, or could not travel; the message says why.
        """
        for name in names:
            if name not in self._kept:
                raise NotebookError(f"the test does not name {name}, and so it was not kept for it")
            if name in self._why:
                raise NotebookError(self._why[name])
        return self._data
