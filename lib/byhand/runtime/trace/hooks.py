"""Where the recorder listens, and what each call is in the ledger's words.

Kernels of the c10d operations stand at the dispatch key BackendSelect, below autograd and DTensor
and above the backends, so they see each call on plain tensors once; every other operation runs as
without them. What dispatch does not show is wrapped: the moment a rank stands still (wait of a
Work, or of its future), the reduction (an opaque object in the dispatch), and the set-up calls
init_process_group and new_group.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from byhand.runtime.ledger import Call
from byhand.runtime.trace import recorder, sizes
from byhand.runtime.trace.log import packed_call
from byhand.runtime.trace.readers import READERS
from byhand.words import counted, ranks_text

BELOW = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
_REDUCED = ("all_reduce", "reduce", "reduce_scatter")
_REDUCING = (*_REDUCED, "all_reduce_coalesced", "reduce_scatter_tensor", "reduce_scatter_single")
_PEERS = {"send": "sends to", "recv_": "receives from"}
_PLAIN = {int, bool, str, type(None)}
_BOXED = torch.ScriptObject
_NO_TIMEOUT = timedelta(0)  # as torch writes it
_known: WeakKeyDictionary[dist.ProcessGroup, Any] = WeakKeyDictionary()  # what _know says
_libraries: list[torch.library.Library] = []  # kernels live as long as their library


def install() -> None:
    """Listen, from now on and in every process forked from this one, to the active Recorder."""
    known = torch._C._dispatch_get_all_op_names()
    functional = [name.split("::") for name in known if name.startswith("_c10d_functional::")]
    _register("c10d", [name for name in READERS if f"c10d::{name}" in known], _communicating)
    _register("_c10d_functional", [name for _, name in functional], _functional)
    dist.Work.wait = _awaiting(dist.Work.wait)
    dist.Work.get_future = _recorded(dist.Work.get_future, "follow")
    torch._C.Future.wait = _recorded(torch._C.Future.wait, "wait_for_future")
    torch._C.Future.then = _recorded(torch._C.Future.then, "follow")
    for name in _REDUCING:
        _wrap(name, _reducing)
    _wrap("_new_group_with_tag", functools.partial(_setting_up, describe=_new_group))
    _wrap("init_process_group", functools.partial(_setting_up, describe=_init))


def _register(namespace: str, names: list[str], kernel: Callable[[Any], Any]) -> None:
    library = torch.library.Library(namespace, "IMPL")
    _libraries.append(library)
    for name in names:
        overload, _, variant = name.partition(".")
        op = getattr(getattr(getattr(torch.ops, namespace), overload), variant or "default")
        library.impl(name, kernel(op), "BackendSelect", with_keyset=True)


def _communicating(op: Any) -> Any:
    """The kernel of a c10d operation, whoever makes it."""
    name, make = op._opname, op._handle.redispatch_boxed
    names = [argument.name for argument in op._schema.arguments]
    group_at = names.index("process_group")
    async_at = names.index("async_op") if "async_op" in names else len(names)
    timeout_at = names.index("timeout") if name == "monitored_barrier_" else None

    def kernel(keyset: Any, *args: Any) -> Any:
        """Make the call through the recorder, if one is active; a misfit is said in words."""
        active, below = recorder.active, keyset & BELOW
        if active is None:
            return make(below, *args)
        group = dist.ProcessGroup.unbox(args[group_at])
        named, is_gloo = _known.get(group) or _know(group)
        told, num_ranks = tuple(map(_told, args)), len(named[1])
        form = _packed(name, told, named, active.thread.reduce_op, recorder.caller())
        blocks = async_at < len(args) and not args[async_at]
        blocks = blocks or timeout_at is not None
        limited = timeout_at is not None and _is_its_own(args[timeout_at] / 1000)
        how = {"limited": limited, "at_once": timeout_at is None and is_gloo}
        if name in sizes.AT_ONCE and (why := sizes.misfit(name, told, num_ranks)):
            raise RuntimeError(why)
        try:
            return active.communicate(name, form, blocks, make, below, *args, **how)
        except RuntimeError:
            if why := sizes.misfit(name, told, num_ranks) or _to_itself(name, told, group):
                raise RuntimeError(why) from None
            raise

    return kernel


def _know(group: dist.ProcessGroup) -> tuple[tuple[str, tuple[int, ...]], bool]:
    """A group's name and ranks, and whether all of its calls are gloo's own; kept in `_known`.

    They are not where torch's debug mode wraps them, and waits in them.
    """
    ranks = tuple(map(int, dist.get_process_group_ranks(group)))  # they may be numpy's
    kinds = {type(group._get_backend(device)) for device in group._device_types}
    _known[group] = (group.group_name, ranks), kinds == {dist.ProcessGroupGloo}
    return _known[group]


def _to_itself(name: str, told: tuple, group: dist.ProcessGroup) -> str | None:
    """Why gloo refuses a send or a receive whose peer is this rank; None if it is another."""
    if name not in _PEERS or told[2] != group.rank():
        return None
    return f"rank {dist.get_rank()} {_PEERS[name]} itself: what a rank has needs no message"


def _functional(op: Any) -> Any:
    """The kernel of a functional collective, which calls c10d's."""
    reduces = op._opname.startswith(("all_reduce", "reduce_scatter"))

    def kernel(keyset: Any, *args: Any) -> Any:
        """Go on to c10d's call, which is recorded with what it reduces by."""
        go_on = functools.partial(op.redispatch, keyset & BELOW, *args)
        if recorder.active is None:
            return go_on()
        if op._opname == "wait_tensor":
            return recorder.active.wait_for_tensor(args[0], go_on)
        return recorder.active.functional(args[1] if reduces else "", go_on)

    return kernel


