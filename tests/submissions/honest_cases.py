"""Right notebooks as students really write them: each keeps every point.

Most of them need their own cells: `double` multiplies by a `factor` that only those define, so that
a cell which is skipped, cut short or changed costs the task. All pass in Jupyter, hidden tests and
all, from the first cell to the last: in_jupyter.py runs them there.
"""

from __future__ import annotations

from arena import DOUBLE, TOTAL, Case, changed, verdicts, written

USES = "def double(number):\n    return factor * number\n"
TWICE = "def double(number):\n    return twice(number)\n"


def own(*texts: str, at: int = 2, after: str = ""):
    """A change to a notebook: own cells of these texts, before cell `at`, or after that name."""

    def change(notebook, cells):
        place = notebook["cells"].index(cells[after]) + 1 if after else at
        notebook["cells"][place:place] = [
            {"cell_type": "code", "id": f"own-{after}{number}", "metadata": {}, "outputs": [],
             "execution_count": None, "source": text} for number, text in enumerate(texts)]

    return change


def helped(name: str, *texts: str, after: str = "", **answers: str) -> Case:
    """A notebook with these cells of its own; without other answers, `double` needs `factor`."""
    return changed(name, verdicts(), own(*texts, after=after), noted=(),
                   **(answers or {"double": USES}))


def answered(name: str, **answers: str) -> Case:
    """A notebook with these answers."""
    return written(name, verdicts(), noted=(), **answers)


