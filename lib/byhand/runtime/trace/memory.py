"""How many bytes of storage a rank's live tensors hold: followed where a launch asks for it.

A TorchDispatchMode sees every new tensor, at several times a small operation's cost. A mode is a
thread's own, so threads that the rank starts enter it too. Counted are tensors among the function's
arguments and what operations return. One that the function knows by its name alone, or that lies
inside an object, counts once an operation returns it or a view of it: to look at what each
operation is given would cost a small one a third more.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

_BY_ROW = "crow_indices", "col_indices", "values"
_BY_COLUMN = "ccol_indices", "row_indices", "values"
_PARTS = {  # what a sparse tensor is made of, by layout
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: _BY_ROW,
    torch.sparse_bsr: _BY_ROW,
    torch.sparse_csc: _BY_COLUMN,
    torch.sparse_bsc: _BY_COLUMN,
}


class _Held(weakref.ref):
    """A weak reference to a storage that knows which storage, and how many bytes, it was."""

    __slots__ = ("key", "num_bytes")
    key: int
    num_bytes: int


class HeldBytes(TorchDispatchMode):
    """While entered, counts what live tensors hold; `peak_bytes` is the most."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False, or torch loads its compiler, which takes as long as torch itself, to leave
        `__torch_dispatch__` out of what it compiles, and goes through it at each operation."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self.peak_bytes = 0
        self._held_bytes = 0
        self._held: dict[int, _Held] = {}
        self._lock = threading.RLock()  # a tensor may be freed while another is counted
        self._originals = (torch.UntypedStorage.resize_, threading.Thread.start)

    def __enter__(self) -> HeldBytes:
        resize, start = self._originals

        def resize_(storage: Any, num_bytes: int) -> Any:
            out = resize(storage, num_bytes)
            self._hold(storage)
            return out

        def start_(thread: threading.Thread) -> None:
            run = thread.run
            thread.run = lambda: self._beside(run)
            start(thread)

        exchanged: tuple[Any, Any] = (resize_, start_)
        torch.UntypedStorage.resize_, threading.Thread.start = exchanged
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        torch.UntypedStorage.resize_, threading.Thread.start = self._originals

    @property
    def held_bytes(self) -> int:
        """What live tensors hold now."""
        return self._held_bytes

    def _beside(self, run: Any) -> None:
        super().__enter__()
        try:
            run()
        finally:
            super().__exit__(None, None, None)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(hasattr(kind, "__tensor_flatten__") for kind in types):
            return NotImplemented  # a DTensor, say: it makes its calls on plain tensors
        out = func(*args, **(kwargs or {}))
        self.track(out)
        return out

    def track(self, value: Any) -> None:
        """Count the storages of the tensors in `value` until they are freed."""
        if isinstance(value, (list, tuple)):
            for item in value:
                self.track(item)
        elif isinstance(value, dict):
            self.track(list(value.values()))
        elif hasattr(value, "__tensor_flatten__"):
            self.track([getattr(value, name) for name in value.__tensor_flatten__()[0]])
        elif type(value) in (torch.Tensor, torch.nn.Parameter):
            if value.layout is torch.strided:
                self._hold(value.untyped_storage())
            else:
                self.track([getattr(value, name)() for name in _PARTS.get(value.layout, ())])

    def _hold(self, storage: torch.UntypedStorage) -> None:
        key, num_bytes = storage._cdata, storage.nbytes()
        with self._lock:
            held = self._held.get(key)
            if held is None:
                held = self._held[key] = _Held(storage, self._free)
                held.key, held.num_bytes = key, 0
            self._held_bytes += num_bytes - held.num_bytes
            held.num_bytes = num_bytes
            self.peak_bytes = max(self.peak_bytes, self._held_bytes)

    def _free(self, held: _Held) -> None:
        with self._lock:
            if self._held.get(held.key) is held:
                del self._held[held.key]
                self._held_bytes -= held.num_bytes


def held_bytes() -> int:
    """On a rank of launch(..., memory=True): the bytes that its live tensors hold now.

    Raises:
        RuntimeError: memory is not followed here.

    >>> def hold(rank, world_size):
    ...     x = torch.zeros(1000)
    ...     return held_bytes()
    >>> launch(hold, 1, memory=True).results
    [4000]
    """
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, HeldBytes):
            return mode.held_bytes
    raise RuntimeError("nobody follows memory here: ask for it by launch(..., memory=True)")
