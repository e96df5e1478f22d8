"""`launch` on real processes: what comes back, what is refused, and what is left behind."""

from __future__ import annotations

import asyncio
import fcntl
import importlib.metadata
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist
from jupyter_client.manager import start_new_kernel
from torch.distributed._functional_collectives import all_gather_tensor
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel
from waiting import wait_until

import byhand
from byhand import PerRank, RankError, VirtualNetwork, call, cleanup, launch, setup
from byhand.runtime import (
    DeadlineError,
    Launcher,
    LaunchError,
    SandboxError,
    held_bytes,
    messages,
    pickling,
)
from byhand.runtime import launcher as launcher_of_ranks
from byhand.runtime.errors import Interrupted, Report
from byhand.runtime.launching import IDLE_SECONDS, launch_on, named_launcher
from byhand.runtime.process.client import ForkClient
from byhand.runtime.process.member import Deadline, Member
from byhand.runtime.process.server import MANY_RANKS, PAUSE_SECONDS
from byhand.runtime.system import PORTABLE, new_file
from byhand.runtime.walls.isolation import sandbox_command, why_no_sandbox
from byhand.runtime.walls.question import Sandbox

REPORTS = [Report(0, "waiting", "barrier", (0, 1)), Report(1, "raised", source="In [1] line 3")]
linux_only = pytest.mark.skipif(PORTABLE, reason="the portable path has no walls, and no batch")


def add_up(rank, world_size, x):
    print("from rank", rank)
    dist.all_reduce(x)
    return {"sum": x, "rank": rank}


def test_results_and_output_come_back_by_rank():
    run = launch(add_up, 3, args=(torch.tensor([1.0, 2.0]),))
    assert [result["rank"] for result in run.results] == [0, 1, 2]
    assert all(torch.equal(result["sum"], torch.tensor([3.0, 6.0])) for result in run.results)
    assert run.output == [f"from rank {rank}\n" for rank in range(3)]
    assert run.world_size == 3
    assert run.backend == "gloo"


def test_a_closure_a_lambda_and_a_generic_object_travel():
    scale = 3
    assert launch(lambda rank, world_size: rank * scale, 2).results == [0, 3]
    assert launch(lambda rank, world_size: {rank, "a set"}, 2).results == [
        {0, "a set"},
        {1, "a set"},
    ]


def test_per_rank_gives_each_rank_its_own_item():
    run = launch(lambda rank, world_size, mine, all_: (mine, all_), 3, (PerRank("abc"), "z"))
    assert run.results == [("a", "z"), ("b", "z"), ("c", "z")]


def test_call_runs_one_function_in_a_process_of_its_own():
    assert call(lambda a, b: (a + b, os.getpid() != 0), 2, 3) == (5, True)
    assert call(os.getpid) != os.getpid()


def test_every_launch_gets_fresh_processes():
    first, second = (launch(lambda rank, world_size: os.getpid(), 2).results for _ in range(2))
    assert not set(first) & set(second)


def test_numpys_generator_gives_each_rank_of_each_launch_its_own_numbers():
    draws = [launch(lambda rank, world_size: np.random.rand(), 2).results for _ in range(2)]
    assert len({*draws[0], *draws[1]}) == 4, draws


def test_what_a_rank_loaded_of_the_library_the_next_ranks_have():
    def is_there(rank: int, world_size: int) -> bool:
        there = "byhand.figures.lanes" in sys.modules
        import byhand.figures.lanes  # noqa: F401

        return there

    with Launcher() as launcher:
        runs = [launch_on(launcher, is_there, 2).results for _ in range(3)]
    assert runs == [[False] * 2, [True] * 2, [True] * 2]


def test_of_what_cloudpickle_brings_with_a_function_the_next_ranks_have_torch_distributeds():
    """With `dist` and `torch.tensor` comes torch.distributed.tensor, if the notebook has that."""
    importlib.import_module("torch.distributed.tensor")

    def ones(rank: int, world_size: int) -> float:
        tensor = torch.tensor([1.0])
        dist.all_reduce(tensor)
        return float(tensor)

    def is_there(rank: int, world_size: int) -> bool:
        return "torch.distributed.tensor" in sys.modules

    with Launcher() as launcher:
        before = launch_on(launcher, is_there, 2).results
        assert launch_on(launcher, ones, 2).results == [2, 2]
        assert (before, launch_on(launcher, is_there, 2).results) == ([False] * 2, [True] * 2)


def test_so_have_the_next_where_the_ranks_raised():
    def is_there(rank: int, world_size: int) -> bool:
        there = "byhand.figures.lanes" in sys.modules
        import byhand.figures.lanes  # noqa: F401

        if not there:
            raise ValueError("a first try")
        return there

    with Launcher() as launcher:
        with pytest.raises(RankError, match="a first try"):
            launch_on(launcher, is_there, 2)
        assert launch_on(launcher, is_there, 2).results == [True] * 2


@pytest.mark.network
def test_so_have_those_on_a_virtual_network():
    def is_there(rank: int, world_size: int) -> bool:
        there = "torch._dynamo" in sys.modules
        torch.optim.SGD([torch.zeros(1)], 0.1).zero_grad()
        return there

    with Launcher() as launcher:
        wires = VirtualNetwork(2, 1)
        runs = [launch_on(launcher, is_there, 2, network=wires).results for _ in range(2)]
    assert runs == [[False] * 2, [True] * 2]


def test_a_module_without_a_file_is_left_to_the_rank_that_made_it():
    def makes_one(rank: int, world_size: int) -> bool:
        known = "byhand.made_here" in sys.modules
        sys.modules["byhand.made_here"] = ModuleType("byhand.made_here")
        return known

    with Launcher() as launcher:
        assert [launch_on(launcher, makes_one, 2).results for _ in range(2)] == [[False] * 2] * 2