MAGICS = [
    helped("times-a-cell", "%%time\nfactor = 2"),
    helped("captures-a-cell", "%%capture\nfactor = 2"),
    helped("captures-a-cell-into-a-name", "%%capture printed\nprint(2)",
           "factor = int(printed.stdout)"),
    helped("times-an-assignment", "%time factor = 1 + 1"),
    helped("measures-a-cell", "%%timeit -n 2 -r 1 numbers = range(9)\nsum(numbers)", "factor = 2"),
    helped("keeps-a-measurement", "t = %timeit -o -q -n 1 -r 2 sum(range(9))\n"
           "factor = len(t.all_runs)"),
    helped("profiles-a-statement", "%prun -q sum(range(9))\nfactor = 2"),
    helped("draws-inside", "%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\n"
           "factor = 2"),
    helped("loads-pylab", "%pylab inline --no-import-all\nfactor = int(np.array([2]).sum())"),
    helped("loads-modules-again", "%load_ext autoreload\n%autoreload 2\nfactor = 2"),
    helped("lists-its-names", "%who\n%whos\nnames = %who_ls\nfactor = 2"),
    helped("changes-what-is-shown", "%precision 3\n%xmode Plain\n%pdb off\nfactor = 2"),
    helped("sets-the-environment", "%env FACTOR=2\nfactor = int(os.environ['FACTOR'])"),
    helped("goes-to-another-folder", "folder = %pwd\n%cd -q /tmp\n%cd -q {folder}\nfactor = 2"),
    helped("writes-a-file-by-magic", "%%writefile notes.txt\n2",
           "factor = int(open('notes.txt').read())"),
    helped("writes-a-module-and-imports-it", "%%writefile helpers.py\nfactor = 2",
           "from helpers import factor"),
    helped("writes-a-script-and-runs-it", "%%writefile helpers.py\nfactor = 2", "%run helpers.py"),
    helped("runs-bash", "%%bash --out said\necho 2", "factor = int(said)"),
    helped("shows-html", "%%html\n<b>two</b>", "%%markdown\n# Two", "factor = 2"),
    helped("installs-what-is-there", "%pip install -q tqdm\nfactor = 2"),
    helped("lists-packages", "%pip list\nfactor = 2"),
    helped("lists-files", "!ls -la\nfiles = !ls\nfactor = 2 if files is not None else 0"),
    helped("asks-for-a-gpu", "!nvidia-smi\nfactor = 2"),
    helped("lets-the-shell-say-it", "number = 2\nsaid = !echo {number}\nfactor = int(said[0])"),
    helped("makes-a-folder", "!mkdir -p plots\n!touch plots/a.txt\n"
           "factor = 1 + len(os.listdir('plots'))"),
    helped("asks-for-help", "torch.add?", "?len", "dist.all_reduce??\nfactor = 2"),
    helped("uses-the-last-output", "1 + 1", "factor = _"),
    helped("ends-lines-with-semicolons", "torch.ones(2);\nfactor = 2;"),
    helped("talks-to-the-shell", "get_ipython().run_line_magic('matplotlib', 'inline')\n"
           "get_ipython().system('echo two')\nfactor = 2"),
    helped("magics-in-a-block", "for run in range(2):\n    %time factor = run + 1\n"
           "    !echo $run"),
    helped("runs-ranks-by-magic", "%load_ext byhand", "%%ranks 2 --to kept\nrank + 1",
           "factor = kept.results[1]"),
    answered("times-its-answers", double=f"%%time\n{DOUBLE}", total=f"%%capture\n{TOTAL}"),
    answered("answers-with-lines-of-magic", double=f"%matplotlib inline\n!ls\n{DOUBLE}\n\ndouble?",
             total=f"{TOTAL}\n\n\n%timeit -n 1 -r 1 double(2)"),
]
SLOW = [
    helped("sleeps-three-seconds", "import time\n\ntime.sleep(3)\nfactor = 2"),
    helped("sleeps-seven-seconds", "import time\n\ntime.sleep(7)\nfactor = 2"),
    helped("imports-much", "import matplotlib.pyplot as plt\nimport numpy as np\n"
           "import scipy.stats\n"
           "from sklearn.linear_model import LinearRegression\nfrom tqdm.auto import tqdm\n"
           "from torch.utils.data import DataLoader, TensorDataset\n\n"
           "factor = int(np.array([2])[0])"),
    helped("trains-a-model", "from sklearn.datasets import load_digits\n\n"
           "x, y = (torch.tensor(part) for part in load_digits(return_X_y=True))\n"
           "model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(),\n"
           "                            torch.nn.Linear(256, 10))\n"
           "optimizer = torch.optim.Adam(model.parameters())\nlosses = []\n"
           "for step in range(150):\n"
           "    loss = torch.nn.functional.cross_entropy(model(x.float()), y)\n"
           "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
           "    losses.append(loss.item())\n", "factor = 2 if losses[-1] < losses[0] else 0",
           double=USES, total="def total(tensor):\n"
           "    w = torch.ones(300, 300, dtype=tensor.dtype, requires_grad=True)\n"
           "    (w @ w).sum().backward()\n    tensor = tensor.clone()\n"
           "    dist.all_reduce(tensor)\n    return tensor\n"),
    helped("multiplies-large-matrices-on-all-cores", "torch.set_num_threads(2)\n"
           "a = torch.randn(1500, 1500)\nfor _ in range(5):\n    a = a @ a / a.norm()",
           total="def total(tensor):\n    a = torch.eye(600, dtype=tensor.dtype)\n    a = a @ a\n"
           "    tensor = tensor * a[0, 0]\n    dist.all_reduce(tensor)\n    return tensor\n"),
    helped("fits-with-sklearn", "import numpy as np\nfrom sklearn.cluster import KMeans\n\n"
           "points = np.random.default_rng(0).normal(size=(4000, 8))\n"
           "factor = len(KMeans(2, n_init=1).fit(points).cluster_centers_)"),
    helped("plots-its-losses", "import matplotlib.pyplot as plt\n\n"
           "plt.plot([3, 2, 1], label='loss')\n"
           "plt.legend()\nplt.savefig('loss.png')\nplt.show()\nfactor = 2"),
    helped("keeps-a-figure-open", "import matplotlib.pyplot as plt\n\n"
           "fig, axes = plt.subplots(1, 2)\naxes[0].bar([1], [2])\nfactor = len(fig.axes)", "fig"),
    helped("displays-things", "from IPython.display import HTML, Markdown, clear_output\n\n"
           "display(Markdown('**two**'), HTML('<b>2</b>'))\nclear_output(wait=True)\n"
           "display(torch.ones(2))\nfactor = 2"),
    helped("has-widgets", "import ipywidgets as widgets\n\nslider = widgets.IntSlider(2, 1, 3)\n"
           "display(slider)\nwidgets.interact(lambda n: n * n, n=(1, 3))\nfactor = slider.value"),
    helped("shows-progress", "from tqdm.notebook import tqdm\n\nfactor = 0\n"
           "for _ in tqdm(range(2)):\n    factor += 1"),
]
HELPERS = [
    helped("helper-before", "def twice(number):\n    return number + number", double=TWICE),
    helped("helper-between", "def summed(tensor):\n    tensor = tensor.clone()\n"
           "    dist.all_reduce(tensor)\n    return tensor", after="test-double",
           total="def total(tensor):\n    return summed(tensor)"),
    helped("helper-after-its-use", "def twice(number):\n    return 2 * number", after="double",
           double=TWICE),
    helped("postponed-hints-and-dataclasses", "from __future__ import annotations\n\n"
           "from dataclasses import dataclass, field\n\n\n@dataclass\nclass Scale:\n"
           "    factor: int = 2\n    next: Scale | None = None\n    notes: list[str] = "
           "field(default_factory=list)\n\n    def times(self, number: Missing) -> Missing:\n"
           "        return self.factor * number\n", "scale = Scale()",
           double="def double(number: int) -> int:\n    return scale.times(number)"),
    helped("decorators-and-partial", "import functools\nimport operator\n\n\n"
           "def logged(function):\n"
           "    @functools.wraps(function)\n    def wrapper(*args, **kwargs):\n"
           "        print(function.__name__, args)\n        return function(*args, **kwargs)\n\n"
           "    return wrapper\n\n\ntwice = functools.partial(operator.mul, 2)",
           double=f"@logged\n{TWICE}"),
    answered("closures-generators-recursion", double="def times(n):\n    def by(number):\n"
             "        return number * n\n\n    return by\n\n\ndef steps(n):\n    yield n\n"
             "    if n > 1:\n        yield from steps(n - 1)\n\n\n"
             "def double(number):\n    return times(max(steps(2)))(number)\n"),
    answered("a-class-with-call", double="class Double:\n    calls = 0\n\n"
             "    def __call__(self, number):\n        self.calls += 1\n"
             "        return 2 * number\n\n\n"
             "double = Double()"),
    helped("its-own-autograd-function", "class Sum(torch.autograd.Function):\n    @staticmethod\n"
           "    def forward(ctx, tensor):\n        tensor = tensor.clone()\n"
           "        dist.all_reduce(tensor)\n        return tensor\n\n    @staticmethod\n"
           "    def backward(ctx, grad):\n        return grad\n", after="test-double",
           total="def total(tensor):\n    return Sum.apply(tensor)"),
    helped("enums-and-named-tuples", "from enum import IntEnum\nfrom typing import NamedTuple\n\n\n"
           "class Way(IntEnum):\n    LEFT = -1\n    RIGHT = 1\n\n\nclass Pair(NamedTuple):\n"
           "    one: int\n    other: int\n", double="def double(number):\n"
           "    return sum(Pair(number, number)) * Way.RIGHT.value"),
    helped("constants-and-tensors-as-globals", "FACTOR = torch.tensor(2)\n"
           "TABLE = {'two': [FACTOR]}",
           double="def double(number):\n    return int(TABLE['two'][0] * number)"),
    helped("defined-twice", "def double(number):\n    return 3 * number", "factor = 2"),
    helped("defined-again-later", "def double(number):\n    return 3 * number\n\n\nfactor = None",
           after="test-shift", double=DOUBLE),
    helped("only-as-main", 'if __name__ == "__main__":\n    factor = 2'),
    helped("names-in-greek-and-german", "größe, λ = 2, '→ ∑ 😀'\nprint(λ)\nfactor = größe"),
    helped("tabs-and-markers", "# %% first\n#| echo: false\nif True:\n\tfactor = 2\n# %%"),
    helped("two-thousand-lines", "\n".join(f"x{n} = {n}" for n in range(2000)) + "\nfactor = x2"),
    helped("four-hundred-cells", *(f"x = {n}" for n in range(399)), "factor = x - 396"),
    helped("names-from-everywhere", "from itertools import *\nfrom torch.distributed import *\n"
           "import torch.nn.functional as F\n\nfactor = len(list(chain([1], [2])))"),
    helped("tests-of-its-own", "assert double(2) == 4\ntry:\n    assert double(2) == 5\n"
           "except AssertionError as error:\n    print('as it should', error)\n"
           "check.results(launch(drive_double, 3, args=(4,)), [8] * 3, what='double')",
           after="test-double", double=DOUBLE),
    helped("doctests-and-unittests", "import doctest\nimport unittest\n\n\n"
           "class Tests(unittest.TestCase):\n"
           "    def test_two(self):\n        self.assertEqual(1 + 1, 2)\n\n\n"
           "ran = unittest.main(argv=['x'], exit=False)\nfactor = 1 + ran.result.testsRun\n"
           "doctest.testmod()"),
    helped("reads-its-own-source", "import inspect\n\n\ndef helper():\n"
           "    return 1", "print(In[-1])\n"
           "factor = inspect.getsource(helper).count('def') + 1"),
    helped("waits-at-top-level", "import asyncio\n\n\nasync def two():\n"
           "    await asyncio.sleep(0.01)\n"
           "    return 2\n\n\ntask = asyncio.create_task(two())", "factor = await task"),
    helped("threads-and-pools", "import subprocess\nimport sys\nimport threading\n"
           "from concurrent.futures import ThreadPoolExecutor\n\nsaid = []\n"
           "thread = threading.Thread(target=said.append, args=(1,))\nthread.start()\n"
           "thread.join()\n"
           "with ThreadPoolExecutor(2) as pool:\n    factor = sum(pool.map(len, [said, said]))\n"
           "subprocess.run([sys.executable, '-c', 'print(2)'], check=True)"),
    helped("loads-data-with-workers", "from torch.utils.data import DataLoader\n\n"
           "factor = sum(int(batch) for batch in DataLoader([1, 1], num_workers=2))"),
    helped("logs-and-warns", "import logging\nimport warnings\n\n"
           "logging.basicConfig(level=logging.INFO)\n"
           "log = logging.getLogger(__name__)\nwarnings.filterwarnings('ignore')\nfactor = 2",
           double="def double(number):\n    log.info('doubling %s', number)\n"
           "    print('rank', os.environ.get('RANK'), flush=True)\n    return factor * number\n"),
    helped("keeps-and-reads-files", "import pathlib\n\nplace = pathlib.Path('runs') / 'first'\n"
           "place.mkdir(parents=True, exist_ok=True)\ntorch.save({'factor': 2}, place / 'a.pt')",
           "factor = torch.load('runs/first/a.pt')['factor']"),
]
TORCH = [
    helped("seeds-and-switches", "import random\n\nrandom.seed(0)\ntorch.manual_seed(0)\n"
           "torch.set_printoptions(precision=3)\ntorch.set_num_threads(1)\n"
           "torch.use_deterministic_algorithms(True)\ntorch.autograd.set_detect_anomaly(True)\n"
           "os.environ['OMP_NUM_THREADS'] = '1'\n"
           "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nfactor = 2"),
    helped("another-default-dtype", "torch.set_default_dtype(torch.float64)\n"
           "torch.set_grad_enabled(False)", total="def total(tensor):\n"
           "    result = torch.zeros(len(tensor)) + tensor\n    dist.all_reduce(result)\n"
           "    return result"),
    helped("meets-at-localhost", "os.environ['MASTER_ADDR'] = 'localhost'\n"
           "os.environ['MASTER_PORT'] = '29533'\nos.environ['WORLD_SIZE'] = '1'\n"
           "os.environ['RANK'] = '0'\nfactor = 2"),
    helped("joins-a-world-of-one", "os.environ['MASTER_ADDR'] = 'localhost'\n"
           "os.environ['MASTER_PORT'] = '29534'\n"
           "dist.init_process_group('gloo', rank=0, world_size=1)\n"
           "one = torch.ones(1)\ndist.all_reduce(one)\nfactor = 1 + int(one)"),
    helped("launches-ranks-and-goes-on", "def hello(rank, world_size):\n    print('I am', rank)\n"
           "    return rank\n\n\nrun = launch(hello, 4)\nprint(run.ledger)\nfactor = 2"),
    helped("uses-what-its-ranks-returned", "def ones(rank, world_size):\n    one = torch.ones(1)\n"
           "    dist.all_reduce(one)\n    return int(one)\n\n\n"
           "factor = launch(ones, 2).results[0]"),
    answered("waits-for-futures", total="def total(tensor):\n"
             "    work = dist.all_reduce(tensor.clone(), async_op=True)\n"
             "    return work.get_future().wait()[0]"),
    answered("waits-in-a-list", total="def total(tensor):\n    tensor = tensor.clone()\n"
             "    works = [dist.all_reduce(tensor, op=dist.ReduceOp.SUM, async_op=True)]\n"
             "    [work.wait() for work in works]\n    return tensor",
             shift="def shift(tensor):\n    rank, n = dist.get_rank(), dist.get_world_size()\n"
             "    got = torch.empty_like(tensor)\n"
             "    works = [dist.isend(tensor, (rank + 1) % n),\n"
             "             dist.irecv(got, src=(rank - 1) % n)]\n    [w.wait() for w in works]\n"
             "    return got"),
    answered("without-gradients", total="@torch.no_grad()\ndef total(tensor):\n"
             "    with torch.inference_mode():\n        result = tensor.clone()\n"
             "        dist.all_reduce(result)\n    return result"),
    answered("through-numpy", double="import numpy as np\n\n\ndef double(number):\n"
             "    return int(np.int64(number) * 2)",
             total="def total(tensor):\n    result = torch.from_numpy(tensor.numpy().copy())\n"
             "    dist.all_reduce(result)\n    return result"),
]
TRAVELS = [
    helped("sets-what-its-ranks-read", "os.environ['FACTOR'] = '2'",
           double="def double(number):\n    return int(os.environ['FACTOR']) * number\n"),
    helped("imports-from-a-folder-out-of-sight", "import pathlib, sys\n\n"
           "pathlib.Path('.lib').mkdir(exist_ok=True)\n"
           "pathlib.Path('.lib', 'own_factor.py').write_text('factor = 2')\n"
           "sys.path.insert(0, '.lib')\nimport own_factor",
           double="def double(number):\n    return own_factor.factor * number\n"),
    helped("leaves-a-folder-that-goes", "os.makedirs('gone', exist_ok=True)\nos.chdir('gone')\n"
           "os.rmdir('../gone')\nfactor = 2"),
    helped("guards-with-a-lock", "import threading\n\nlock = threading.Lock()",
           double="def double(number):\n    with lock:\n        return 2 * number\n"),
    helped("dispatches-by-type", "import functools\n\n\n@functools.singledispatch\n"
           "def factor(number):\n    return 0\n\n\n@factor.register\n"
           "def whole(number: int):\n    return 2",
           double="def double(number):\n    return factor(number) * number\n"),
    helped("compiles", "@torch.compile(backend='eager')\ndef twice(number):\n    return 2 * number",
           double=TWICE),
]
HABITS = [*MAGICS, *SLOW, *HELPERS, *TORCH, *TRAVELS]