def _wrap(name: str, wrapper: Callable[[Any], Any]) -> None:
    if original := getattr(c10d, name, None):
        wrapped = wrapper(original)  # one, which torch.compile knows by either name
        for module in (c10d, dist):
            if hasattr(module, name):
                setattr(module, name, wrapped)


def _recorded(original: Any, method: str) -> Any:
    """A method of torch's that the active Recorder's own of this name is told of, and makes."""

    @functools.wraps(original)
    def made(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.active is None:
            return original(self, *args, **kwargs)
        return getattr(recorder.active, method)(self, lambda: original(self, *args, **kwargs))

    return made


def _awaiting(original: Any) -> Any:
    """A work's wait, which the active Recorder is told of with whether it has its own time-out."""

    @functools.wraps(original)
    def wait(self: Any, timeout: Any = _NO_TIMEOUT) -> Any:
        """Wait through the recorder, if one is active."""
        if recorder.active is None:
            return original(self, timeout)
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        return recorder.active.wait(self, lambda: original(self, timeout), _is_its_own(seconds))

    return wait


def _is_its_own(seconds: Any) -> bool:
    """Whether a wait's time-out, as torch has it, is its own: it may catch that, and go on.

    The default only ends a hang, as a group's time-out does: gloo then closes the connection.
    """
    return isinstance(seconds, float) and 0 < seconds < c10d.default_pg_timeout.total_seconds()


def _reducing(original: Any) -> Any:
    position = list(inspect.signature(original).parameters).index("op")

    @functools.wraps(original)
    def reduce(*args: Any, **kwargs: Any) -> Any:
        """The same, while its thread knows by which operation it reduces."""
        if recorder.active is None:
            return original(*args, **kwargs)
        thread = recorder.active.thread
        given = len(args) > position
        thread.reduce_op = args[position] if given else kwargs.get("op", dist.ReduceOp.SUM)
        try:
            return original(*args, **kwargs)
        finally:
            thread.reduce_op = ""

    return reduce


def _setting_up(original: Any, describe: Callable[..., Call | None]) -> Any:
    @functools.wraps(original)
    def set_up(*args: Any, **kwargs: Any) -> Any:
        """The same, as one recorded call in which the rank stands still."""
        active = recorder.active
        args = tuple(list(a) if isinstance(a, Iterator) else a for a in args)  # ranks, read twice
        call = describe(*args, **kwargs) if active is not None else None
        if active is None or call is None:
            return original(*args, **kwargs)
        index = active.stand_still(call)
        out = original(*args, **kwargs)
        active.go_on(index)
        return out

    return set_up


def _new_group(
    ranks: Any = None,
    _timeout: Any = None,
    backend: Any = None,
    *_: Any,
    use_local_synchronization: bool = False,
    **__: Any,
) -> Call | None:
    if not dist.is_initialized():
        return None
    everyone = tuple(range(dist.get_world_size()))
    members = tuple(sorted(map(int, ranks))) if ranks is not None else everyone
    if len(set(members)) < len(members) or not set(members) <= set(everyone):
        return None  # torch refuses it
    callers, name, made, others = everyone, "new groups", str(c10d._world.group_count), None
    if use_local_synchronization:  # the members alone call, and wait for each other
        callers, name = members, f"group {list(members)}"
        made = c10d._hash_ranks_to_str(list(members))
        meets_now = "gloo" in str(backend or dist.get_backend_config()).lower()  # NCCL's do later
        others = len(c10d._world.pg_names) - 1 if meets_now else None  # but for the default one
    if dist.get_rank() not in callers:
        return None
    return Call(
        op="new_group",
        group=callers,
        group_name=name,
        detail=f"group {list(members)}",
        made=made,
        others=others,
    )


def _init(backend: Any = None, *args: Any, world_size: int = -1, rank: int = -1, **_: Any) -> Call:
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", -1))
    all_ranks = tuple(range(int(os.environ.get("BYHAND_WORLD_SIZE", size))))
    detail = f"a world of {counted(size, 'rank')}" + (f" on {backend}" if backend else "")
    call = Call(op="init_process_group", group=all_ranks, group_name="set-up", detail=detail)
    call.declared = size
    return call


def _told(value: Any) -> Any:
    """What a record tells of an argument: often asked, so by its type alone."""
    kind = type(value)
    if kind is list:
        return tuple(map(_told, value))
    if kind in _PLAIN:
        return value
    return None if kind is _BOXED else (value.shape, value.dtype)


@functools.lru_cache(1024)  # most programs make the same calls again and again
def _packed(opname: str, args: tuple, group: tuple, reduce_op: Any, where: tuple) -> bytes:
    """The fields of a call, all from what can be told of it; `reduce_op`: torch's, or its name.

    Equal calls give the same object: log.py writes it once.
    """
    (name, ranks), (file, line) = group, where
    fields = READERS[opname](args, len(ranks))
    for key in ("root", "peer"):
        if key in fields:
            if not 0 <= fields[key] < len(ranks):
                theirs = f"its group has {ranks_text(range(len(ranks)))}"
                rule = "No rank comes before the first or after the last."
                raise ValueError(f"{fields['op']} names rank {fields[key]}, but {theirs}. {rule}")
            fields[key] = ranks[fields[key]]
    if fields["op"] in _REDUCED:
        asked = str(getattr(reduce_op, "op", reduce_op))  # "sum", ReduceOp.SUM, or what holds it
        fields["reduce_op"] = asked.rpartition(".")[2].lower()
    return packed_call(Call(group=ranks, group_name=name, file=file, line=line, **fields))