def test_a_module_that_was_written_anew_is_loaded_anew(tmp_path):
    file = tmp_path / "words.py"
    file.write_text("")
    client = ForkClient.start()
    try:
        client.load({"byhand.words": str(file)})
        client.wait_until_ready()
        assert client.is_usable()
        os.utime(file, (1, 1))
        assert not client.is_usable(), "a launcher starts another server"
    finally:
        client.close()


def test_eight_ranks_and_one_rank_run():
    for world_size in (1, 8):
        run = launch(add_up, world_size, args=(torch.ones(1),))
        assert run.results[0]["sum"].item() == world_size


@pytest.mark.parametrize("world_size", [0, -1, 3.5, "4", True, None])
def test_a_world_size_that_is_no_count_is_refused_in_a_sentence(world_size):
    with pytest.raises(ValueError, match="world_size is a whole number of at least 1, not"):
        launch(add_up, world_size)


def test_a_count_may_be_any_librarys_whole_number():
    numbers = {"threads_per_rank": torch.tensor(1), "deadline": np.float32(60)}
    run = launch(lambda rank, world_size: world_size, np.int64(2), **numbers)
    assert run.results == [2, 2]
    assert type(run.results[0]) is int


def test_more_ranks_than_there_is_room_for_are_refused_by_name_of_what_allows_them(monkeypatch):
    with pytest.raises(ValueError, match="100000 ranks are more than there is room for") as raised:
        launch(add_up, 100_000)
    assert "set BYHAND_MAX_RANKS=100000 in the environment" in str(raised.value)
    monkeypatch.setenv("BYHAND_MAX_RANKS", "2")
    assert launch(lambda rank, world_size: rank, 2).results == [0, 1]
    with pytest.raises(ValueError, match="BYHAND_MAX_RANKS in the environment allows 2"):
        launch(add_up, 3)
    monkeypatch.setenv("BYHAND_MAX_RANKS", "many")
    with pytest.raises(ValueError, match="is a number of ranks, not 'many'"):
        launch(add_up, 2)


def test_no_deadline_counts_what_the_fork_server_takes_to_import_torch(monkeypatch):
    order = []

    class Noted(Deadline):
        def __init__(self, seconds):
            order.append("the deadline begins")
            super().__init__(seconds)

    def receive(client, seconds, receive=ForkClient.receive):
        message = receive(client, seconds)
        order.extend(["the server is ready"] if message and "hello" in message else [])
        return message

    monkeypatch.setattr(launcher_of_ranks, "Deadline", Noted)
    monkeypatch.setattr(ForkClient, "receive", receive)
    with Launcher() as fresh:
        launch_on(fresh, add_up, 1, (torch.ones(1),))
    assert order == ["the server is ready", "the deadline begins"]


def test_an_async_function_is_told_that_nobody_awaits_it():
    async def step(rank, world_size): ...

    class Step:
        async def __call__(self, rank, world_size): ...

    with pytest.raises(ValueError, match="launch awaits nothing, and step is an async function"):
        launch(step, 2)
    with pytest.raises(ValueError, match=r"Step object .* is an async function"):
        launch(Step(), 2)


def test_the_packages_say_their_version():
    assert byhand.__version__ == importlib.metadata.version("byhand")
    said = subprocess.run(["autograder", "--version"], capture_output=True, text=True).stdout
    assert byhand.__version__ in said


def test_a_large_result_comes_back_whole_and_is_the_callers_own():
    run = launch(lambda rank, world_size: torch.full((5_000_000,), rank), 2)
    assert [int(result.sum()) for result in run.results] == [0, 5_000_000]
    run.results[1].zero_()


def large_ones(rank, world_size):
    x = torch.arange(400_000.0).reshape(2, -1)
    return {
        "small": torch.ones(2),
        "odd": x.t()[1:],
        "array": x.numpy(),
        "once more": [x.bfloat16()],
    }


def test_large_tensors_and_arrays_lie_in_memory_that_keeps_no_descriptor():
    launch(large_ones, 1)
    before = psutil.Process().num_fds()
    kept = [launch(large_ones, 1).results[0] for _ in range(3)]
    assert psutil.Process().num_fds() == before
    for back in kept:
        assert back["small"].tolist() == [1.0, 1.0]
        assert back["odd"].shape == (199_999, 2)
        assert back["odd"][-1].tolist() == [199_999.0, 399_999.0]
        assert back["array"][1, -1] == 399_999.0
        back["array"][:], back["odd"][:] = 0, 0
        assert back["once more"][0].dtype == torch.bfloat16
        assert back["once more"][0][0, 1] == 1.0


def test_what_cannot_travel_is_named():
    with pytest.raises(ValueError, match="argument 1, a generator, cannot travel"):
        launch(add_up, 2, args=(1, (i for i in range(3))))
    numbers = (i for i in range(3))
    with pytest.raises(ValueError, match="the function <lambda> cannot travel"):
        launch(lambda rank, world_size: next(numbers), 2)
    with pytest.raises(ValueError, match="launch runs a function; 'step' is a str"):
        launch("step", 2)
    with pytest.raises(ValueError, match="args is a tuple of arguments, not an int"):
        launch(add_up, 2, args=3)
    with pytest.raises(ValueError, match=r"write args=\(x,\)"):
        launch(add_up, 2, args=torch.ones(2))
    with pytest.raises(ValueError, match="2 items for 3 ranks"):
        launch(add_up, 3, args=(PerRank([1, 2]),))


