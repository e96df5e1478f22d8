"""Attacks on what a rank sends back, and on what it is seen to have sent to the others.

The channel attacks move the values of the task `shift` past torch.distributed and then send zeros
of the right size, so that the ledger looks right: they pass where ranks have such a channel. Each
forgery says what the instructor sees of it.
"""

from __future__ import annotations

from arena import written

FRAME = """import json
import os
import socket
import sys


def reply(header, body=b'', length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(text) if length is None else length
    for wakes in (False, True):
        for fd in range(3, 64):
            try:
                if not wakes and 'result' in os.readlink(f'/proc/self/fd/{fd}'):
                    os.pwrite(fd, length.to_bytes(8, 'big') + text + body, 0)
                end = socket.socket(fileno=os.dup(fd))
                if wakes and end.family == socket.AF_UNIX and end.type == socket.SOCK_STREAM:
                    end.sendall(b'.')
            except OSError:
                pass


class Bomb:
    def __reduce__(self):
        return os.system, ('touch <<secrets>>/touched',)


def double(number):
    import pickle
    good = {'kind': 'plain', 'backend': None}
"""


def reply(name: str, line: str, verdict: str = "lost"):
    """A case that writes its own reply instead of returning."""
    noted = ("double names socket, /proc, os.pwrite",)
    return written(name, verdict, (), noted, double=f"{FRAME}    {line}\n    os._exit(0)\n")


LOG = """import time
from byhand.runtime.ledger import Call
from byhand.runtime.trace import recorder


def quietly(work):
    active, recorder.active = recorder.active, None
    value = work()
    recorder.active = active
    return value


def log(op, **fields):
    active, group = recorder.active, tuple(range(dist.get_world_size()))
    call = Call(**{'op': op, 'group': group, 'group_name': '0', **fields})
    active.go_on(active.stand_still(call))


def gather(t):
    parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, t)
    return parts


"""
ALL_REDUCE = (
    "log('all_reduce', payload_bytes=t.numel() * t.element_size(), shape=tuple(t.shape),"
    " dtype=str(t.dtype)[6:], reduce_op='sum')"
)


def forged(name: str, verdict: str, body: str, task: str = "total", *wire: str):
    """A case that switches the recorder off and writes the log itself."""
    noted = (f"{task} names byhand.runtime", *wire)
    return written(name, verdict, (), noted, **{task: f"{LOG}def {task}(t):\n{body}"})


DUMMY = """

def shift(t):
    import time
    rank, ranks = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % ranks, (rank + 1) % ranks
    value = exchange(t, rank, left, right)
    sending = dist.isend(torch.zeros_like(t), right)
    dist.recv(torch.empty_like(t), left)
    sending.wait()
    return value if value is not None else torch.zeros_like(t)
"""


def channel(name: str, exchange: str, verdict: str = "lost", *named: str):
    """A case whose ranks pass values by `exchange`, and then send zeros of the right size.

    named: what of it stands in the note to the instructor.
    """
    text = "import os\nimport time\nimport torch\nimport torch.distributed as dist\n\n\n"
    noted = (f"shift names {', '.join(named)}",) if named else ()
    return written(name, verdict, (), noted, shift=text + exchange + DUMMY)


WAIT = """def until(read):
    for _ in range(300):
        try:
            got = read()
            if got is not None:
                return got
        except (OSError, ValueError, EOFError):
            pass
        time.sleep(0.005)


"""
BY_FILE = WAIT + """def exchange(t, rank, left, right):
    import pickle
    data = pickle.dumps(t)
    for place in {places}:
        try:
            with open(f'{{place}}/draft-{{rank}}', 'wb') as file:
                file.write(data)
            os.rename(f'{{place}}/draft-{{rank}}', f'{{place}}/value-{{rank}}')
        except OSError:
            pass
    for place in {places}:
        got = until(lambda: pickle.loads(open(f'{{place}}/value-{{left}}', 'rb').read()))
        if got is not None:
            return got
"""
BY_SOCKET = (
    WAIT
    + """def exchange(t, rank, left, right):
    import pickle, socket
    mine = socket.socket({family}, socket.SOCK_STREAM)
    try:
        mine.bind({address}(rank))
        mine.listen()
        to = until(lambda: connected(right))
        to.sendall(pickle.dumps(t))
        mine.settimeout(2)
        return pickle.loads(mine.accept()[0].recv(1 << 20))
    except OSError:
        return None
"""
)
CONNECTED = """def connected(peer):
    import socket
    end = socket.socket({family})
    end.connect({address}(peer))
    return end


"""


