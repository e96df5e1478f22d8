"""Do the ranks' calls fit together? Pure: calls in, a sentence out.

Collective number i of a group must be the same on all its members: same operation, shape, dtype,
reduction, root. Send number i from a to b (with one tag) meets receive number i. A call whose
partners have all made theirs is `matched`: it can complete. Ranks that all wait in unmatched
calls wait for ever, whatever the network does, so a deadlock is a fact and not a time-out.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Collection
from weakref import WeakKeyDictionary

from byhand.runtime.ledger import Event
from byhand.words import counted, group_text, ranks_text

_DEFAULT = "0"  # torch's name for the default group
_Key = tuple[str, int | None, int | None, int]


class Matcher:
    """Fits calls together as they arrive; `problem` is the sentence for the first that do not."""

    def __init__(self) -> None:
        self._clash: Callable[[], str | None] | None = None
        self.culprits: dict[int, Event] = {}  # by rank, the calls that clash
        self._made: dict[tuple[int, str], int] = defaultdict(int)
        # by members: torch's names of the groups that new_group has made of them, in order
        self._groups: dict[str, dict[str, None]] = defaultdict(dict)
        self._everyone: tuple[int, ...] | None = None
        self._rounds: dict[tuple[str, int], dict[int, Event]] = {}
        # sends and receives without a partner, by: which it is, sender (-1: any), receiver, tag
        self._alone: dict[_Key, deque[Event]] = {}
        self._sent: WeakKeyDictionary[Event, Event] = WeakKeyDictionary()  # by receive that met it

    def add(self, call: Event) -> None:
        """Take in a rank's next call."""
        if call.op in ("send", "recv"):
            self._add_message(call)
        else:
            self._add_collective(call)

    @property
    def problem(self) -> str | None:
        """Why the first calls that clash do, with all that have arrived meanwhile."""
        return None if self._clash is None else self._clash()

    def _add_collective(self, call: Event) -> None:
        number = self._made[call.rank, call.group_name]
        self._made[call.rank, call.group_name] += 1
        if call.op == "new_group":
            self._groups[call.detail][call.made] = None
        if call.group_name in (_DEFAULT, "new groups"):
            self._everyone = call.group
        calls = self._rounds.setdefault((call.group_name, number), {})
        calls[call.rank] = call
        first = next(iter(calls.values()))
        suspicious = call.declared not in (None, len(call.group))
        suspicious = suspicious or _unfit_splits(call, calls) is not None
        suspicious = suspicious or (call is not first and _must_agree(call) != _must_agree(first))
        if self._clash is None and suspicious and disagreement(calls, ""):
            self._clash = lambda: disagreement(calls, self.where(call, number + 1))
            self.culprits = calls
        if len(calls) == len(call.group):
            _matched(calls.values())
            del self._rounds[call.group_name, number]

    def _add_message(self, call: Event) -> None:
        if call.op == "send":
            ends = call.rank, call.peer
            partners = [("recv", *ends, call.tag), ("recv", -1, call.peer, call.tag)]
        elif call.peer is not None:
            ends = call.peer, call.rank
            partners = [("send", *ends, call.tag)]
        else:
            ends = -1, call.rank
            partners = [("send", sender, call.rank, call.tag) for sender in call.group]
        partner = next((self._take(key) for key in partners if key in self._alone), None)
        if partner is None:
            self._alone.setdefault((call.op, *ends, call.tag), deque()).append(call)
        else:
            self._meet(*((call, partner) if call.op == "send" else (partner, call)))

    def _take(self, key: _Key) -> Event:
        """The first of those that have no partner, which has one now."""
        queue = self._alone[key]
        call = queue.popleft()
        if not queue:
            del self._alone[key]
        return call

    def _meet(self, send: Event, receive: Event) -> None:
        _matched((send, receive))
        self._sent[receive] = send
        if self._clash is None and message_disagreement(send, receive):
            self._clash = lambda: message_disagreement(send, receive)
            self.culprits = {send.rank: send, receive.rank: receive}

    def missing(self, call: Event) -> set[int]:
        """The ranks that an unmatched `call` waits for."""
        if call.matched:
            return set()
        if call.op in ("send", "recv"):
            return {call.peer} if call.peer is not None else set(call.group) - {call.rank}
        for (name, _), calls in self._rounds.items():
            if name == call.group_name and calls.get(call.rank) is call:
                return set(call.group) - set(calls)
        return set()

    def where(self, call: Event, number: int) -> str:
        """A collective in words: its number in its group, from 1, and the group."""
        return f"call {number} on {self.group_text(call)}"

    def group_text(self, call: Event) -> str:
        """A collective's group in words."""
        number = self.group_number(call)
        return f"{'' if number is None else 'the '}{group_text(call.group, number)}"

    def group_number(self, call: Event) -> int | None:
        """Where there are several groups of the same ranks: which this one is, as in Report."""
        made = self._groups.get(group_text(call.group), {})
        numbers = {name: number for number, name in enumerate(made, 1)}
        if call.group == self._everyone:
            numbers[_DEFAULT] = 0
        return numbers.get(call.group_name) if len(numbers) > 1 else None

    def unawaited(self, receive: Event) -> Event | None:
        """The send that a receive has met, if its rank never waited for it."""
        send = self._sent.get(receive)
        return send if send is not None and send.wait_start is None else None

    def other_tags(self, receive: Event) -> set[int]:
        """Tags with which its sender has sent, and nobody has received: `receive` names another."""
        kind = "send", receive.peer, receive.rank
        return {tag for (*some, tag) in self._alone if (*some,) == kind}

    def unreceived(self, rank: int) -> set[int]:
        """The ranks to which this one has sent what nobody has received."""
        sent = (key[2] for key in self._alone if key[:2] == ("send", rank))
        return {receiver for receiver in sent if receiver is not None}

    def number(self, call: Event) -> int:
        """The how-manieth collective of its group an unmatched `call` is, from 1."""
        for (_, number), calls in self._rounds.items():
            if calls.get(call.rank) is call:
                return number + 1
        return 0

    def calls_made(self, rank: int, call: Event) -> int:
        """How many collectives `rank` has made on the group of `call`."""
        return self._made[rank, call.group_name]


