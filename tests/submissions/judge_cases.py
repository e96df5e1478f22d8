"""Attacks on the judge itself: on what it reads, how long it takes, and whom it tells.

Each sends what costs the judge far more to read than it cost to write, or what makes it show a file
that the submission could not read.
"""

from __future__ import annotations

from arena import written
from forgeries import BY_FILE, IP, LOG, RECEIVE, WAIT, channel, forged, reply

MANY_TEXT = """    lines = []
    for index in range({count}):
        for op, tag, peer in (('send', index, 1 - min(rank, 1)), ('recv', -7, None)):
            lines.append(json.dumps(['call', 2 * index + (op == 'recv'), {{
                'op': op, 'group_name': '0', 'group': [0, 1, 2][:dist.get_world_size()],
                'source': ['x', 1], 'tag': tag, 'peer': peer, 'shape': [1]}}, 0]))
    os.write(recorder._active.log_fd, ('\\n'.join(lines) + '\\n').encode())
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

JUDGE = [
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
           "    log('send', peer=0, tag=0, payload=0, dtype='float64',"
           " shape=[int('9' * 4000)] * 100)\n    return t\n"),
    forged("messages-from-anyone-bomb", "lost",
           "    import json\n    rank = dist.get_rank()\n" + MANY_TEXT.format(count=20_000)),
    forged("log-of-endless-small-lines", "lost",
           f"    log('barrier')\n    while True:\n"
           "        os.write(recorder._active.log_fd, b'[\"done\",0,1.0]\\n' * 10_000)\n"),
    written("stack-of-endless-words", "timeout", (), total=f"{LOG}def total(t):\n"
            "    for fd in range(3, 64):\n        try:\n"
            "            if 'stack' in os.readlink(f'/proc/self/fd/{fd}'):\n"
            "                os.write(fd, b'most recent call first' + b'File \"' * 170_000)\n"
            "        except OSError:\n            pass\n"
            "    while True:\n        pass\n"),
    channel("values-through-tcp-for-a-forged-group",
            WAIT + GROUP_SLACK.format(log=LOG, ip=IP, receive=RECEIVE)),
    channel("values-through-the-root-directory", BY_FILE.format(places=(
        "/", "/dev", "/etc"))),
]  # fmt: skip