@pytest.mark.parametrize(("items", "told"), [({0: "a"}, "a dict"), ({1}, "a set"), (5, "an int")])
def test_items_by_rank_have_an_order(items, told):
    with pytest.raises(ValueError, match=f"a list, one item for each rank, not {told}"):
        PerRank(items)


def test_a_lock_travels_as_a_lock_of_each_ranks_own():
    lock = threading.Lock()

    def program(rank, world_size):
        with lock:
            return lock.locked()

    assert launch(program, 2).results == [True, True]


def test_what_a_rank_wrote_without_an_end_of_line_is_shown():
    def program(rank, world_size):
        print("out", end="")
        print("err", end="", file=sys.stderr)

    assert launch(program, 1).output == ["outerr"]


def test_what_gloo_prints_by_itself_is_not_shown():
    greeting = "[Gloo] Rank 1 is connected to 1 peer ranks. Expected number of peers is : 1"

    def program(rank, world_size):
        print(f"before\n{greeting}\nafter")

    assert launch(program, 2).printed == ["before\nafter\n"] * 2


def test_of_much_output_the_beginning_is_shown_and_all_is_kept():
    run = launch(lambda rank, world_size: print("x" * 100_000), 1)
    assert len(repr(run)) < 21_000 > len(run._repr_html_()) - 1000
    assert "(100001 characters)" in repr(run)
    assert len(run.output[0]) == 100_001


@pytest.mark.parametrize("fn", [lambda: 1, lambda rank: 1, lambda a, b, c: 1, lambda a, b, *, c: 1])
def test_a_function_that_does_not_take_what_launch_passes_is_told_what_that_is(fn):
    with pytest.raises(
        RankError, match=r"launch\spasses rank and world_size before args"
    ) as raised:
        launch(fn, 2)
    assert raised.value.traceback == ""


def test_a_call_inside_the_function_is_no_matter_of_what_launch_passes():
    with pytest.raises(RankError, match="positional argument") as raised:
        launch(lambda rank, world_size: (lambda x: x)(), 2)
    assert "launch passes" not in str(raised.value)


def in_a_task_group(rank, world_size):
    async def bad():
        raise ValueError("the rate is negative")

    async def together():
        async with asyncio.TaskGroup() as group:
            group.create_task(bad())

    asyncio.run(together())


def from_another(rank, world_size):
    try:
        {}["rate"]
    except KeyError as error:
        raise RuntimeError("the step failed") from error


def beside_another(rank, world_size):
    try:
        {}["rate"]
    except KeyError:
        raise RuntimeError("the step failed")  # noqa: B904  # as a student may


def in_a_ring(rank, world_size):
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


@pytest.mark.parametrize(
    ("fn", "first", "behind"),
    [
        (in_a_task_group, "1 sub-exception)", ["because of: ValueError: the rate is negative"]),
        (from_another, "the step failed", ["because of: KeyError: 'rate'"]),
        (beside_another, "the step failed", ["while handling: KeyError: 'rate'"]),
        (in_a_ring, "first", ["because of: ValueError: second"]),
    ],
)
def test_what_an_error_came_of_stands_below_it(fn, first, behind):
    with pytest.raises(RankError) as raised:
        launch(fn, 1)
    *_, header, below = raised.value.traceback.splitlines()
    assert raised.value.sentence.endswith(first), "the sentence is of the error itself"
    assert header.endswith(first)
    assert [below] == behind


def test_a_rank_that_asks_somebody_is_told_that_nobody_is_there():
    with pytest.raises(RankError, match=r"A rank has no\skeyboard"):
        launch(lambda rank, world_size: input("how many? "), 2)


def test_an_error_without_a_line_is_said_once():
    with pytest.raises(RankError) as caught:
        launch(lambda: None, 2)
    assert str(caught.value).count("takes 0 positional arguments") == 1


def test_a_backend_that_cannot_run_is_refused_with_the_numbers():
    for joined in (True, False):
        with pytest.raises(ValueError, match="backend 'mpi' is unknown"):
            launch(add_up, 2, backend="mpi", setup=joined)
    ranks = torch.cuda.device_count() + 1
    with pytest.raises(ValueError, match=r"needs one GPU per rank: \d+ rank|not built into"):
        launch(add_up, ranks, backend="nccl")


def test_a_result_that_cannot_travel_is_an_error_that_says_so():
    with pytest.raises(RankError, match="a generator, cannot travel back"):
        launch(lambda rank, world_size: (i for i in range(3)), 2)


class Counted(Exception):
    def __init__(self, rank, why):
        super().__init__(f"{rank}: {why}")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda rank: Counted(rank, "too few"), "missing 1 required positional argument: 'why'"),
        (lambda rank: DistributedDataParallel(torch.nn.Linear(2, 2)), "Default process group"),
    ],
)
def test_a_result_that_cannot_be_made_anew_is_an_error_that_says_why(make, why):
    with pytest.raises(RankError, match="the result cannot be made anew in the notebook") as raised:
        launch(lambda rank, world_size: make(rank), 2)
    assert why in raised.value.sentence
    assert "launch passes" not in raised.value.sentence


class SlowToRead:
    def __reduce__(self):
        return time.sleep, (4.0,)


def test_no_deadline_counts_what_the_notebook_takes_to_read_what_all_returned():
    assert launch(lambda rank, world_size: SlowToRead(), 1, deadline=4.0).results == [None]


@pytest.mark.parametrize(
    "error",
    [
        RankError(1, "rank 1 raised KeyError: 3", "a traceback", None, "KeyError", REPORTS),
        DeadlineError("rank 1 did not return", REPORTS),
        byhand.DeadlockError("rank 0 waits. All must.", REPORTS),
        Interrupted(REPORTS),
    ],
)
def test_an_error_of_a_launch_travels_between_processes(error):
    error.run = launch(lambda rank, world_size: rank, 1)
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), back.reports) == (type(error), str(error), REPORTS)
    assert back.run.results == [0]
    assert back.__dict__.keys() == error.__dict__.keys()


