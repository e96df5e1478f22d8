"""A kernel that papermill drives: for the judge's notebooks, and for those of `autograder run`."""

import contextlib
import fcntl
import logging
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import papermill
import zmq
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines

from autograder.places import CourseError
from autograder.release.rules import KERNELSPEC

ENGINE = "autograder"


@contextlib.contextmanager
def kernel_folder() -> Iterator[Path]:
    """A new folder for one kernel, below one that only this user can look into.

    It holds hidden tests for a while. What processes that were killed left there goes first.

    Raises:
        CourseError: the place for it is somebody else's.
    """
    place = _private(Path(tempfile.gettempdir(), f"autograder-{os.getuid()}"))
    with contextlib.ExitStack() as held:
        with _locked(place):
            for left in place.iterdir():
                # It has an owner, or its owner took it away a moment ago.
                with contextlib.suppress(OSError), _locked(left, wait=False):
                    shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(dir=place))
            held.callback(shutil.rmtree, folder, ignore_errors=True)
            held.enter_context(_locked(folder))
        yield folder


def _private(place: Path) -> Path:
    """This folder, made if it is not there, if it is this user's alone.

    Raises:
        CourseError: it is not.
    """
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o170077 != 0o040000:
        raise CourseError(
            f"{place} is no folder that only you can look into, and hidden tests would lie in it:"
            " remove it, or set TMPDIR to a folder of your own"
        )
    return place


@contextlib.contextmanager
def _locked(path: Path, wait: bool = True) -> Iterator[None]:
    """A folder that nobody else locks meanwhile; the lock ends with this process.

    Raises:
        BlockingIOError: somebody has it, and this was not to wait.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


class Kernel(contextlib.AbstractContextManager):
    """One kernel for one notebook after the other, or, if it is closed between, one for each.

    It talks through files in `folder`: side by side, two kernels may choose one TCP port.
    """

    def __init__(self, folder: Path | str):
        """Nothing starts yet.

        Raises:
            CourseError: the folder's path is too long for sockets in it.
        """
        self.folder = Path(folder)
        self._sockets = f"{self.folder}/kernel"  # and -1 to -5 behind it
        length = len(os.fsencode(f"{self._sockets}-5"))
        if length > zmq.IPC_PATH_MAX_LEN:
            raise CourseError(
                f"{self._sockets}-5 has {length} characters, and the path of a kernel's socket at"
                f" most {zmq.IPC_PATH_MAX_LEN}: set TMPDIR to a folder whose path is shorter by"
                f" {length - zmq.IPC_PATH_MAX_LEN} or more"
            )
        self._manager: AsyncKernelManager | None = None
        self._is_killed = False

    def execute(
        self,
        notebook: NotebookNode | str,
        output: Path | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        cwd: Path | str,
        log: Path,
        seconds: float,
        environment: Mapping[str, str] | None = None,
    ) -> NotebookNode:
        """The notebook, executed in `cwd`, with `seconds` for each cell.

        `log` gets what papermill and the kernel write, and every output. Raises what papermill
        raises, and DeadKernelError after `kill`.
        """
        return papermill.execute_notebook(
            notebook,
            output,
            dict(parameters or {}),
            engine_name=ENGINE,
            language="python",
            kernel_name=KERNELSPEC["name"],  # whatever a notebook names, or leaves out
            progress_bar=False,
            kernel=self,
            folder=str(cwd),
            log_file=log,
            seconds=seconds,
            environment={**os.environ, **(environment or {})},
        )

    def run(
        self, nb_man: Any, folder: str, log_file: Path, seconds: float, environment: dict[str, str]
    ) -> NotebookNode:
        """What papermill's engine does with a notebook that it manages."""
        if self._manager is None:
            self._manager = AsyncKernelManager(
                kernel_name=KERNELSPEC["name"],
                transport="ipc",
                ip=self._sockets,
                connection_file=f"{self.folder}/connection.json",
            )
        with open(log_file, "a", encoding="utf-8", errors="replace") as file:
            log = logging.Logger(ENGINE, logging.INFO)
            log.addHandler(logging.StreamHandler(file))
            client = PapermillNotebookClient(
                nb_man,
                km=self._manager,
                timeout=math.ceil(seconds),  # nbclient takes whole ones alone
                log=log,
                log_output=True,
                coalesce_streams=True,  # a table printed slowly is one table on its page
            )
            try:
                if self._is_killed:
                    raise DeadKernelError("Kernel died")
                return client.execute(cwd=folder, env=environment, stdout=file, stderr=file)
            finally:
                if client.kc is not None:
                    client.kc.stop_channels()

    def close(self) -> None:
        """End the kernel, and everything in it. The next notebook gets another one."""
        manager, self._manager = self._manager, None
        if manager is None or not manager.has_kernel:
            return
        process = manager.provisioner.process  # type: ignore[union-attr] # a local kernel's
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # nobody awaits its cell any more
        try:
            run_sync(manager.shutdown_kernel)(now=False)
        except Exception:  # no event loop any more: this process is ending
            process.kill()
            process.wait()

    def kill(self) -> None:
        """From any thread: end what runs, and run nothing more."""
        self._is_killed = True
        if (manager := self._manager) and manager.has_kernel:
            manager.provisioner.process.kill()  # type: ignore[union-attr] # a local kernel's

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Engine(NBClientEngine):
    """papermill's own engine, on a kernel of ours."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, kernel: "Kernel", **options: Any
    ) -> Any:
        options = {name: options[name] for name in ("folder", "log_file", "seconds", "environment")}
        return kernel.run(nb_man, **options)


papermill_engines.register(ENGINE, _Engine)
logging.getLogger("papermill").addHandler(logging.NullHandler())  # what it says of us is known
