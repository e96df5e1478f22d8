"""How fast four ranks start and all-reduce, four ways; how soon a deadlock is named; how it grows.

    python tests/benchmarks/launch.py [trials | --growth | --results]

Every way runs in a process of its own that has imported torch, as a notebook's kernel has. The
trials take turns, with a second between them, as a reader leaves between cells. One trial is
everything from the call to the results. launch, spawn and notebook_launcher start fresh processes
in each trial; ipyparallel's engines are started once, before, and keep their process group.
A trial of more than a minute hangs: that way is ended, starts anew, and the table says how often.
Then launch alone, from 2 ranks to 64. Last, two ranks' results of 100 MB each, over what forked
processes take that write as much to a pipe.
"""

from __future__ import annotations

import os
import platform
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

WORLD_SIZE = 4
PAUSE = 1.0
TRIALS = 10
HANGS = 60.0  # seconds
RESULT_BYTES = 100_000_000
EXPECTED = 4.0 * WORLD_SIZE
WORLD_SIZES = (2, 4, 8, 16, 32, 64)
MOST_AT_64 = 0.4  # seconds
AIMS = {"torch.multiprocessing.spawn": 150, "accelerate notebook_launcher": 6, "ipyparallel": 1}


def all_reduce_once(rank: int, world_size: int) -> float:
    """What each rank does: one all-reduce of four numbers."""
    x = torch.ones(4)
    dist.all_reduce(x)
    return x.sum().item()