def _matched(calls: Collection[Event]) -> None:
    last = max(calls, key=lambda call: call.start)
    for call in calls:
        call.matched, call.ready, call.awaited = True, last.start, last.rank


def _after_others(call: Event) -> str:
    """What torch's name for a group depends on, by which the members that create it alone meet."""
    return "" if call.others is None else f"{call.detail} after {counted(call.others, 'other')}"


_EQUALLY_MANY = (
    "Either all ranks create the group, without use_local_synchronization, or its members must be"
    " in equally many others by then, because torch names it by their number."
)
_ASPECTS: tuple[tuple[str, str, Callable[[Event], object], str], ...] = (
    ("", "call", lambda c: c.op, "All ranks of a group must make the same calls, in one order."),
    ("", "create", lambda c: c.detail, "All ranks must create all groups, in the same order."),
    ("", "create", _after_others, _EQUALLY_MANY),
    ("shape ", "pass", lambda c: list(c.shape), "The shape must be the same on all."),
    ("dtype ", "pass", lambda c: c.dtype, "The dtype must be the same on all ranks."),
    ("root ", "name", lambda c: c.root, "All ranks must name the same root."),
    ("", "reduce with", lambda c: c.reduce_op, "All ranks must reduce with the same operation."),
)


def _must_agree(call: Event) -> list[object]:
    """What must be equal on all ranks of a collective."""
    return [aspect(call) for _, _, aspect, _ in _ASPECTS]


