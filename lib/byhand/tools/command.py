"""Run a program on several ranks, as torchrun does, and see what they say to each other.

    python -m byhand -n 4 train.py --its own --arguments
    python -m byhand -n 4 -m package.module --its own

The program is not changed. Each rank has what torchrun gives it (RANK, WORLD_SIZE, LOCAL_RANK,
MASTER_ADDR, ...); what it prints comes at once, behind its number. A hang ends in a sentence that
names rank, call and line, a rank that raises in its traceback and where the others waited; its exit
functions then have 5 s. Ctrl-C and SIGTERM reach every rank, which then has 5 s to save what it
will; a second one ends all at once. At the end: which calls there were, what they sent, and who
waited for whom. Rank 0 reads the command's standard input; the others have none.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from byhand.words import counted, num_bytes_text

if TYPE_CHECKING:
    from byhand.runtime import LaunchError, Run, VirtualNetwork
    from byhand.tools.summary import Tally

USAGE = """python -m byhand -n RANKS [options] script.py [arguments of its own]
       python -m byhand -n RANKS [options] -m package.module [arguments of its own]"""
EXIT = "exit status: that of the first rank that failed; 0 if none did; 2 if nothing was started"
DRAWN_CALLS = 120  # of a rank, the last ones: more are no picture
BAD, STOPPED, UNREAD = 2, 130, 128 + signal.SIGPIPE
# Not Mb/s, which may be bits or bytes.
_RATE = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE]\d+)?) *([kKmMgG]?)(B|[Bb]it)/s")
_CUDA = re.compile(r": .*(CUDA|NVIDIA)", re.DOTALL)  # in the message, as torch spells them
_TORCHRUNS = re.compile(
    "--(nproc|nnodes|node|rdzv|master|standalone|max|monitor|start|role|local|tee|log|redirect|no.py)"
)


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line says; the exit status."""
    _open_all()
    parser = _parser()
    words = sys.argv[1:] if words is None else words
    try:
        if (unknown := _torchruns(words)) is not None:
            instead = "it is -n 4 for" if "nproc" in unknown else "only -n 4 is needed, for"
            parser.error(f"{unknown} is torchrun's. Here {instead} four ranks on this machine")
        asked = parser.parse_args(words)
        return _run(asked, _understood(asked))
    except ValueError as error:  # also what launch refuses
        parser.error(str(error))
    except BrokenPipeError:  # of our own messages; Python is not to try again
        nobody = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nobody, stream)
        return UNREAD
    except KeyboardInterrupt:  # before the ranks ran, or when they had ended
        print("\nbyhand: stopped", file=sys.stderr)
        return STOPPED


def _open_all() -> None:
    """Put something where the shell closed our input or output: else a file of ours lies there."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _torchruns(words: Sequence[str]) -> str | None:
    """The first option before the program that is spelled as torchrun spells its own."""
    before = itertools.takewhile(lambda word: not _is_program(word), words)
    return next((word.partition("=")[0] for word in before if _TORCHRUNS.match(word)), None)


def _is_program(word: str) -> bool:
    """Whether what follows this word is the program's own, should there be a program."""
    return word == "-m" or word.endswith(".py") or os.path.exists(word)