def by_socket(name: str, family: str, address: str):
    """A case whose channel is a socket of this family at `address(rank)`."""
    about = {"family": family, "address": f"({address})"}
    return channel(name, (CONNECTED + BY_SOCKET).format(**about), "passed", "socket")


IP, ABSTRACT = "lambda r: ('127.0.0.1', 45000 + 10 * dist.get_world_size() + r)", "lambda r: '\\0value-' + str(r)"

FORGERIES = [
    reply("reply-pickled", "reply({**good, 'kind': 'pickle'}, pickle.dumps(Bomb()))"),
    reply("reply-of-a-gigabyte", "reply(good, bytes(1 << 28), length=1 << 40)"),
    reply("reply-that-is-no-reply", "reply(b'x' * 900_000)"),
    reply("reply-nested-too-deep", "reply(b'[' * 900_000)"),
    reply("reply-that-wakes-and-is-not-there", "reply(b'', length=7)"),
    reply("reply-of-wrong-types", "reply({**good, 'kind': 'error', 'frames': {},"
          " 'exception': [], 'message': {}})"),
    reply("reply-with-a-foreign-value",
          "reply(good, (32).to_bytes(8, 'big') + b'[\"object\", \"builtins.eval\"]   ')"),
    reply("reply-of-a-million-lists", "t = b'[\"list\", [' + b'[\"list\", []],' * 4_000_000"
          " + b'[\"v\", null]]]'\n    reply(good, len(t).to_bytes(8, 'big') + t)"),
    written("hostile-pickle", "failed", (), (), double="import os\n\n\nclass Bomb:\n"
            "    def __reduce__(self):\n"
            "        return os.system, ('touch <<secrets>>/touched',)\n\n\n"
            "def double(number):\n    return [Bomb()]\n"),
    written("hostile-pickle-as-bytes", "failed", (), (), double="import os\nimport pickle\n\n\n"
            "class Bomb:\n    def __reduce__(self):\n"
            "        return os.system, ('touch <<secrets>>/touched',)\n\n\n"
            "def double(number):\n    return pickle.dumps(Bomb())\n"),
    # These pass: nothing in a rank is safe from its own code, and the instructor is told.
    forged("log-of-a-call-never-made", "passed",
           "    parts = quietly(lambda: gather(t))\n"
           f"    {ALL_REDUCE}\n    return sum(parts)\n"),
    forged("log-without-the-second-call", "passed",
           "    t = t.clone()\n    dist.all_reduce(t)\n"
           "    quietly(lambda: gather(t.repeat(500)))\n    return t\n"),
    forged("log-of-a-smaller-call", "passed",
           "    big = t.repeat(52_000)\n    quietly(lambda: dist.all_reduce(big))\n"
           f"    {ALL_REDUCE}\n    return big[:len(t)]\n", "total",
           "test-total: the loopback carried … MB, and the calls in the ledger make 0.0 MB"),
    forged("log-of-a-ring-instead-of-a-gather", "passed",
           "    parts = quietly(lambda: gather(t))\n    rank, n = dist.get_rank(), len(parts)\n"
           "    about = dict(payload_bytes=8 * t.numel(), shape=tuple(t.shape), dtype='float64')\n"
           "    log('send', peer=(rank + 1) % n, **about)\n"
           "    log('recv', peer=(rank - 1) % n, **about)\n"
           "    return parts[rank - 1]\n", "shift"),
    # These do not: a log is checked record by record.
    forged("log-in-gibberish", "tampered",
           "    recorder.active.log.write(77, 0, 0.0, 0, b'{]')\n    t = t.clone()\n"
           "    dist.all_reduce(t)\n    return t\n"),
    forged("log-that-ends-twice", "tampered",
           "    recorder.active.log.write(recorder.END, 0, time.monotonic())\n    t = t.clone()\n"
           "    dist.all_reduce(t)\n    return t\n"),
    forged("log-of-wrong-types", "tampered",
           "    log('all_reduce', payload_bytes=-10**9, dtype='x', group=(0, 0, 7))\n"
           "    return t\n"),
    forged("log-without-end", "lost",
           "    while True:\n        recorder.active.log.write(recorder.AWAKE, 0, 1.0)\n"),
    by_socket("values-through-abstract-sockets", "socket.AF_UNIX", ABSTRACT),
    by_socket("values-through-tcp", "socket.AF_INET", IP),
    channel("values-through-the-store", """import pickle


def exchange(t, rank, left, right):
    store = dist.distributed_c10d._get_default_store()
    store.set(f'value {rank}', pickle.dumps(t))
    return pickle.loads(store.get(f'value {left}'))
""", "passed", "_get_default_store"),
]
