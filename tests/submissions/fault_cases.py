"""Hand-ins that are broken by accident: each costs the task it is in, and no other."""

from __future__ import annotations

from arena import PASSED, changed, nothing, verdicts, written

ENDLESS = "while True:\n        pass"
SWALLOW = """    while True:
        try:
            while True:
                time.sleep(1)
        except BaseException:
            pass"""


def own_cells(number: int, text: str):
    """A change to a notebook: so many cells of this text before all others."""

    def change(notebook, cells):
        notebook["cells"][1:1] = [
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
             "id": f"own-{index}", "source": text} for index in range(number)]

    return change


FAULTS = [
    written("blank", nothing(), ("NotImplementedError",), double="raise NotImplementedError()\n",
            total="def total(tensor):\n    raise NotImplementedError()",
            shift="def shift(tensor):\n    raise NotImplementedError()"),
    written("syntax-error", "failed", ("SyntaxError",), double="def double(number:\n    return 1"),
    written("name-error", "failed", ("NameError",), total="def total(t):\n    return tensr"),
    written("endless-loop", "timeout", ("did not finish within",),
            double=f"def double(number):\n    {ENDLESS}"),
    changed("three-endless-cells-of-its-own", verdicts(), own_cells(3, "while True: pass"),
            ("own-1: it did not come to an end", "own-2, own-3: not run")),
    written("endless-while-others-wait", "timeout", (),
            total="def total(t):\n    while dist.get_rank() == 0:\n        pass\n"
                  "    dist.all_reduce(t)\n    return t"),
    written("endless-cell", "failed", ("was stopped",), shift="while True:\n    pass"),
    written("swallows-interrupts", "timeout", (),
            double=f"import time\n\n\ndef double(number):\n{SWALLOW}"),
    written("cell-swallows-interrupts", "failed", ("was left out",),
            double="import time\nif True:\n" + SWALLOW),
    written("cell-switches-interrupts-off", "failed", ("was left out",),
            double="import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                   "while True:\n    pass"),
    written("exit-in-function", "crashed", ("exited with code 3",),
            double="def double(number):\n    os._exit(3)"),
    written("exit-0-in-function", "crashed", ("exited with code 0",),
            total="def total(t):\n    dist.all_reduce(t)\n    os._exit(0)"),
    written("exit-in-cell", "failed", ("was left out",), shift="import os\nos._exit(0)"),
    written("sys-exit", "failed", ("SystemExit",),
            double="import sys\n\n\ndef double(number):\n    sys.exit(0)"),
    written("sys-exit-in-cell", "failed", ("SystemExit",), double="import sys\nsys.exit(0)"),
    written("segfault", "crashed", ("SIGSEGV",),
            double="import ctypes\n\n\ndef double(number):\n    ctypes.string_at(0)"),
    written("abort", "crashed", ("SIGABRT",), shift="def shift(t):\n    os.abort()"),
    written("memory-hog", "resource", ("emory",),
            double="def double(number):\n    return [bytearray(1 << 31) for _ in range(10_000)]"),
    written("memory-hog-in-torch", "resource", ("emory",),
            total="def total(t):\n    return [torch.ones(1 << 29) for _ in range(10_000)]"),
    written("memory-in-children-bomb", "lost", (),
            double="import time\n\n\ndef double(number):\n    for _ in range(6):\n"
                   "        if os.fork() == 0:\n            kept = b'x' * (400 << 20)\n"
                   "            time.sleep(60)\n    time.sleep(60)"),
    written("replies-too-large-together", "resource", ("together returned more than",),
            total="def total(t):\n    dist.all_reduce(t)\n    return torch.zeros(10_000_000)"),
    written("shared-memory-bomb", "lost", (),
            total="import mmap\n\n\ndef total(t):\n    kept = []\n    while True:\n"
                  "        kept.append(mmap.mmap(-1, 1 << 28))\n"
                  "        kept[-1].write(bytes(1 << 28))"),
    written("a-pool-of-processes", verdicts(), (),
            double="import multiprocessing\n\n\ndef double(number):\n"
                   "    with multiprocessing.get_context('fork').Pool(4) as pool:\n"
                   "        return sum(pool.map(abs, [number] * 2)) * (1 if number > 0 else -1)"),
    written("top-level-await", verdicts(), (),
            double="import asyncio\n\nawait asyncio.sleep(0)\n\n\ndef double(number):\n"
                   "    return 2 * number"),
    written("no-standard-output", verdicts(), (),
            double="import sys\n\nsys.stdout = sys.stderr = None\n\n\ndef double(number):\n"
                   "    return 2 * number"),
    written("output-300000-lines", verdicts(), (),
            double="def double(number):\n    for _ in range(30_000):\n        print('line\\n' * 9 + 'line') if os.environ['RANK'] == '0' else 0\n"
                   "    return 2 * number"),
    written("output-without-end", "resource", ("printed more than",),
            double="def double(number):\n    while True:\n        print('x' * 100_000)"),
    written("warnings-on-right-code", verdicts(), (),
            double="import sys\nimport warnings\n\nwarnings.warn('old')\n\n\ndef double(number):\n"
                   "    warnings.warn('careful')\n    sys.stderr.write('Error: failed\\n' * 9)\n"
                   "    return 2 * number"),
    written("slow-but-right", verdicts(), (),
            double="import time\n\n\ndef double(number):\n    time.sleep(0.6)\n"
                   "    return 2 * number"),
    written("deep-recursion", "failed", ("RecursionError",),
            double="def double(number):\n    return double(number)"),
    written("interrupts-itself", "failed", ("KeyboardInterrupt",),
            double="def double(number):\n    raise KeyboardInterrupt"),
    written("sparse-on-the-way", verdicts(), (), total="def total(t):\n"
            "    t = t.to_sparse().to_dense()\n    dist.all_reduce(t)\n    return t"),
    written("sparse-result", "failed", ("not a plain one",),
            double="def double(number):\n    return torch.eye(3).to_sparse()"),
    written("ignores-every-signal", verdicts(), (), double="import signal\n\n"
            "for number in set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP}:\n"
            "    signal.signal(number, signal.SIG_IGN)\n\n\n"
            "def double(number):\n    return 2 * number"),
    written("closes-all-it-has-open", "crashed", (),
            double="def double(number):\n    os.closerange(0, 256)\n    return 2 * number"),
    written("wrong-type", "failed", (), double="def double(number):\n    return 2.0 * number"),
    written("nothing-returned", "failed", (), total="def total(tensor):\n    pass"),
    written("error-that-cannot-be-shown", "failed", (),
            double="class Bad(Exception):\n    def __str__(self):\n        raise Exception\n\n\n"
                   "def double(number):\n    raise Bad"),
    written("error-of-a-megabyte", "failed", (),
            double="def double(number):\n    raise ValueError('x' * (1 << 20))"),
    written("error-in-half-characters", "failed", (),
            double="def double(number):\n    raise ValueError(chr(0xD800) + chr(0) + chr(0x202E))"),
]

assert PASSED