def returned(rank: int, world_size: int) -> dict:
    layer = torch.nn.Linear(3, 2)
    table = torch.arange(1e6).reshape(10, -1)
    return {
        "parameter": layer.weight,
        "layer": layer,
        "history": layer.weight.sum(),
        "view": table.t()[:2, :2],
        "odd": [torch.empty(0, 3), torch.tensor(2.5), torch.ones(2, dtype=torch.bfloat16)],
        "lone": table[:1, 3],  # contiguous, with a stride of 100,000
        "sparse": torch.eye(2).to_sparse(),
        "on its way": [all_gather_tensor(torch.ones(1), 0, dist.group.WORLD)],
    }


def test_tensors_come_back_as_numbers_alone_and_layers_as_layers():
    (back,) = launch(returned, 1).results
    assert type(back["parameter"]) is torch.Tensor
    assert type(back["layer"].weight) is torch.nn.Parameter
    assert not back["parameter"].requires_grad
    assert not back["history"].requires_grad
    assert back["view"].untyped_storage().nbytes() == 16
    assert back["view"].tolist() == [[0.0, 1e5], [1.0, 100_001.0]]
    assert [list(one.shape) for one in back["odd"]] == [[0, 3], [], [2]]
    assert [one.dtype for one in back["odd"]] == [torch.float32, torch.float32, torch.bfloat16]
    assert back["lone"].tolist() == [3.0]
    assert back["sparse"].to_dense().tolist() == [[1, 0], [0, 1]]
    assert type(back["on its way"][0]) is torch.Tensor


def test_what_cloudpickle_leaves_behind_travels():
    program = """
import functools, torch, byhand
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def on_a_rank(rank, world_size):
    torch.backends.cudnn.deterministic = True
    return fib(30), torch.ops.aten.relu(torch.ones(1)).item()
print(byhand.launch(on_a_rank, 1).results)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[(832040, 1.0)]\n", done.stderr


def test_a_program_ends_while_a_daemon_thread_of_it_launches(tmp_path):
    script = tmp_path / "ends.py"
    script.write_text(
        "import pathlib, sys, threading, time, byhand\n"
        "def step(rank, world_size, path):\n"
        "    pathlib.Path(path).touch()\n"
        "    time.sleep(1000)\n"
        "def launch(path):\n"
        "    try: byhand.launch(step, 1, (path,), deadline=1000)\n"
        "    except byhand.runtime.SandboxError: pass\n"
        "threading.Thread(target=launch, args=(sys.argv[1],), daemon=True).start()\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.1)\n"
    )
    done = subprocess.run([sys.executable, script, tmp_path / "runs"], timeout=300)
    assert done.returncode == 0


def test_a_worker_that_multiprocessing_spawned_launches_its_scripts_functions(tmp_path):
    script = tmp_path / "graded.py"
    script.write_text(
        "import functools, multiprocessing, byhand\n"
        "@functools.cache\n"
        "def ten(): return 10\n"
        "def step(rank, world_size): return ten() + rank\n"
        "def grade(_): return byhand.launch(step, 2).results\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(grade, [0]))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.stdout == "[[10, 11]]\n", done.stderr


def test_launch_inside_a_rank_is_refused():
    with pytest.raises(RankError, match="launch was called on a rank"):
        launch(lambda rank, world_size: byhand.launch(add_up, 2), 1)


def test_what_the_reader_set_in_the_environment_ranks_have(monkeypatch):
    monkeypatch.setenv("TORCH_CPP_LOG_LEVEL", "INFO")
    with Launcher() as fresh:
        run = launch_on(fresh, lambda rank, world_size: os.environ["TORCH_CPP_LOG_LEVEL"], 1)
    assert run.results == ["INFO"]


def main(rank, world_size):
    """The literature's form: the function sets itself up and cleans up."""
    setup(rank, world_size)
    x = torch.tensor([rank])
    dist.all_reduce(x)
    dist.barrier()
    cleanup()
    return x.item()


def test_the_literatures_form_runs_unchanged_and_is_recorded():
    run = launch(main, 4, setup=False)
    assert run.results == [6, 6, 6, 6]
    assert run.ledger.count("all_reduce") == 4
    assert run.ledger.count("barrier", rank=2) == 1


