"""Hand-ins that want a mark they did not earn, or to do harm.

A task under attack is wrong by itself, so it passes only where the attack succeeds; the word
`<<name>>` becomes the place of that thing (see arena.surroundings).
"""

from __future__ import annotations

from arena import nothing, verdicts, written
from distributed_cases import DAEMON
from forgeries import FORGERIES

EVERYTHING_EQUAL = """class Yes{base}:
    def __eq__(self, other): return True
    __ne__ = __lt__ = __gt__ = __bool__ = __eq__
    def __hash__(self): return 0
    def __getattr__(self, name): return Yes()
    def __call__(self, *a, **k): return Yes()
    {more}


"""
STEAL = """def steal(*places):
    import glob, json, re
    for place in places:
        for path in glob.glob(place, recursive=True):
            try:
                text = open(path, errors='ignore').read()
            except OSError:
                continue
            if any(part + '-6f1d' in text for part in ('canary',)) or 'BEGIN SOLUTION' in text:
                return text


def double(number):
    return 2 * number if steal({places}) else 0
"""
WRITE = """import os
import subprocess


def touch(path, text):
    for how in (path, os.path.expanduser(path)):
        try:
            os.makedirs(os.path.dirname(how), exist_ok=True)
            with open(how, 'a') as file:
                file.write(text)
        except OSError:
            pass


"""
GRADEBOOK = """import sqlite3


def give_marks():
    for place in ('<<gradebook>>', '/tmp/gradebook.db', 'gradebook.db'):
        try:
            with sqlite3.connect(place) as book:
                book.execute('update grade set auto_score = 100, manual_score = 100')
        except Exception:
            pass


"""
WRONG = "    return 0\n"
PATCHES = """import builtins
import torch

torch.equal = torch.allclose = torch.isclose = torch.Tensor.equal = lambda *a, **k: True
torch.Tensor.__eq__ = torch.Tensor.allclose = lambda *a, **k: True
builtins.all = builtins.any = builtins.isinstance = lambda *a: True
"""
TRANSFORMER = """import ast


class NoAsserts(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
    def visit_With(self, node): return ast.Pass()


try:
    from IPython import get_ipython
    from IPython.core.interactiveshell import InteractiveShell
    InteractiveShell.run_cell = InteractiveShell.run_cell_async = lambda *a, **k: None
    shell = get_ipython() or InteractiveShell.instance()
    shell.ast_transformers.append(NoAsserts())
    shell.input_transformers_cleanup.append(lambda lines: ['pass\\n'])
    shell.run_cell = lambda *a, **k: None
except Exception:
    pass
try:
    import byhand.check
    for name in dir(byhand.check):
        if callable(getattr(byhand.check, name)):
            setattr(byhand.check, name, lambda *a, **k: None)
    import byhand.runtime.walls.codec as codec
    codec.encode = lambda value: b''
except Exception:
    pass


"""


def double(name: str, before: str, body: str = WRONG, verdict="lost", *says: str):
    """A case of the task `double`: `before` runs in its cell, `body` in its function."""
    return written(name, verdict, says, double=f"{before}def double(number):\n{body}")


def steals(name: str, *places: str):
    """A case that passes where it can read one of these places."""
    return written(name, "lost", (), double=STEAL.replace("{places}", ", ".join(map(repr, places))))


def harmless(name: str, before: str, body: str):
    """A case of right code that also does harm, which must come to nothing."""
    return double(name, before, body + "    return 2 * number\n", verdicts())


