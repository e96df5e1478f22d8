"""A student's notebook, as the judge knows it: what its cells defined, by name.

The judge's kernel holds stand-ins for the student's functions. A launch that names some asks the
notebook's process (cells.py) to pickle them, and ranks load that; the judge never does.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import selectors
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from byhand.runtime.errors import TamperedError, describe_exit
from byhand.runtime.process.client import ForkClient, ForkedTeam
from byhand.runtime.process.member import MOST_WAITED, Deadline, send_calls
from byhand.runtime.process.whereabouts import go_there
from byhand.words import plain_text

CELL_SECONDS = 30.0  # of each cell that the exercise has
OWN_SECONDS = 120.0  # of all the cells together that students added
PACK_SECONDS = 60.0  # of all pickling
PATIENCE = 1.0  # for a cell that is interrupted
TICK = 0.1
SLOWEST = 1 + MOST_WAITED  # so many times as long may all take beside other programs
_EMPTY_LINES = re.compile(r"\A\s*\n")
_names: dict[str, Any] = {}
_OWN, _PACK = "own cells", "all pickling"  # purses; the others are labels, without a space
_SPEC = {"world_size": 1, "setup": False, "threads": 1}


def look_up(name: str) -> Any:
    """On a rank: the student's object of this name, which `unpack` has brought there."""
    return _names[name]


class NotebookError(Exception):
    """What a launch names is not in the student's notebook, or cannot leave it."""


class _DiedError(Exception):
    """The notebook's process ended, or had to be ended: why, as a sentence goes on."""


class StandIn:
    """A student's name in the judge's kernel: worth something only inside a driver.

    `named`: those that were pickled since somebody emptied it.
    """

    named: set[str] = set()

    def __init__(self, name: str):
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        self.named.add(self._name)
        return (look_up, (self._name,))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self._name} runs only on ranks: call it in a function given to launch or call"
        )

    def __repr__(self) -> str:
        return f"<{self._name}, the submission's>"