def free_port() -> int:
    """A TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def with_launch() -> Callable[[], None]:
    from byhand import launch

    def trial() -> None:
        assert launch(all_reduce_once, WORLD_SIZE).results == [EXPECTED] * WORLD_SIZE

    return trial


def spawned(rank: int, world_size: int, port: int) -> None:
    """A spawned rank: join the world, all-reduce, leave."""
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)
    assert all_reduce_once(rank, world_size) == EXPECTED
    dist.destroy_process_group()


def with_spawn() -> Callable[[], None]:
    import torch.multiprocessing as mp

    return lambda: mp.spawn(spawned, (WORLD_SIZE, free_port()), WORLD_SIZE)


def with_notebook_launcher() -> Callable[[], None]:
    from accelerate import notebook_launcher

    def body() -> None:
        dist.init_process_group("gloo")
        assert all_reduce_once(dist.get_rank(), WORLD_SIZE) == EXPECTED
        dist.destroy_process_group()

    return lambda: notebook_launcher(body, num_processes=WORLD_SIZE, use_port=str(free_port()))


JOIN = """
import os, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)
"""


def with_ipyparallel() -> Callable[[], None]:
    import ipyparallel

    client = ipyparallel.Cluster(n=WORLD_SIZE, log_level=40).start_and_connect_sync()
    for rank in range(WORLD_SIZE):
        client[rank].push({"rank": rank}, block=True)
    client[:].push({"address": f"tcp://127.0.0.1:{free_port()}", "world_size": WORLD_SIZE})
    client[:].execute(JOIN, block=True)

    def trial() -> None:
        client[:].execute("x = torch.ones(4); dist.all_reduce(x); y = x.sum().item()", block=True)
        assert client[:].pull("y", block=True) == [EXPECTED] * WORLD_SIZE

    trial.close = lambda: client.cluster.stop_cluster_sync()
    return trial


def misses_a_call(rank: int, world_size: int, path: str) -> None:
    """Rank 3 leaves where the others wait; the last of them to begin writes down when."""
    if rank < 3:
        with open(path, "a") as file:
            file.write(f"{time.monotonic()}\n")
        dist.barrier()


def with_deadlock() -> Callable[[], float]:
    import tempfile

    from byhand import DeadlockError, launch

    def trial() -> float:
        with tempfile.NamedTemporaryFile("r") as file:
            try:
                launch(misses_a_call, WORLD_SIZE, args=(file.name,))
            except DeadlockError:
                return time.monotonic() - max(map(float, file.read().split()))
        raise AssertionError("no deadlock was named")

    return trial


WAYS = {
    "byhand launch": with_launch,
    "torch.multiprocessing.spawn": with_spawn,
    "accelerate notebook_launcher": with_notebook_launcher,
    "ipyparallel": with_ipyparallel,
    "deadlock named": with_deadlock,
}


def contender(name: str) -> None:
    """Serve one way: a trial for each line read, its seconds for each line written."""
    trial = WAYS[name]()
    trial()
    reply = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("ready", file=reply, flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        measured = trial()
        seconds = time.perf_counter() - begun if measured is None else measured
        print(seconds, file=reply, flush=True)
    getattr(trial, "close", lambda: None)()


def start(name: str) -> subprocess.Popen:
    """A process that serves one way, after one trial that is not counted."""
    command = [sys.executable, __file__, "--serve", name]
    process = subprocess.Popen(
        command,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    while (line := process.stdout.readline()) and line != "ready\n":
        pass
    if not line:
        raise SystemExit(f"{name} did not start: is it installed? make bench installs it")
    return process


def timed(process: subprocess.Popen) -> float | None:
    """Seconds of one trial; None when it hangs, and then it is ended with all that it started."""
    process.stdin.write("go\n")
    process.stdin.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if selector.select(HANGS):
            return float(process.stdout.readline())
    os.killpg(process.pid, signal.SIGKILL)
    return None


def measure(trials: int) -> dict[str, list[float]]:
    """Seconds of each trial that ended, by way; the ways take turns."""
    from tqdm import tqdm

    processes = {name: start(name) for name in WAYS}
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    try:
        for _ in tqdm(range(trials), desc="trials", unit="round"):
            for name in WAYS:
                time.sleep(PAUSE)
                if (took := timed(processes[name])) is None:
                    processes[name] = start(name)
                else:
                    seconds[name].append(took)
    finally:
        for process in processes.values():
            process.stdin.close()
        for process in processes.values():
            process.wait(timeout=60)
    return seconds


def report(seconds: dict[str, list[float]], trials: int) -> None:
    """Print the table: medians, spread, ratios to launch."""
    ours = statistics.median(seconds["byhand launch"])
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, gloo")
    print(f"\n4 ranks and one all-reduce, {trials} trials")
    print(f"{'way':<30}{'median':>10}{'min':>10}{'max':>10}{'ratio':>9}  aim")
    for name in WAYS:
        if name == "deadlock named":
            print("\nfrom the last rank's last progress to the sentence")
        times = seconds[name]
        middle = statistics.median(times)
        ratio = f"{middle / ours:8.1f}×" if name in AIMS else ""
        aim = f"≥ {AIMS[name]}×" if name in AIMS else ""
        aim = "≤ 2 s" if name == "deadlock named" else aim
        row = f"{name:<30}{1e3 * middle:8.1f}ms{1e3 * min(times):8.1f}ms{1e3 * max(times):8.1f}ms"
        hung = trials - len(times)
        print(f"{row}{ratio:>9}  {aim}" + (f"; {hung} of {trials} trials hung" if hung else ""))


def report_growth(trials: int) -> None:
    """Print how long a launch takes by the number of its ranks, the next ones forked meanwhile."""
    from byhand import launch

    print(f"\nlaunch by ranks, {trials} trials each")
    for n in WORLD_SIZES:
        times = []
        for trial in range(-2, trials):
            time.sleep(PAUSE + n / 16)  # in which the next ranks are forked and connect
            begun = time.perf_counter()
            assert launch(all_reduce_once, n).results == [4.0 * n] * n
            times += [time.perf_counter() - begun] if trial >= 0 else []
        middle = statistics.median(times)
        row = "".join(f"{1e3 * seconds:8.1f}ms" for seconds in (middle, min(times), max(times)))
        print(f"{n:4} ranks {row}" + (f"  ≤ {1e3 * MOST_AT_64:.0f} ms" if n == 64 else ""))


def ones(rank: int = 0, world_size: int = 2) -> torch.Tensor:
    """What a rank gives back."""
    return torch.ones(RESULT_BYTES // 4)


def by_pipes() -> list[torch.Tensor]:
    """The same tensors, of two forked processes that write them to pipes."""
    reads = []
    for _ in range(2):
        read, write = os.pipe()
        if os.fork() == 0:
            with open(write, "wb", buffering=0) as file:
                left = memoryview(ones().numpy()).cast("B")
                while left:
                    left = left[file.write(left) :]
            os._exit(0)
        os.close(write)
        reads.append(read)
    found = [torch.empty(RESULT_BYTES // 4) for _ in reads]
    for read, tensor in zip(reads, found, strict=True):
        with open(read, "rb") as file:
            file.readinto(memoryview(tensor.numpy()).cast("B"))
        os.wait()
    return found


def report_results(trials: int) -> None:
    """Print how long large results take, over pipes, each until all numbers have been read."""
    from byhand import launch

    torch.set_num_threads(1)
    ways = {"launch": lambda: launch(ones, 2).results, "pipes": by_pipes}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for trial in range(-1, trials):
        for name, way in ways.items():
            time.sleep(PAUSE)
            begun = time.perf_counter()
            assert all(float(x.mean()) == 1.0 for x in way())
            times[name] += [time.perf_counter() - begun] if trial >= 0 else []
    ratio = statistics.median(a / b for a, b in zip(*times.values(), strict=True))
    ours, theirs = map(statistics.median, times.values())
    print(f"\nresults of 100 MB from each of 2 ranks: {ours:.3f} s, by pipes {theirs:.3f} s")
    print(f"ratio {ratio:.2f}, aim ≤ 1")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        contender(sys.argv[2])
    elif sys.argv[1:2] == ["--growth"]:
        report_growth(TRIALS)
    elif sys.argv[1:2] == ["--results"]:
        report_results(TRIALS)
    else:
        number = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
        report(measure(number), number)
        report_growth(number)
        report_results(number)