class _Parser(argparse.ArgumentParser):
    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """As argparse does, once what was printed has been read: a reader that is gone is told."""
        print(end="", flush=True)
        super().exit(status, message)

    def error(self, message: str) -> NoReturn:
        """One sentence, and no usage."""
        self.exit(BAD, f"byhand: {message} (python -m byhand --help)\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Say it; it is looked up only then."""
        import byhand

        print(f"byhand {byhand.__version__}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "python -m byhand", usage=USAGE, description=__doc__, epilog=EXIT, allow_abbrev=False
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("-n", "--ranks", type=_count, required=True, help="how many processes run the program")
    add("-m", dest="is_module", action="store_true", help="the program is a module's name")
    add("--hosts", type=_count, metavar="H", help="the ranks live on H hosts with slow links")
    add("--rate", type=_rate, help="of each host's link and direction: 25MB/s if not said")
    add("--backend", choices=["gloo"], help="stands in where the program asks for NCCL")
    add("--memory", action="store_true", help="follow what each rank's tensors hold: slower")
    add(
        "--trace",
        type=Path,
        metavar="JSON",
        help="write the calls (of many, the last 50,000) for ui.perfetto.dev",
    )
    add(
        "--timeline",
        type=Path,
        metavar="SVG",
        help="draw when each rank computed, waited and sent, at the end",
    )
    add(
        "--deadline",
        type=_seconds,
        default=math.inf,
        metavar="S",
        help="seconds until it is ended: none if not said",
    )
    add("--quiet", action="store_true", help="no summary at the end")
    add("--version", action=_Version, nargs=0, help="say which version this is")
    add("program", help=argparse.SUPPRESS)
    add("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"a positive number of seconds, not {text!r}")
    return seconds


def _rate(text: str) -> float:
    """Bytes a second.

    >>> _rate("25MB/s"), _rate("1 Gbit/s")
    (25000000.0, 125000000.0)
    """
    if (found := _RATE.fullmatch(text.strip())) is None:
        raise argparse.ArgumentTypeError(f"a rate is such as 25MB/s or 1Gbit/s, not {text!r}")
    number, scale, unit = found.groups()
    power = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}[scale.lower()]
    return float(number) * power / (1 if unit == "B" else 8)


def _understood(asked: argparse.Namespace) -> VirtualNetwork | None:
    """The network that is asked for, if all that is asked makes sense.

    Raises:
        ValueError: it does not; the sentence says why.
    """
    if not asked.is_module and not os.path.isfile(asked.program):
        is_folder = os.path.isdir(asked.program)
        raise ValueError(
            f"{asked.program} is a folder: name a program in it"
            if is_folder
            else f"there is no file {asked.program}"
        )
    if not asked.is_module and asked.program.endswith(".ipynb"):
        raise ValueError(
            f"{asked.program} is a notebook: open it in JupyterLab, or give it to autograder run"
        )
    if asked.is_module and not _is_there(asked.program.partition(".")[0]):
        raise ValueError(f"there is no module {asked.program}")
    for path, name in ((asked.trace, "run.json"), (asked.timeline, "run.svg")):
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"there is no folder {path.parent}")
        if path is not None and path.is_dir():
            raise ValueError(f"{path} is a folder: name a file to write, such as {path / name}")
    if asked.timeline is not None and asked.timeline.suffix != ".svg":
        raise ValueError(f"--timeline writes an SVG: call it run.svg, not {asked.timeline}")
    if asked.rate is not None and asked.hosts is None:
        raise ValueError("--rate is of the links between --hosts: say how many hosts there are")
    if asked.hosts is None:
        return None
    if asked.ranks % asked.hosts:
        ranks, hosts = counted(asked.ranks, "rank"), counted(asked.hosts, "host")
        raise ValueError(f"{ranks} do not divide among {hosts}")
    from byhand.runtime import VirtualNetwork

    rate = {} if asked.rate is None else {"bytes_per_second": asked.rate}
    return VirtualNetwork(asked.hosts, asked.ranks // asked.hosts, **rate)


def _is_there(module: str) -> bool:
    """Whether Python finds it, from this folder too, or where a `pip install -e` says it is."""
    sys.path.insert(0, "")
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    finally:
        del sys.path[0]


def _run(asked: argparse.Namespace, network: VirtualNetwork | None) -> int:
    """Launch the program, say how it ended, and write what is asked for; the exit status."""
    signal.signal(signal.SIGTERM, _terminated)
    from byhand.runtime import ForkClient
    from byhand.runtime.system import check_room

    check_room(asked.ranks)
    threads = _threads()
    client = ForkClient.start()  # it imports torch; we do not
    from byhand.runtime import LaunchError
    from byhand.runtime.launcher import Launcher
    from byhand.runtime.launching import launch_on
    from byhand.runtime.program import Program
    from byhand.tools.live import LiveOutput
    from byhand.tools.summary import Tally

    per_host = network.ranks_per_host if network else None
    words = asked.program, tuple(asked.arguments), asked.is_module
    program, tally = Program(*words, asked.backend, per_host), Tally()
    options = {"deadline": asked.deadline, "memory": asked.memory, "network": network}
    options |= {"threads_per_rank": threads}
    try:
        with Launcher(client=client) as launcher, LiveOutput(asked.ranks) as output:
            (first, *others), keyboard = output.streams, [] if sys.stdin is None else [0]
            streams = [(*first, *keyboard), *others]  # rank 0 has our input
            options |= {"setup": False, "may_leave": True, "streams": streams, "older": tally.add}
            run = launch_on(launcher, program, asked.ranks, **options)
    except KeyboardInterrupt as stopped:
        print(f"\nbyhand: {str(stopped) or 'stopped'}", file=sys.stderr)
        _write(getattr(stopped, "run", None), asked)
        return STOPPED
    except LaunchError as error:
        if output.unread is not None:  # that is no fault of the program's
            return _unread(output.unread)
        print(f"\n{_explained(error)}", file=sys.stderr)
        _write(error.run, asked)
        return _status(error)
    except OSError as error:  # no room for so many ranks' pipes
        print(f"byhand: the ranks could not be started: {error}", file=sys.stderr)
        return BAD
    status = _report(run, tally, asked)
    if output.unread is None or isinstance(output.unread, BrokenPipeError):
        return status  # who has read enough has the program's own end
    return _unread(output.unread)


def _terminated(*_: object) -> NoReturn:
    from byhand.runtime.errors import Terminated

    raise Terminated


def _threads() -> int:
    """How many each rank may have: one, if the environment does not say.

    Raises:
        ValueError: it says what is no count.
    """
    text = (os.environ.get("OMP_NUM_THREADS") or "1").split(",")[0].strip()
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"OMP_NUM_THREADS is a whole number of at least 1, not {text!r}")
    return int(text)


def _unread(error: OSError) -> int:
    """The exit status where the ranks' output was taken no further; says why, if it may be news."""
    if isinstance(error, BrokenPipeError):
        return UNREAD
    print(f"byhand: the output could not be written: {error.strerror}", file=sys.stderr)
    return 1


def _explained(error: LaunchError) -> str:
    """Who speaks, what went wrong, and where no GPU is, whether that may be why."""
    from byhand.runtime.errors import with_table

    raised = getattr(error, "exception", None)
    if raised == "NCCLError":
        return f"byhand: {error.sentence.partition(': ')[2]}. --backend gloo stands in for it"
    if raised == "SystemExit":
        _, _, whole = getattr(error, "traceback", "").partition("\nSystemExit: ")
        sentence = error.sentence.replace("raised SystemExit", "called sys.exit")
        said = "\n".join([f"byhand: {sentence}", *whole.splitlines()[1:]])
        return with_table(said, error.reports)
    told, trace = f"byhand: {error.sentence}", getattr(error, "traceback", "").rstrip()
    told = with_table(f"{told}\n\n{trace}" if trace else told, error.reports)
    if not _CUDA.search(error.sentence) or _has_gpu():
        return told
    return f"{told}\n\nThere is no GPU here that torch can use: the program itself asks for one."


def _has_gpu() -> bool:
    import torch  # it takes seconds, which nobody else has to wait for

    return torch.cuda.is_available()


def _status(error: LaunchError) -> int:
    """What the first rank that failed ended with, as a shell has it."""
    from byhand.runtime.errors import NetworkError

    if isinstance(error, NetworkError):
        return BAD
    ended = re.search(r"^SystemExit: (-?\d+)$", getattr(error, "traceback", ""), re.MULTILINE)
    if ended:
        return int(ended[1]) % 256 or 1
    code = getattr(error, "exit_code", None)
    return 1 if code is None else (128 - code if code < 0 else code) or 1


def _report(run: Run, tally: Tally, asked: argparse.Namespace) -> int:
    """Say what the run came to, and write what is asked for; the exit status."""
    from byhand.tools.summary import summary

    for event in run.ledger.events:
        tally.add(event)
    lines = [] if asked.quiet else ["", f"byhand: {summary(tally, run.spans)}"]
    if run.peak_bytes is not None and not asked.quiet:
        peaks = ", ".join(map(num_bytes_text, run.peak_bytes))
        lines.append(f"the most bytes of tensors held at once, by rank: {peaks}")
    if run.traffic is not None and not asked.quiet:
        sent = ", ".join(num_bytes_text(host.sent) for host in run.traffic.hosts)
        lines.append(f"sent over the links, by host: {sent}")
    if lines:
        print(*lines, sep="\n", file=sys.stderr)
    return _write(run, asked)


def _write(run: Run | None, asked: argparse.Namespace) -> int:
    """Write what is asked for, of a run that may have failed; 1 where that cannot be."""
    if run is None:
        return 0
    path = asked.trace
    try:
        if asked.trace is not None:
            run.ledger.to_perfetto(asked.trace)
            calls = counted(len(run.ledger.events), "call", ",")
            print(f"{asked.trace} has {calls}", file=sys.stderr)
        path = asked.timeline
        if asked.timeline is not None:
            print(_draw(run, asked.timeline), file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"byhand: {path} could not be written: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _draw(run: Run, path: Path) -> str:
    """Draw the run's end: since when each rank has made its last DRAWN_CALLS calls."""
    from byhand.figures import save_svg, timeline

    ranks = [run.ledger.select(rank=rank) for rank in range(run.world_size)]
    since = max(
        (events[-DRAWN_CALLS].start for events in ranks if len(events) > DRAWN_CALLS), default=0.0
    )
    events = [event for event in run.ledger.events if event.start >= since]
    for event in events:
        event.count_from(since)
    spans = [(max(0.0, start - since), max(0.0, end - since)) for start, end in run.spans]
    save_svg(timeline(events, spans), path)
    return (
        f"{path} shows the last {max(end for _, end in spans):.2f} s"
        if since
        else f"{path} shows the run"
    )