def fixed_port(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "29511"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    dist.barrier()
    dist.destroy_process_group()


def test_a_program_that_names_its_own_address_runs_too():
    assert launch(fixed_port, 2, setup=False).ledger.count("barrier") == 2


def test_torch_multiprocessing_spawn_runs_the_same_function(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        "import torch, torch.multiprocessing as mp, torch.distributed as dist\n"
        "from byhand import setup, cleanup\n"
        "def main(rank, world_size):\n"
        "    setup(rank, world_size)\n"
        "    x = torch.tensor([rank]); dist.all_reduce(x)\n"
        "    assert x.item() == 1\n"
        "    cleanup()\n"
        "if __name__ == '__main__':\n"
        "    for _ in range(2): mp.spawn(main, (2,), 2)\n"
        "    print('both runs done')\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert "both runs done" in done.stdout, done.stderr


def wrong_world(rank, world_size):
    setup(rank, 4)


def test_a_hard_coded_world_size_is_named():
    with pytest.raises(byhand.DeadlockError, match="world of 4 ranks") as caught:
        launch(wrong_world, 2, setup=False)
    assert "2 were launched" in caught.value.reason


def overlapping(rank, world_size):
    x, y = torch.ones(1000), torch.ones(300, 300)
    work = dist.all_reduce(x, async_op=True)
    y = y @ y
    work.wait()
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    dist.all_reduce(x)


def test_the_ledger_tells_overlapped_calls_from_others():
    run = launch(overlapping, 2)
    calls = [event.overlapped for event in run.ledger.select("all_reduce", rank=1)]
    assert calls == [True, False, False]


def by_old_names(rank, world_size):
    dist.all_gather_into_tensor(torch.zeros(world_size), torch.zeros(1))
    dist.reduce_scatter_tensor(torch.zeros(1), torch.zeros(world_size))


def orthogonalizes_a_wide_matrix(rank, world_size):
    powerSGD_hook._orthogonalize(torch.ones(1, 2, 3))


def test_an_error_without_words_inside_torch_shows_where_it_was_raised():
    with pytest.raises(RankError) as raised:
        launch(orthogonalizes_a_wide_matrix, 1)
    first = orthogonalizes_a_wide_matrix.__code__.co_firstlineno
    assert f"raised AssertionError at test_launch.py:{first + 1}" in raised.value.sentence
    *_, where, code, message = raised.value.traceback.splitlines()
    assert re.fullmatch(r"  powerSGD_hook\.py:\d+, in _orthogonalize", where)
    assert (code[:4], message) == ("    ", "AssertionError")


def test_a_call_that_torch_has_renamed_is_told_by_the_readers_line():
    first = by_old_names.__code__.co_firstlineno
    events = launch(by_old_names, 2).ledger.select(rank=0)
    assert [event.source for event in events] == [f"test_launch.py:{first + k}" for k in (1, 2)]


def waits_twice(rank, world_size):
    alone = dist.new_group([rank], use_local_synchronization=True)
    works = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(3)]
    works[0].wait()
    dist.barrier(group=alone)
    works[1].wait()
    dist.barrier()


def test_the_ledger_says_when_a_rank_began_to_wait():
    run = launch(waits_twice, 2)
    for rank in range(2):
        at_once, after, never = run.ledger.select("all_reduce", rank)
        mark, end = run.ledger.select("barrier", rank)
        assert never.start < at_once.wait_start < mark.start < after.wait_start < end.start
        assert never.wait_start is None
        assert end.wait_start >= end.start  # a call that blocks waits from its start


def policies(rank, world_size):
    """How the kernel schedules each thread of this rank."""
    tasks = Path("/proc/self/task").iterdir()
    return [int((task / "stat").read_text().rpartition(")")[2].split()[38]) for task in tasks]


@linux_only
def test_no_thread_of_a_rank_displaces_another_when_it_wakes():
    for found in launch(policies, 2).results:
        assert len(found) > 1, "gloo has a thread"
        assert set(found) == {os.SCHED_BATCH}


def ddp_step(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
    dist.barrier()
    model(torch.ones(2, 8)).sum().backward()


def test_threads_of_a_rank_append_to_its_output():
    member, (theirs, *_) = Member.create(0)
    assert fcntl.fcntl(member.output_fd, fcntl.F_GETFL) & os.O_APPEND
    member.close()
    theirs.close()


def prints_and_dies(rank, world_size):
    sys.stdout = sys.__stdout__  # as who had put another in its place
    print("my last words")
    os._exit(1)


def test_what_a_rank_printed_is_kept_though_it_put_pythons_own_output_back(monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Launcher() as launcher, pytest.raises(RankError) as raised:
        launch_on(launcher, prints_and_dies, 1)
    assert raised.value.run.output == ["my last words\n"]


def both_ways(rank, world_size):
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    group, x = dist.new_group(), torch.full((5,), float(rank))
    theirs, mine = torch.empty(5), torch.empty(5)

    def aside():
        sending = dist.isend(x, left, group=group)
        dist.recv(theirs, right, group=group)
        sending.wait()

    thread = threading.Thread(target=aside)
    thread.start()
    sending = dist.isend(x, right)
    dist.recv(mine, left)
    sending.wait()
    thread.join()
    return float(mine[0]), float(theirs[0])


def test_what_threads_of_a_rank_send_is_in_its_ledger():
    run = launch(both_ways, 3)
    assert run.results == [(2.0, 1.0), (0.0, 2.0), (1.0, 0.0)]
    assert [run.ledger.count("send", rank) for rank in range(3)] == [2, 2, 2]
    assert run.ledger.sent_bytes() == 3 * 2 * 20


def a_thread_waits(rank, world_size):
    if rank == 0:
        thread = threading.Thread(target=dist.recv, args=(torch.empty(3), 1))
        thread.start()
    time.sleep(3)  # longer than a deadlock takes to be found
    if rank == 1:
        dist.send(torch.ones(3), 0)
    dist.barrier(group=dist.new_group())
    return rank


def test_a_thread_that_waits_is_no_deadlock_while_its_rank_goes_on():
    assert launch(a_thread_waits, 2).results == [0, 1]


def a_thread_will_send(rank, world_size):
    x = torch.zeros(3)

    def read_and_send():
        time.sleep(3)  # longer than a deadlock takes to be found
        dist.send(torch.ones(3), 1)

    if rank == 0:
        threading.Thread(target=read_and_send).start()
    else:
        dist.recv(x, 0)
    dist.all_reduce(x)
    return x.tolist()


def test_a_thread_that_is_about_to_send_is_no_deadlock_while_all_others_wait():
    assert launch(a_thread_will_send, 2).results == [[1.0] * 3] * 2


def test_the_reducer_of_ddp_and_batched_messages_are_recorded():
    run = launch(ddp_step, 2)
    after = [e for e in run.ledger.events if e.op == "all_reduce"]
    assert [event.payload_bytes for event in after] == [4 * (8 * 4 + 4)] * 2
    run = launch(batched, 2)
    assert run.ledger.count("send") == run.ledger.count("recv") == 2
    assert [event.peer for event in run.ledger.select(rank=0)] == [1, 1]


def batched(rank, world_size):
    other = 1 - rank
    x, y = torch.ones(4), torch.empty(4)
    ops = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()


def holds_a_megabyte(rank, world_size):
    kept = torch.ones(250_000)
    for _ in range(5):
        kept = kept * 2  # for a moment two are held
    view = kept[:10]
    return view


def holds_more_and_less(rank, world_size):
    before = held_bytes()
    x = torch.zeros(250_000)
    most = held_bytes()
    del x
    return most - before, held_bytes() - before


def test_a_rank_can_ask_what_it_holds_now():
    assert launch(holds_more_and_less, 2, memory=True).results == [(1_000_000, 0)] * 2
    with pytest.raises(RankError, match="nobody follows memory here"):
        launch(holds_more_and_less, 1)


def test_peak_bytes_are_exact_and_views_are_free():
    assert launch(holds_a_megabyte, 2).peak_bytes is None
    run = launch(holds_a_megabyte, 2, memory=True)
    assert run.peak_bytes == [2_000_000, 2_000_000]


def test_perfetto_opens_what_is_exported(tmp_path):
    import json

    run = launch(overlapping, 2)
    trace = json.loads(run.ledger.to_perfetto(tmp_path / "trace.json").read_text())
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == len(run.ledger.events) == 6
    assert {event["tid"] for event in slices} == {0, 1}


def test_a_run_shows_itself_as_text_and_as_html():
    run = launch(add_up, 2, args=(torch.ones(1),))
    assert "2 × all_reduce" in repr(run)
    assert "from rank 1" in run._repr_html_()
    assert "all_reduce" in str(run.ledger)
    assert run.ledger._repr_html_().count("<tr>") == 3


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pids: list[int]) -> list[int]:
    wait_until(lambda: not any(map(alive, pids)))
    return []


def daemonise(rank, world_size, path):
    """Leave a process behind as a daemon does, and report its id."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(f"{path}/{rank}", "w") as file:
                file.write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    while not (Path(path) / str(rank)).exists() or not (Path(path) / str(rank)).read_text():
        time.sleep(0.01)
    os.setsid() if os.getpid() != os.getsid(0) else None


def test_a_daemon_that_a_rank_left_is_gone_when_launch_returns(tmp_path):
    launch(daemonise, 2, args=(str(tmp_path),))
    pids = [int((tmp_path / str(rank)).read_text()) for rank in range(2)]
    assert [pid for pid in pids if alive(pid)] == []


def return_twice(rank, world_size, fails):
    """Fork, and come back in both processes, or raise in the child."""
    x = torch.ones(1)
    is_child = os.fork() == 0
    if not is_child:
        os.wait()
        dist.all_reduce(x)
    elif fails:
        raise ValueError("of the child")
    return x.item(), is_child


@pytest.mark.parametrize("fails", [False, True])
def test_a_process_that_a_rank_forked_returns_nothing_for_it(fails):
    run = launch(return_twice, 2, args=(fails,))
    assert run.results == [(2.0, False)] * 2
    assert (run.ledger.count(), run.ledger.count("all_reduce")) == (2, 2)
    assert ("ValueError: of the child" in run.output[0]) == fails


def setsid_and_sleep(rank, world_size, path=None):
    os.setsid()
    if path is not None:
        (Path(path) / str(os.getpid())).touch()
    time.sleep(600)


def test_a_rank_in_a_session_of_its_own_is_gone_after_the_deadline(tmp_path):
    pids, deadline = [], 1
    while len(pids) != 2:  # where the processor is busy, two ranks are not there in a second
        deadline *= 2
        folder = tmp_path / str(deadline)
        folder.mkdir()
        with pytest.raises(DeadlineError):
            launch(setsid_and_sleep, 2, args=(str(folder),), deadline=deadline)
        pids = [int(path.name) for path in folder.iterdir()]
    assert [pid for pid in pids if alive(pid)] == []


STEP = """import os, pathlib, time, torch, torch.distributed as dist
from byhand import launch
def step(rank, world_size, path):
    if rank != 2 and os.fork() == 0:
        os.setsid()
    pathlib.Path(path, str(os.getpid())).touch()
    if rank == 2:
        return
    if rank == 0:
        dist.recv(torch.zeros(3), src=1)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def kernel():
    """A Jupyter kernel, its manager and its client."""
    manager, client = start_new_kernel(kernel_name="python3")
    client.execute(STEP)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def launched_from(client, folder):
    """The pids of three ranks and of what two forked, once a cell's launch has got so far."""
    cell = f"launch(step, 3, args=({str(folder)!r},), deadline=600)"
    client.execute(cell, stop_on_error=False)  # the next cell is not aborted
    wait_until(lambda: len(list(folder.iterdir())) == 5)
    pids = [int(path.name) for path in folder.iterdir()]
    wait_until(lambda: all(psutil.Process(pid).status() == "sleeping" for pid in pids))
    return pids


def test_the_stop_button_ends_the_ranks_and_shows_where_each_was_and_the_next_cell_runs(
    kernel, tmp_path
):
    manager, client = kernel
    pids = launched_from(client, tmp_path)
    manager.interrupt_kernel()
    content = {}
    while "traceback" not in content:
        content = client.get_iopub_msg()["content"]
    sentence, _, *rows = "\n".join(content["traceback"]).splitlines()
    assert content["ename"] == "Interrupted"
    assert sentence == "KeyboardInterrupt: the launch was stopped. Each rank was here:"
    assert [" ".join(row.split()) for row in rows] == [
        "rank state call with tensor line",
        "0 waiting recv peer 1 [3] float32 In [1] line 10",
        "1 running In [1] line 11",
        "2 returned",
    ]
    assert (len(pids), wait_until_gone(pids)) == (5, [])
    reply = client.execute_interactive("launch(lambda rank, n: rank, 2).results")
    assert reply["content"]["status"] == "ok"


def test_no_process_survives_a_killed_kernel(kernel, tmp_path):
    manager, client = kernel
    pids = launched_from(client, tmp_path)
    manager.signal_kernel(signal.SIGKILL)
    assert (len(pids), wait_until_gone(pids)) == (5, [])


def test_a_fork_server_that_dies_is_started_again():
    launch(main, 2, setup=False)
    server = byhand.runtime.default_launcher()._client._process
    server.kill()
    server.wait()
    assert launch(main, 2, setup=False).results == [1, 1]


def large_pages(pid):
    """Kilobytes of a process's memory that lie in large pages."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("AnonHugePages")).split()[1])


@pytest.mark.skipif(PORTABLE, reason="it is Linux that can")
def test_a_fork_server_that_forks_much_makes_its_list_of_pages_short():
    with Launcher() as launcher:
        for _ in range(MANY_RANKS // 2):
            launch_on(launcher, main, 2, setup=False)
        server = launcher._client.process_id
        time.sleep(2 * PAUSE_SECONDS)  # it begins, and answers when it is through
        launcher._client.count()
        found = large_pages(server)
        assert launch_on(launcher, main, 2, setup=False).results == [1, 1]
        assert launcher._client.process_id == server
    if found < 20_000:
        pytest.skip(f"this machine gave {found} KB in large pages")


def rules_and_optimizer(rank, world_size):
    """How many rules of torch's compiler are cached here, if it is here; then load and use it."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    cached = rules and rules.get_torch_obj_rule_map.cache_info().currsize
    torch.optim.SGD([torch.zeros(1)], 0.1).zero_grad()
    return cached


def test_torchs_compiler_is_loaded_when_a_rank_has_and_the_next_inherit_no_cache_of_it():
    with Launcher() as launcher:
        launch_on(launcher, lambda rank, world_size: torch.ones(1) + 1, 2, memory=True)
        first = launch_on(launcher, rules_and_optimizer, 2).results
        then = launch_on(launcher, rules_and_optimizer, 2, setup=False).results
    assert (first, then) == ([None] * 2, [0] * 2)


def test_a_ranks_tensors_travel_without_a_look_at_every_module(monkeypatch):
    class Module(ModuleType):
        asked = []

        def __getattr__(self, name):
            self.asked.append(name)
            raise AttributeError(name)

    monkeypatch.setitem(sys.modules, "zz_looked_at", Module("zz_looked_at"))
    kinds = [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64]
    sent = [torch.ones(2, 3, dtype=kind) for kind in kinds]
    fd = new_file("result")
    pickling.write(sent, fd)
    assert Module.asked == []
    found = pickling.read(fd, 0)
    os.close(fd)
    assert [t.dtype for t in found] == kinds
    assert all(map(torch.equal, sent, found))


def sleep_and_tell(rank, world_size, seconds=0.0):
    time.sleep(seconds)
    return os.getpid()


def test_an_idle_launcher_keeps_no_process_and_the_next_launch_starts_them_anew():
    with Launcher(idle_seconds=2) as launcher:
        with launcher._lock:  # so that none is ended before it has been seen
            launch_on(launcher, sleep_and_tell, 2, (3.0,))  # longer than that, and not ended
            server = launcher._client.process_id
            launcher._client.count()  # it has forked the next ranks before it answers
            waiting = [child.pid for child in psutil.Process(server).children()]
        assert len(waiting) == 2
        assert wait_until_gone([server, *waiting]) == []
        assert len(set(launch_on(launcher, sleep_and_tell, 2).results)) == 2
        assert launcher._client.process_id != server


def test_a_notebooks_own_launcher_ends_its_processes_when_idle():
    assert named_launcher("local").idle_seconds == IDLE_SECONDS > 0


def test_a_launch_that_comes_just_as_its_processes_end_gets_others():
    with Launcher(idle_seconds=0.2) as launcher:
        for _ in range(2):
            launcher.start()
            with launcher._lock:
                time.sleep(0.4)  # the time is up: whoever ends them waits for the lock too
            assert len(set(launch_on(launcher, sleep_and_tell, 2).results)) == 2


def ddp_that_misses_a_step(rank, world_size):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
    for _ in range(1 + rank):
        model(torch.ones(2, 8)).sum().backward()


def test_a_rank_stuck_in_the_reducer_of_ddp_is_a_deadlock():
    with pytest.raises(byhand.DeadlockError, match="rank 0 returned") as caught:
        launch(ddp_that_misses_a_step, 2, deadline=20)
    stuck = caught.value.reports[1]
    assert stuck.state == "waiting", "it waits in C++, where no log says it"
    assert stuck.call


def sleeps_with_a_message_under_way(rank, world_size):
    other = 1 - rank
    x, y = torch.ones(4), torch.empty(4)
    work = dist.isend(x, other)
    time.sleep(4)
    dist.recv(y, other)
    work.wait()


def test_sleeping_while_a_message_is_under_way_is_no_deadlock():
    assert launch(sleeps_with_a_message_under_way, 2).results == [None, None]


# The grader's side: untrusted ranks, fresh servers.


@pytest.fixture(scope="module")
def base():
    """What questions of untrusted code are forked from."""
    with Sandbox() as base:
        yield base


@linux_only
def test_the_judge_takes_only_plain_data_from_an_untrusted_rank(base):
    with base.fresh() as question:
        with pytest.raises(RankError, match="what the function returned cannot be graded"):
            launch_on(question, lambda rank, world_size: {1, 2}, 1)
        assert launch_on(question, lambda rank, world_size: ({"a": [1.5]}, None), 1).results == [
            ({"a": [1.5]}, None)
        ]


@linux_only
def test_numpys_generator_gives_each_rank_its_own_numbers_behind_walls_too(base):
    with base.fresh() as question:
        draws = launch_on(question, lambda rank, world_size: np.random.rand(), 2).results
    assert draws[0] != draws[1]


@linux_only
def test_a_question_gets_namespaces_of_its_own():
    if why_no_sandbox() is not None:
        pytest.skip(why_no_sandbox())

    def look(rank, world_size):
        with open("/tmp/left", "a") as file:
            file.write("x")
        return os.getpid(), os.listdir("/tmp"), os.path.getsize("/tmp/left")

    with tempfile.NamedTemporaryFile(dir="/tmp") as outside, Sandbox(sandbox_command()) as base:
        for _ in range(2):
            with base.fresh() as question:
                ((pid, listing, size),) = launch_on(question, look, 1).results
                assert pid < 20
                assert Path(outside.name).name not in listing
                assert size == 1  # what the first question left is not there


@pytest.fixture(scope="module")
def limited(base):
    """A question with limits, and without namespaces of its own."""
    return lambda **limits: base.fresh(limits=limits)


@linux_only
def test_limits_hold_on_a_rank(limited):
    def hog(rank, world_size):
        return torch.ones(1 << 30).sum().item()

    def shout(rank, world_size):
        while True:
            print("x" * 10_000)

    with limited(memory_bytes=3 << 30, output_bytes=1 << 20) as small:
        with pytest.raises(RankError, match=r"rank 0 (raised|died)"):
            launch_on(small, hog, 1)
        with pytest.raises(RankError, match="printed more than 1,048,576 bytes"):
            launch_on(small, shout, 1)


@linux_only
def test_too_much_output_is_named_whatever_the_rank_came_to_first(limited):
    def shout(rank, world_size, end):
        print("x" * (3 << 20 if end == "fill its file" else 2 << 20), flush=True)
        if end == "raise":
            raise ValueError("after the shout")
        if end == "die":
            os._exit(3)

    with limited(output_bytes=1 << 20, file_bytes=3 << 20) as small:
        for end in ("return", "raise", "fill its file", "die"):
            with pytest.raises(RankError, match="printed more than 1,048,576 bytes"):
                launch_on(small, shout, 2, (end,))


@linux_only
def test_the_launches_of_a_question_share_its_seconds(base):
    with base.fresh(seconds=2) as question:
        launch_on(question, time.sleep, 1, (1.5,), setup=False, alone=True)
        with pytest.raises(DeadlineError, match=r"within the deadline of 0\."):
            launch_on(question, setsid_and_sleep, 2)


def test_a_sandbox_that_cannot_start_says_why():
    with Launcher(command=("false",)) as broken, pytest.raises(SandboxError, match="ended by"):
        launch_on(broken, add_up, 2)


def test_launch_errors_are_one_family():
    assert issubclass(RankError, LaunchError)
    assert issubclass(byhand.DeadlockError, LaunchError)
    assert issubclass(DeadlineError, TimeoutError)


@pytest.mark.gpu
def test_auto_picks_nccl_at_one_rank_per_gpu_and_gloo_when_ranks_share():
    def reduce_on_device(rank, world_size):
        x = torch.ones(4, device=byhand.device(rank))
        dist.all_reduce(x)
        return x

    gpus = torch.cuda.device_count()
    alone, shared = launch(reduce_on_device, gpus), launch(reduce_on_device, gpus + 1)
    assert "nccl" in alone.backend
    assert shared.backend == "gloo"
    assert shared.results[0].tolist() == [gpus + 1.0] * 4


def test_sparse_tensors_are_counted_with_what_they_hold():
    def hold(rank, world_size):
        return torch.ones(1000, dtype=torch.float64).to_sparse().to_dense().sum().item()

    run = launch(hold, 1, memory=True)
    assert run.results == [1000.0]
    assert 3 * 8000 <= run.peak_bytes[0] <= 4 * 8000 + 100


@pytest.mark.parametrize(
    ("layout", "block", "places"),
    [
        (torch.sparse_csr, None, ("crow_indices", "col_indices")),
        (torch.sparse_csc, None, ("ccol_indices", "row_indices")),
        (torch.sparse_bsr, (2, 2), ("crow_indices", "col_indices")),
        (torch.sparse_bsc, (2, 2), ("ccol_indices", "row_indices")),
    ],
)
def test_a_compressed_sparse_tensor_holds_its_values_and_their_places(layout, block, places):
    def hold(rank, world_size):
        sparse = torch.eye(1000).to_sparse(layout=layout, blocksize=block)
        held = held_bytes()  # before its parts are asked for, which would count them
        parts = [getattr(sparse, name)().untyped_storage() for name in ("values", *places)]
        return held, sum(part.nbytes() for part in parts)

    [(held, num_bytes)] = launch(hold, 1, memory=True).results
    assert held == num_bytes > 4 * 1000 + 8 * 1000


def test_a_message_is_sent_though_its_reader_has_read_it_and_gone(monkeypatch):
    """A rank that ends at once took its call all the same: its end is its own."""
    ours, theirs = socket.socketpair()
    send_fds = socket.send_fds

    def sent_and_read(connection, parts, fds):
        sent = send_fds(connection, parts, fds)
        assert messages.receive_message(theirs) == (b"a call", [])
        theirs.close()
        return sent

    monkeypatch.setattr(socket, "send_fds", sent_and_read)
    messages.send_message(ours, b"a call")
    ours.close()