def disagreement(calls: dict[int, Event], where: str) -> str | None:
    """Why these calls, which should be one collective, are not. `where`: which, in words."""
    some = next(iter(calls.values()))
    for noun, verb, aspect, rule in _ASPECTS:
        values = defaultdict(list)
        for rank, call in calls.items():
            values[str(aspect(call))].append(rank)
        if len(values) > 1:
            if some.op == "init_process_group":
                verb, rule = "set up", "All ranks must name the same world size and backend."
            if verb == "create" and some.op == "barrier":
                verb, rule = "make", "All ranks must make the same kind of barrier."
            sides = sorted(values.items(), key=lambda side: len(side[1]))
            (odd, few), (usual, many) = sides[0], sides[-1]
            prepositions = {"pass": "to", "name": "in", "reduce with": "in"}
            call_name = f" {prepositions[verb]} {some.op}" if verb in prepositions else ""
            return (
                f"{ranks_text(few)} {_verb(verb, few)} {noun}{odd}{call_name} where "
                f"{ranks_text(many)} {_verb(verb, many)} {noun}{usual} ({where}). "
                f"{_left_out(calls, few, many)}{rule}"
            )
    if some.declared not in (None, len(some.group)):
        return (
            f"{ranks_text(set(calls))} {_verb('set up', list(calls))} {some.detail}, but "
            f"{len(some.group)} were launched. Use the world_size that the function is given."
        )
    return _split_disagreement(calls, where)


def _left_out(calls: dict[int, Event], few: list[int], many: list[int]) -> str:
    """What is likely where the calls that clash were made at different lines; else nothing."""
    theirs, usual = ({calls[rank].source for rank in ranks} for ranks in (few, many))
    if theirs & usual or "" in theirs | usual:
        return ""
    odd, others = (
        f"{ranks_text(ranks)} {_verb('stand', ranks)} at {' and '.join(sorted(lines))}"
        for ranks, lines in ((few, theirs), (many, usual))
    )
    return f"{odd}, {others}: maybe {ranks_text(few)} left out a call. "


def _verb(verb: str, ranks: list[int]) -> str:
    if len(ranks) > 1:
        return verb
    head, _, tail = verb.partition(" ")
    return f"{head}{'es' if head.endswith('ss') else 's'}{' ' + tail if tail else ''}"


def _split_disagreement(calls: dict[int, Event], where: str) -> str | None:
    for call in calls.values():
        if unfit := _unfit_splits(call, calls):
            sender, receiver, sent, expected = unfit
            return (
                f"in all_to_all, rank {sender} sends {counted(sent, 'element')} to rank "
                f"{receiver}, which expects {expected} ({where}). What one rank's input splits "
                "send, the other's output splits must expect; a row counts all of its elements."
            )
    return None


def _unfit_splits(call: Event, calls: dict[int, Event]) -> tuple[int, int, int, int] | None:
    """Sender, receiver, what is sent and what expected, where `call` and another do not fit."""
    if not call.sends and not call.receives:
        return None
    at = {rank: position for position, rank in enumerate(call.group)}
    for other in calls.values():
        for a, b in ((call, other), (other, call)):
            if a.group != b.group or not len(a.sends) == len(b.receives) == len(at):
                continue  # torch refuses what is not one number for each rank
            sent, expected = a.sends[at[b.rank]], b.receives[at[a.rank]]
            if sent != expected:
                return a.rank, b.rank, sent, expected
    return None


def message_disagreement(send: Event, receive: Event) -> str | None:
    """Why a send and the receive it meets do not fit, if they do not."""
    sent, wanted = list(send.shape), list(receive.shape)
    same_count = math.prod(sent) == math.prod(wanted)
    squeezed = [[n for n in shape if n != 1] for shape in (sent, wanted)]
    other_shape = squeezed[0] != squeezed[1] and all(len(shape) > 1 for shape in squeezed)
    if send.dtype == receive.dtype and same_count and not other_shape:
        return None
    return (
        f"rank {send.rank} sends {sent} {send.dtype} to rank {receive.rank}, which receives "
        f"into {wanted} {receive.dtype}. The receiver's tensor must have the sender's shape "
        "and dtype."
    )