class Notebook:
    """Cells that run in one process, in order, each once.

    The exercise's cells always run, each for up to CELL_SECONDS. Those that the student added share
    OWN_SECONDS: what does not fit in is named in `notes`, by label, as is what fails, and costs
    nothing that does not need it. A cell that does not end is interrupted, as the stop button does.
    One that takes the process with it is left out, and the others run again in another. `start`
    makes a fork server behind walls of the notebook's own; from there come `reply_bytes` at most.
    `cells` holds the text of all cells.
    """

    def __init__(self, start: Callable[[], ForkClient], reply_bytes: int, patience: float = 1.0):
        self.notes: dict[str, str] = {}
        self.cells: dict[str, str] = {}
        self._start, self._reply_bytes = start, reply_bytes
        self._cell_seconds = CELL_SECONDS * patience
        self._left = {_OWN: OWN_SECONDS * patience, _PACK: PACK_SECONDS * patience}
        self._own: set[str] = set()
        self._ran: set[str] = set()  # in the process that is
        self._left_out: set[str] = set()
        self._team: ForkedTeam | None = None

    def run(self, cells: Sequence[tuple[str, str]], own: Collection[str] = ()) -> None:
        """Run those of these (label, source) cells that did not yet; `own`: the student's labels.

        Raises:
            LaunchError: no process can be made for them.
        """
        for label, source in cells:  # IPython counts lines from the first that is not empty
            self.cells.setdefault(label, _EMPTY_LINES.sub("", source))
        self._own.update(own)
        self._catch_up()

    def packed(self, names: Sequence[str]) -> bytes:
        """What brings the objects of these names to a rank.

        Raises:
            NotebookError: one is not there, or cannot travel; the message says why.
            LaunchError: no process can be made for the notebook.
        """
        all_of_it = f"the {PACK_SECONDS:.0f} s of all launches together"
        why = f"{', '.join(names)}: to pickle took {all_of_it}"
        for _ in range(2 if self._left[_PACK] > 0 else 0):
            self._catch_up()
            try:
                (header, body), _ = self._ask("pack", list(names), _PACK)
            except _DiedError as error:
                why = f"{', '.join(names)} did not leave the notebook: {error}"
                continue
            if header["kind"] == "packed":
                return body
            message = plain_text(header.get("message"), 2000)
            notes = "; ".join(f"cell {label}: {note}" for label, note in self.notes.items())
            raise NotebookError(f"{message} ({notes})" if notes else message)
        raise NotebookError(why)

    def close(self) -> None:
        """End the process, and all that it started."""
        team, self._team, self._ran = self._team, None, set()
        if team is not None:
            team.end()
            team.client.close()

    def _catch_up(self) -> None:
        """Run what did not yet run in this process."""
        while todo := [n for n in self.cells if n not in self._ran and n not in self._left_out]:
            label = todo[0]
            purse = _OWN if label in self._own else label
            if self._left.setdefault(purse, self._cell_seconds) <= 0:
                late = [name for name in todo if name in self._own] if purse == _OWN else [label]
                self.notes[", ".join(late)] = f"not run: {_time_of(purse)} was used up"
                self._left_out.update(late)
                continue
            try:
                reply, stopped = self._ask("run", [label, self.cells[label]], purse)
                note = reply[0].get("note")
                if stopped:
                    note = f"it did not come to an end within {_time_of(purse)}, and was stopped"
                self._ran.add(label)
            except _DiedError as error:
                note = f"{error}; it was left out"
                self._left_out.add(label)
            if note is not None:
                self.notes[label] = plain_text(note, 1000)

    def _ask(self, do: str, what: list[Any], purse: str) -> tuple[tuple[dict, bytes], bool]:
        """One answer of the process, and whether it was interrupted first.

        `purse`: whose seconds it takes; when they are over, it is interrupted.

        Raises:
            _DiedError: none comes.
        """
        if self._team is None:
            self._team = self._start().fork_team(_SPEC)
        team, [member] = self._team, self._team.members
        already = team.waited() if self._ran else 0.0
        deadline = Deadline(self._left[purse], lambda: team.waited() - already)
        send_calls([member], {"do": do}, [json.dumps(what).encode()])
        try:
            if stopped := not self._answered(team, deadline):
                team.interrupt()
                if not self._answered(team, Deadline(PATIENCE, deadline.waited)):
                    raise _DiedError("it did not come to an end, and could not be stopped")
            if deadline.spent > TICK:
                deadline.ask()
        except (_DiedError, TamperedError) as error:
            self.close()
            raise _DiedError(str(error)) from None
        finally:
            self._left[purse] -= deadline.spent
        return member.take_answer(), stopped

    def _answered(self, team: ForkedTeam, deadline: Deadline) -> bool:
        """Wait for a whole reply until the deadline is over."""
        [member] = team.members
        with selectors.DefaultSelector() as selector:
            selector.register(team.news, selectors.EVENT_READ)
            selector.register(member.control, selectors.EVENT_READ, member)
            while member.header is None:
                for code in team.exits().values():
                    how = f"with code {code}" if code >= 0 else describe_exit(code)
                    raise _DiedError(f"it ended the whole program: {how}")
                if deadline.is_over():
                    return False
                for key, _ in selector.select(min(TICK, deadline.left)):
                    if key.data and not member.receive():
                        selector.unregister(member.control)  # it ended: how, is told soon
        if member.result_bytes > self._reply_bytes:
            raise TamperedError(f"it said more than {self._reply_bytes:,} bytes")
        return True


def _time_of(purse: str) -> str:
    if purse == _OWN:
        return f"the {OWN_SECONDS:.0f} s that the cells you added have together"
    return f"the {CELL_SECONDS:.0f} s that a cell of the exercise has"


def unpack(data: bytes) -> None:
    """On a rank: be where the notebook is, with its files, and know the names in `data`."""
    files, there, found = pickle.loads(data)
    for name, text in files.items():
        path = Path(name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{os.getpid()}")  # so that no rank finds half of it
            draft.write_bytes(text)
            draft.rename(path)
    go_there(there)
    _names.update(pickle.loads(found))
