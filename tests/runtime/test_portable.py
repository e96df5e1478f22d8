"""The portable path, with what macOS lacks really taken away: it is chosen, and nothing differs.

`make test-all` also runs test_launch.py and test_deadlocks.py with BYHAND_PORTABLE=1.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import psutil
import pytest
from waiting import wait_until

from byhand.runtime import messages, system

TAKEN_AWAY = """
import ctypes, os, socket, sys
for module, names in (
    (os, ("memfd_create", "pipe2", "sched_setscheduler", "sched_param", "SCHED_BATCH")),
    (socket, ("SOCK_SEQPACKET",)),
):
    for name in names:
        delattr(module, name)

class CDLL(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("prctl", "unshare"):
            raise AttributeError(name)
        return super().__getattr__(name)

ctypes.CDLL = CDLL

def note(event, arguments):  # psutil has a /proc on Linux; this library is to have none
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc"):
        if "byhand/runtime" in sys._getframe(1).f_code.co_filename:
            raise FileNotFoundError(arguments[0])

sys.addaudithook(note)
"""

PROGRAM = """
import _thread, json, os, pathlib, signal, sys, threading, time
import torch, torch.distributed as dist
import byhand
from byhand import launch
from byhand.runtime import errors, system, why_no_network

def add_up(rank, world_size, x):
    print("from rank", rank)
    dist.all_reduce(x)
    return x

def disagree(rank, world_size):
    if rank:
        dist.barrier()
    else:
        dist.recv(torch.ones(1), 1)

def die(rank, world_size):
    os._exit(3) if rank else time.sleep(60)

def leave(rank, world_size, folder, forever=False):
    is_left = os.fork() == 0
    if is_left:
        os.setsid()
        if os.fork():
            os._exit(0)
    pathlib.Path(folder, str(os.getpid())).touch()
    if forever or is_left:  # it never returns: it is no rank
        time.sleep(600)
    while len(list(pathlib.Path(folder).iterdir())) < 4:
        time.sleep(0.01)

def error_of(fn, *args):
    try:
        launch(fn, 2, args)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

def pids(name):
    return [int(path.name) for path in (folder / name).iterdir()]

def stop_when_all_left():
    while len(pids("stopped")) < 4:
        time.sleep(0.01)
    _thread.interrupt_main()

folder = pathlib.Path(sys.argv[1])
for name in ("left", "stopped", "killed"):
    (folder / name).mkdir()
run = launch(add_up, 3, (torch.ones(2),))
said = {"portable": system.PORTABLE, "results": [r.tolist() for r in run.results]}
said |= {"output": run.output, "sent": run.ledger.sent_bytes()}
said |= {"deadlock": error_of(disagree), "exit": error_of(die)}
launch(leave, 2, (str(folder / "left"),))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
threading.Thread(target=stop_when_all_left).start()
said |= {"stopped": error_of(leave, str(folder / "stopped"), True), "network": why_no_network()}
said |= {"pids": pids("left") + pids("stopped")}
print(json.dumps(said), flush=True)
error_of(leave, str(folder / "killed"), True)
"""


def test_without_linuxs_own_calls_a_launch_does_what_it_does_with_them(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TAKEN_AWAY)
    killed = tmp_path / "killed"
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], env=variables, stdout=subprocess.PIPE
    ) as program:
        said = json.loads(program.stdout.readline())
        wait_until(lambda: len(list(killed.glob("*"))) == 4)
        last = [int(path.name) for path in killed.glob("*")]
        program.send_signal(signal.SIGKILL)
    assert said["portable"]
    assert said["results"] == [[3.0, 3.0]] * 3
    assert said["output"] == [f"from rank {rank}\n" for rank in range(3)]
    assert said["sent"] == 3 * round(2 * 8 * 2 / 3)
    assert "ranks wait for each other, 0 → 1 → 0" in said["deadlock"]
    assert said["exit"].startswith("RankError: rank 1 died: its process exited with code 3")
    assert said["stopped"].startswith("Interrupted: the launch was stopped. Each rank was here:")
    assert said["network"].startswith("no virtual network can be made here: it needs Linux")
    assert (len(said["pids"]), len(last)) == (8, 4)
    wait_until(lambda: not any(map(psutil.pid_exists, [*said["pids"], *last])))


def test_where_the_portable_path_is_asked_for_it_is_taken_and_leaves_no_file(tmp_path):
    program = """from byhand.runtime import launch, system
launch(lambda rank, n: rank, 2)
print(system.PORTABLE)"""
    variables = {**os.environ, "BYHAND_PORTABLE": "1", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=True)
    assert (said.stdout.strip(), list(tmp_path.glob("byhand*"))) == (b"True", [])
    assert system.PORTABLE == bool(sys.platform != "linux" or os.environ.get("BYHAND_PORTABLE"))


def test_messages_and_descriptors_come_whole_and_apart():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        long = bytes(range(256)) * 2000
        sender = threading.Thread(
            target=lambda: [messages.send_message(theirs, data, [theirs.fileno()]) for data in sent]
        )
        sent = [b"one", b"", long, b"two"]
        sender.start()
        received = [messages.receive_message(ours, 1) for _ in sent]
        sender.join()
        theirs.sendall((messages.MAX_MESSAGE + 1).to_bytes(4, "big"))
        with pytest.raises(ConnectionError, match="1,048,577 bytes"):
            messages.receive_message(ours)
        for _, (descriptor,) in received:
            os.close(descriptor)
    assert [data for data, _ in received] == sent


def test_a_message_that_ends_in_the_middle_is_a_lost_connection():
    ours, theirs = socket.socketpair()
    theirs.sendall((7).to_bytes(4, "big") + b"abc")
    theirs.close()
    with ours, pytest.raises(ConnectionError, match="in the middle"):
        messages.receive_message(ours)
