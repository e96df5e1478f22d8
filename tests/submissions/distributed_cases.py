"""Hand-ins whose ranks do not fit together, or leave something behind."""

from __future__ import annotations

from arena import verdicts, written

DAEMON = """def leave_behind(work):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work()
        os._exit(0)
    os.wait()


"""
HANG = "    import signal\n    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n"


def total(name: str, body: str, verdict, *says: str):
    """A case of the task `total`, with this body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return written(name, verdict, says, total=f"def total(t):\n    rank = dist.get_rank()\n{lines}")


def shift(name: str, body: str, verdict, *says: str):
    """A case of the task `shift`, with this body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return written(name, verdict, says, shift=(
        "def shift(t):\n    rank, ranks = dist.get_rank(), dist.get_world_size()\n"
        f"    left, right = (rank - 1) % ranks, (rank + 1) % ranks\n{lines}"))


DISTRIBUTED = [
    total("skips-a-collective", "if rank == 0:\n    dist.all_reduce(t)\nreturn t", "deadlock",
          "Where each rank was"),
    total("mismatched-operations", "if rank:\n    dist.all_reduce(t)\nelse:\n    dist.barrier()\n"
          "return t", "deadlock", "all_reduce", "barrier"),
    total("mismatched-shapes", "dist.all_reduce(torch.ones(2, 3) if rank else torch.ones(6))\n"
          "return t", "deadlock"),
    total("mismatched-sizes", "dist.all_reduce(torch.ones(2 + rank))\nreturn t", "deadlock"),
    total("mismatched-dtypes", "t = t.float() if rank else t\ndist.all_reduce(t)\nreturn t",
          "deadlock"),
    total("mismatched-reductions", "op = dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM\n"
          "dist.all_reduce(t, op=op)\nreturn t", "deadlock"),
    total("mismatched-roots", "dist.broadcast(t, rank)\nreturn t", "deadlock"),
    total("mismatched-groups", "group = dist.new_group([0, rank])\n"
          "dist.all_reduce(t, group=group)\nreturn t", "lost"),
    shift("receive-cycle", "got = torch.empty_like(t)\ndist.recv(got, left)\n"
          "dist.send(t, right)\nreturn got", "deadlock", "Where each rank was"),
    shift("send-cycle", "got = torch.empty_like(t)\ndist.send(t, right)\n"
          "dist.recv(got, left)\nreturn got", "deadlock"),
    shift("receives-more-than-was-sent", "sending = dist.isend(t, right)\n"
          "got = torch.empty(2 * len(t), dtype=t.dtype)\ndist.recv(got, left)\n"
          "sending.wait()\nreturn got[:len(t)]", "lost"),
    shift("send-without-wait", "got = torch.empty_like(t)\ndist.isend(t, right)\n"
          "return got", "failed"),
    total("one-rank-raises", "if rank == 1:\n    raise ValueError('rank 1')\n"
          "dist.all_reduce(t)\nreturn t", "failed", "rank 1 raised ValueError"),
    total("one-rank-exits", "if rank == 1:\n    os._exit(0)\ndist.all_reduce(t)\nreturn t",
          "crashed"),
    total("one-rank-stops-itself", "if rank == 1:\n    os.kill(os.getpid(), 19)\n"
          "dist.all_reduce(t)\nreturn t", "lost"),
    written("hangs-in-a-session-of-its-own", "timeout", (), total=(
        "def total(t):\n    import time\n    if os.fork():\n        os.wait()\n    os.setsid()\n"
        f"{HANG}    while True:\n        time.sleep(60)\n")),
    written("leaves-a-daemon", verdicts(), (), double=(
        f"import os\n\n\n{DAEMON}def double(number):\n"
        "    leave_behind(lambda: __import__('time').sleep(600))\n    return 2 * number\n")),
    written("keeps-a-port", verdicts(), (), total=(
        f"import socket\n\n\n{DAEMON}def keep():\n    kept = socket.create_server(('', 29500))\n"
        "    kept.accept()\n\n\ndef total(t):\n    if dist.get_rank() == 0:\n"
        "        leave_behind(keep)\n    t = t.clone()\n    dist.all_reduce(t)\n    return t\n")),
    total("destroys-the-group", "t = t.clone()\ndist.all_reduce(t)\n"
          "dist.destroy_process_group()\nreturn t", verdicts()),
    total("makes-a-group-of-its-own", "group = dist.new_group()\nt = t.clone()\n"
          "dist.all_reduce(t, group=group)\nreturn t", verdicts()),
    total("hard-coded-world-size", "dist.all_reduce(t)\nreturn t if dist.get_world_size() == 2"
          " else t * 2 / dist.get_world_size()", "failed", "three ranks"),
    total("a-thread-that-never-ends", "import threading\nimport time\n"
          "threading.Thread(target=time.sleep, args=(600,)).start()\nt = t.clone()\n"
          "dist.all_reduce(t)\nreturn t", verdicts()),
    total("one-call-too-many", "t = t.clone()\ndist.all_reduce(t)\ndist.barrier()\nreturn t",
          "failed", "barrier"),
    shift("an-all-gather-instead", "parts = [torch.empty_like(t) for _ in range(ranks)]\n"
          "dist.all_gather(parts, t)\nreturn parts[left]", "failed"),
    shift("batched-messages", "got = torch.empty_like(t)\n"
          "for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, t, right),\n"
          "                                    dist.P2POp(dist.irecv, got, left)]):\n"
          "    work.wait()\nreturn got", verdicts()),
]
