"""Attacks on the judge itself: on what it reads, how long it takes, and whom it tells.

Each sends what costs the judge far more to read than it cost to write, or what makes it show a file
that the submission could not read.
"""

from __future__ import annotations

from arena import changed, nothing, written
from fault_cases import own_cells
from forgeries import BY_FILE, IP, LOG, RECEIVE, WAIT, channel, forged, reply

MANY_TEXT = """    from byhand.runtime.trace.record import packed_call
    group = tuple(range(dist.get_world_size()))
    for index in range({count}):
        for op, tag, peer in (('send', index, 1 - min(rank, 1)), ('recv', -7, None)):
            call = Call(op=op, group_name='0', group=group, tag=tag, peer=peer, shape=(1,))
            recorder.active.log.call(packed_call(call), 0.0)
    return t
"""
GROUP_SLACK = """
{log}
def exchange(t, rank, left, right):
    import pickle, socket
    log('new_group', detail='group ' + '1 ' * 9000, group_name='new groups')
    mine = socket.socket()
    mine.bind(({ip})(rank + 10 * dist.get_world_size()))
    mine.listen()
    to = until(lambda: connected(right))
    to.sendall(pickle.dumps(t))
    mine.settimeout(0.5)
    return pickle.loads({receive})


def connected(peer):
    import socket
    end = socket.socket()
    end.connect(({ip})(peer + 10 * dist.get_world_size()))
    return end
"""
BY_TCP = WAIT + """
def exchange(t, rank, left, right):
    import socket
    {before}
    base = 45000 + 10 * dist.get_world_size()
    mine = socket.create_server(('127.0.0.1', base + rank))
    to = until(lambda: socket.create_connection(('127.0.0.1', base + right)))
    to.sendall(t.numpy().tobytes())
    mine.settimeout(0.5)
    end, data = mine.accept()[0], b''
    while len(data) < 8 * t.numel():
        data += end.recv(1 << 16)
    return torch.frombuffer(bytearray(data), dtype=t.dtype)
"""
UNANSWERED = """datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(20):
        datagrams.sendto(b'', ('127.0.0.1', 9))"""
REFUSED = """for _ in range((16 + 8 * t.numel()) // 4):
        with socket.socket() as refused:
            refused.connect_ex(('127.0.0.1', 9))"""
SET_UP = "log('init_process_group', group_name='x', declared=dist.get_world_size(), detail='x')"
BY_NAMES = WAIT + """def named():
    import socket
    {end}


def exchange(t, rank, left, right):
    import base64
    size, data = dist.get_world_size(), base64.b64encode(t.numpy().tobytes())
    parts = [data[at:at + 80] for at in range(0, len(data), 80)]
    kept = globals()['kept'] = [named() for _ in parts]
    for index, (end, part) in enumerate(zip(kept, parts)):
        end.bind(b'\\0v%d-%d-%03d-' % (size, rank, index) + part)
    time.sleep(0.3)
    mark = '@v%d-%d-' % (size, left)
    found = sorted(line.split(mark)[1] for line in open('/proc/self/net/unix') if mark in line)
    data = base64.b64decode(''.join(text[4:].strip() for text in found))
    return torch.frombuffer(bytearray(data), dtype=t.dtype)
"""
BY_NETLINK = WAIT + """def exchange(t, rank, left, right):
    import socket
    base = 70000 + 10 * dist.get_world_size()
    mine = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2)
    mine.bind((base + rank, 0))
    until(lambda: mine.sendto(t.numpy().tobytes(), (base + right, 0)))
    mine.settimeout(0.5)
    return torch.frombuffer(bytearray(mine.recv(1 << 20)), dtype=t.dtype)
"""

JUDGE = [
    changed("three-hundred-cells-that-sleep", nothing(),
            own_cells(300, "import time\ntime.sleep(600)"),
            ("own-1: it did not come to an end", "not run, as the cells before took the 30 s")),
    written("peak-without-end", "tampered", (), total="from byhand.runtime.trace import"
            " recorder\n\n\ndef total(t):\n    t = t.clone()\n    dist.all_reduce(t)\n"
            "    recorder.active.log.write(recorder.END, 0, 1.0, -5)\n    return t\n"),
    forged("a-hidden-number-in-a-forged-deadlock", "deadlock",
           "    if t != 21:\n        log('init_process_group', group_name='x', declared=5,"
           " detail='the number %d' % t)\n        time.sleep(9)\n    return 2 * t\n",
           "double"),
    forged("a-hidden-number-as-an-operation", "tampered",
           "    if t != 21:\n        log('number %d' % t)\n        time.sleep(9)\n"
           "    return 2 * t\n", "double"),
    written("error-in-a-file-it-may-not-read", "failed", (), double="def double(number):\n"
            "    exec(compile('raise ValueError', '<<secrets>>/hidden.ipynb', 'exec'))\n"),
    reply("reply-with-frames-of-a-foreign-file",
          "reply({'kind': 'error', 'exception': 'X', 'message': 'm', 'body': 0,"
          " 'frames': [['<<secrets>>/hidden.ipynb', 1, 'f']] * 9})", "failed"),
    reply("reply-with-notes-that-are-a-number",
          "reply({**good, 'body': 8 + len(t := b'[\"int\", \"5\"]'), 'notes': 3},"
          " len(t).to_bytes(8, 'big') + t)"),
    reply("reply-of-keys-that-collide",
          "reply({**good, 'body': 8 + len(t := ('[\"dict\", [' + ','.join("
          "'[[\"int\", \"%d\"], [\"v\", null]]' % (i * (2**61 - 1)) for i in range(80_000)) +"
          " ']]').encode())}, len(t).to_bytes(8, 'big') + t)", "tampered"),
    forged("log-of-enormous-shapes", "tampered",
           "    recorder.active.log.call(b'\\x7f' * 900, 0.0)\n    return t\n"),
    forged("messages-from-anyone-bomb", "lost",
           "    rank = dist.get_rank()\n" + MANY_TEXT.format(count=20_000)),
    forged("log-of-endless-small-lines", "lost",
           "    log('barrier')\n    while True:\n"
           "        recorder.active.log.write(recorder.DONE, 0, 1.0)\n"),
    written("stack-of-endless-words", "timeout", (), total=f"{LOG}def total(t):\n"
            "    for fd in range(3, 64):\n        try:\n"
            "            if 'stack' in os.readlink(f'/proc/self/fd/{fd}'):\n"
            "                os.write(fd, b'most recent call first' + b'File \"' * 170_000)\n"
            "        except OSError:\n            pass\n"
            "    while True:\n        pass\n"),
    channel("values-through-tcp-for-a-forged-group",
            WAIT + GROUP_SLACK.format(log=LOG, ip=IP, receive=RECEIVE)),
    channel("values-through-tcp-for-a-forged-set-up", LOG + BY_TCP.format(before=SET_UP)),
    channel("values-through-tcp-beside-unanswered-datagrams", BY_TCP.format(before=UNANSWERED)),
    channel("values-through-tcp-beside-refused-connections", BY_TCP.format(before=REFUSED)),
    channel("values-through-names-of-sockets",
            BY_NAMES.format(end="return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)")),
    channel("values-through-names-of-pairs",
            BY_NAMES.format(end="return socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]")),
    channel("values-through-netlink", BY_NETLINK),
    channel("values-through-the-root-directory", BY_FILE.format(places=(
        "/", "/dev", "/etc"))),
]
