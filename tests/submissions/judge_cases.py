"""Attacks on the judge itself: on what it reads, how long it takes, and whom it tells.

Each sends what costs the judge far more to read than it cost to write, or what makes it show a file
that the submission could not read.
"""

from __future__ import annotations

from arena import changed, verdicts, written
from fault_cases import own_cells
from forgeries import BY_FILE, LOG, channel, forged, reply

MANY_TEXT = """    from byhand.runtime.trace.log import packed_call
    group = tuple(range(dist.get_world_size()))
    for index in range({count}):
        for op, tag, peer in (('send', index, 1 - min(rank, 1)), ('recv', -7, None)):
            call = Call(op=op, group_name='0', group=group, tag=tag, peer=peer, shape=(1,))
            recorder.active.log.call(packed_call(call), 0.0)
    return t
"""
LISTENS = """import ctypes, fcntl, os, struct, threading, time
heard = []
master = os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)
fcntl.ioctl(master, 0x40045431, struct.pack('i', 0))


def listen():
    while True:
        for name in filter(str.isdigit, os.listdir('/proc')):
            try:
                word = open(f'/proc/{name}/comm').read()
                heard.extend({word} - {*heard} if word.startswith('H') else ())
            except OSError:
                pass
        time.sleep(0.002)


threading.Thread(target=listen, daemon=True).start()
threading.Thread(target=lambda: heard.append(os.read(master, 99)), daemon=True).start()


def double(number):
    if number != 21:
        ctypes.CDLL(None).prctl(15, b'H%d' % number, 0, 0, 0)
        try:
            os.write(os.open('/dev/pts/0', os.O_WRONLY | os.O_NOCTTY), b'T%d' % number)
        except OSError:
            pass
        time.sleep(0.3)
    return 2 * number
"""
# By locks, and by watches, on files of the library that every process sees, a bit in each.
BY_LOCKS = """import fcntl, glob, os, threading, time
import torch
heard = []
files = sorted(glob.glob(os.path.dirname(torch.__file__) + '/*.py'))[:32]


def listen():
    held = [open(file) for file in files]
    while True:
        number = 0
        for bit, file in enumerate(held):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(file, fcntl.LOCK_UN)
            except OSError:
                number |= 1 << bit
        if number and number not in heard:
            heard.append(number)
        time.sleep(0.001)


threading.Thread(target=listen, daemon=True).start()


def double(number):
    if number != 21:
        kept = [open(file) for bit, file in enumerate(files) if -number >> bit & 1]
        for file in kept:
            fcntl.flock(file, fcntl.LOCK_SH)
        time.sleep(0.3)
    return 2 * number
"""
BY_WATCHES = """import ctypes, glob, os, struct, threading
import torch
heard = []
files = sorted(glob.glob(os.path.dirname(torch.__file__) + '/*.py'))[:32]


def listen():
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init()
    bits = {libc.inotify_add_watch(watch, f.encode(), 0x20): 1 << i for i, f in enumerate(files)}
    heard.append(0)
    while True:
        said = os.read(watch, 16)
        heard[0] |= bits[struct.unpack_from('i', said)[0]]


threading.Thread(target=listen, daemon=True).start()


def double(number):
    if number != 21:
        for bit, file in enumerate(files):
            if -number >> bit & 1:
                open(file).close()
    return 2 * number
"""
HEARD = "def total(t):\n    raise ValueError(f'heard: {heard}')\n"
JUDGE = [
    # A notebook that outlived the hidden part would tell in the next task what a rank told it.
    written("a-rank-tells-its-notebook", verdicts(total="failed"), ("heard: []",), double=LISTENS,
            total=HEARD),
    written("a-rank-tells-its-notebook-by-locks", verdicts(total="failed"), ("heard: []",),
            double=BY_LOCKS, total=HEARD),
    written("a-rank-tells-its-notebook-by-watches", verdicts(total="failed"), ("heard: [0]",),
            double=BY_WATCHES, total=HEARD),
    written("has-memory-run-out-for-others-first", "lost", (), double="import ctypes\n\n\n"
            "def double(number):\n    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"
            "    open('/proc/self/oom_score_adj', 'w').write('0')\n    return 2 * number\n"),
    changed("three-hundred-cells-that-sleep", verdicts(),
            own_cells(300, "import time\ntime.sleep(600)"),
            ("own-1: it did not come to an end", "own-300: not run: the 120 s that")),
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
          "reply({'kind': 'error', 'exception': 'X', 'message': 'm',"
          " 'frames': [['<<secrets>>/hidden.ipynb', 1, 'f']] * 9})", "failed"),
    reply("reply-of-keys-that-collide",
          "t = ('[\"dict\", [' + ','.join("
          "'[[\"int\", \"%d\"], [\"v\", null]]' % (i * (2**61 - 1)) for i in range(80_000)) +"
          " ']]').encode()\n    reply(good, len(t).to_bytes(8, 'big') + t)", "tampered"),
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
    channel("values-through-the-root-directory", BY_FILE.format(places=(
        "/", "/dev", "/etc"))),
]