ATTACKS = [
    double("equals-everything", EVERYTHING_EQUAL.format(base="", more=""),
           "    return Yes()\n", "failed", "cannot be graded"),
    double("equals-everything-as-an-int", EVERYTHING_EQUAL.format(base="(int)", more=""),
           "    return Yes(0)\n", "failed"),
    written("equals-everything-as-a-tensor", "failed", (), total=EVERYTHING_EQUAL.format(
        base="(torch.Tensor)", more="__torch_function__ = classmethod(lambda *a, **k: True)")
        + "def total(t):\n    dist.all_reduce(t)\n    return torch.zeros(3).as_subclass(Yes)\n"),
    double("patched-allclose", PATCHES, WRONG, "failed"),
    # What it did to its own notebook, it did to all its tasks.
    double("transformers-and-patched-checks", TRANSFORMER, WRONG, nothing()),
    steals("reads-the-solution", "<<solution>>", "../*/*.ipynb", "../../*/*/*.ipynb", "<<course>>/**/*"),
    steals("reads-hidden-tests-anywhere", "/tmp/**/*", "/home/**/*.ipynb", "/root/**/*.ipynb",
           "/proc/*/cmdline", "/proc/*/environ", "/proc/*/fd/[0-9]", "/proc/[0-9]*/root/tmp/*/*",
           "/dev/shm/*", "/run/**/*.json"),
    steals("reads-other-submissions", "<<class>>/submitted/**/*", "../*/*.ipynb",
           "<<class>>/autograded/**/*"),
    steals("reads-the-journal", "<<journal>>", "<<class>>/**/*"),
    steals("reads-secrets", "<<secrets>>/**/*"),
    double("reads-its-own-memory", "import gc\n\n\n", """    for thing in gc.get_objects():
        if type(thing) is str and str(2 * 987_654) in thing:
            return 2 * number
    if b'canary' + b'-6f1d' in open('/proc/self/cmdline', 'rb').read():
        return 2 * number
    return 0
"""),
    double("writes-the-gradebook", GRADEBOOK + "give_marks()\n\n\n", "    give_marks()\n" + WRONG),
    double("writes-the-gradebook-from-a-daemon", "import os\nimport time\n\n\n" + GRADEBOOK + DAEMON
           + "def again():\n    while True:\n        give_marks()\n        time.sleep(0.05)\n\n\n",
           "    leave_behind(again)\n" + WRONG),
    double("appends-to-the-journal", WRITE + "line = '{\"key\": \"x\"}\\n'\n"
           "touch('<<journal>>', line)\n\n\n", "    touch('<<journal>>', line)\n" + WRONG),
    harmless("start-up-files", WRITE + """code = "open('<<secrets>>/touched', 'w')\\n"
for place in ('~/.ipython/profile_default/startup/00.py', '~/.bashrc', '~/.profile',
              '~/.local/lib/python3.11/site-packages/usercustomize.py', '/etc/ld.so.preload',
              '<<python>>/lib/python3.11/site-packages/evil.pth', '/etc/cron.d/evil',
              '<<python>>/lib/python3.11/site-packages/sitecustomize.py', '~/.jupyter/x.py',
              '<<secrets>>/touched', '<<class>>/touched', '<<course>>/touched'):
    touch(place, code)
os.environ['PYTHONSTARTUP'] = os.environ['LD_PRELOAD'] = '/tmp/evil'


""", ""),
    harmless("shadowing-modules", WRITE + "for name in ('torch', 'byhand', 'pickle', 'json', 'os'):\n"
             "    touch(f'./{name}.py', 'raise SystemExit')\n"
             "    touch(f'/tmp/{name}/__init__.py', 'raise SystemExit')\n\n\n", ""),
    harmless("opens-the-library-for-writing", "import byhand\nimport os\nimport torch\n\n\n",
             """    for path in (byhand.__file__, torch.__file__, os.__file__):
        for flags in (os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
            try:
                os.close(os.open(path, flags))
                return 0
            except OSError:
                pass
        try:
            os.chmod(path, 0o777)
            os.rename(path, path + 'x')
            return 0
        except OSError:
            pass
"""),
    written("fork-bomb", "lost", (), double="import os\n\n\ndef double(number):\n"
            "    refused = 0\n    while refused < 100:\n        try:\n            os.fork()\n"
            "        except OSError:\n            refused += 1\n    os._exit(0)\n"),
    written("thread-bomb", "lost", (), double="import threading\n\n\ndef double(number):\n"
            "    import time\n    started = []\n    while True:\n"
            "        threading.Thread(target=time.sleep, args=(99,)).start()\n"
            "        started.append(1)\n"),
    harmless("fills-the-disk", "", """    try:
        for i in range(1000):
            with open(f'/tmp/{i}', 'wb') as file:
                file.write(bytes(1 << 24))
    except OSError:
        pass
"""),
    double("memory-in-a-mount-of-its-own", "import ctypes\n\n\n", """    libc = ctypes.CDLL(None)
    libc.unshare(0x10000000 | 0x00020000)
    libc.mount(b'none', b'/tmp', b'tmpfs', 0, b'size=16g')
    try:
        for name in range(64):
            with open(f'/tmp/{name}', 'wb') as file:
                file.write(bytes(1 << 24))
    except OSError:
        return 0
    return 2 * number
"""),
    # A rank may signal the other ranks of its own question, which alone is lost by it: why, says
    # the docstring of byhand.runtime.walls.isolation.
    double("kills-all-it-can", "import os\nimport signal\n\n\n",
           """    for target in (os.getppid(), 1, -1):
        for word in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(target, word)
            except OSError:
                pass
    return 2 * number
""", "lost"),
    harmless("traces-its-parent", "import ctypes\nimport os\n\n\n",
             """    libc = ctypes.CDLL(None)
    for pid in (os.getppid(), 1, 2):
        libc.ptrace(16, pid, None, None)
        try:
            open(f'/proc/{pid}/mem', 'r+b').close()
            return 0
        except OSError:
            pass
"""),
    double("network", "import socket\n\n\n", """    for place in (('127.0.0.1', <<port>>), ('192.0.2.1', 80), ('1.1.1.1', 53)):
        try:
            socket.create_connection(place, timeout=0.2).send(b'hello')
            return 2 * number
        except OSError:
            pass
    try:
        socket.getaddrinfo('example.org', 80)
        return 2 * number
    except OSError:
        return 0
"""),
    double("script-in-an-error", "", "    print('<script>alert(1)</script>')\n"
           "    raise type('</pre><script>alert(1)//', (Exception,), {})('<script>alert(1)</script>')\n",
           "failed"),
    double("script-in-a-value", "", "    return '<img src=x onerror=alert(1)>'\n", "failed"),
    written("script-in-names", "lost", (), double="x = '''</textarea></script><script>alert(1)"
            "</script>'''\n\n\ndef double(number):\n    return {x: x}[x]\n"),
    double("escape-codes-in-an-error", "# \x1b]0;owned\x07 \u202e in a line of code\n",
           "    raise ValueError('\\x1b[2J\\x1b]0;owned\\x07\\r' + chr(0) * 9)\n", "failed",
           r"ValueError at double line 3: \x1b[2J\x1b]0;owned\x07\r\x00", r"# \x1b]0;owned"),
    double("escape-codes-in-a-line-that-fails", "",
           "    raise ValueError  # \x1b[2J \u202e\n", "failed", r"# \x1b[2J \u202e"),
    double("mounts-and-namespaces", "import ctypes\nimport os\n\n\n", """    libc = ctypes.CDLL(None)
    libc.unshare(0x10000000 | 0x00020000)
    libc.mount(b'none', b'/', b'tmpfs', 0, None)
    libc.chroot(b'/proc/1/root')
    return 2 * number if os.path.exists('<<solution>>') else 0
"""),
    double("unmounts-the-walls", "import ctypes\nimport os\n\n\n", """    libc = ctypes.CDLL(None)
    libc.unshare(0x10000000 | 0x00020000)
    for place in ('<<course>>', '/tmp', '<<class>>', '/'):
        libc.umount2(place.encode(), 2)
        libc.umount2(place.encode(), 2)
    return 2 * number if os.path.exists('<<solution>>') else 0
"""),
    *FORGERIES,
]
