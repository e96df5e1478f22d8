"""Examples in docstrings are run, and whatever the library offers has one or is on a list."""

import doctest
import importlib
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import byhand

HOME = Path(byhand.__file__).parent
# Wide outputs and messages go on in the next line.
HOW = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(path: Path) -> str:
    parts = path.relative_to(HOME.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in HOME.rglob("*.py")}
WITH_EXAMPLES = sorted(name for name, path in FILES.items() if ">>>" in path.read_text())


def known(module) -> dict:
    """What an example can name: torch, dist, launch, its package's public names, its module's own.

    Its functions are then no module's, as those of a notebook's cell: they travel by value.
    """
    package = sys.modules[".".join(module.__name__.split(".")[:2])]
    public = {name: getattr(package, name) for name in getattr(package, "__all__", ())}
    own = {n: v for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__}
    return {"torch": torch, "dist": dist, "launch": byhand.launch, **public, **own}


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_say_what_comes(name):
    module = importlib.import_module(name)
    names = known(module) | {"__name__": "__main__"}
    tests = doctest.DocTestFinder().find(module, name, globs=names)
    said = []
    runner = doctest.DocTestRunner(optionflags=HOW, verbose=False)
    for test in tests:
        runner.run(test, out=said.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(said)


# Whatever a package offers has an example, but for these: no line of them says more than their
# lecture does, or a clock or a window would have to be looked at. The list only shrinks.
WITHOUT = {
    "": "cleanup device load_ipython_extension",
    "check": "CheckError board bytes_between_hosts collectives finished_sends set_seed take_board",
    "checkpoint": "CheckpointError Saving",
    "context_parallel": "ContextHybrid context_parallel_parts gathered_attention_backward"
    " mixed_attention mixed_attention_backward scores_attention scores_attention_backward"
    " ulysses_attention_backward",
    "data_parallel": "GradientHooks",
    "expert_parallel": "ExpertParallelMLP Experts HostExperts MixtureOfExperts combine_backward"
    " dispatch_backward",
    "fault_tolerance": "Monitor Neighbour stragglers waits",
    "frameworks": "transformer",
    "hybrid_parallel": "HybridParallel HybridStep chunks_of",
    "memory": "OffloadedAdamW OffloadedLayers ScaledOptimizer Tier",
    "model": "Holder Layer",
    "pipeline_parallel": "Stage Step timeline",
    "runtime": "ForkClient LaunchError Launcher NetworkError Report SandboxError StandIn"
    " TamperedError cleanup default_launcher device set_default shutdown why_no_network",
    "sequence_parallel": "SequenceColumnLinear SequenceParallelAttention SequenceRowLinear"
    " VocabularyParallelEmbedding VocabularyParallelHead sequence_parallel_gpt"
    " sum_partial_gradients",
    "zero": "Flat ShardedModule",
}
FIGURES = "figures"  # a figure is looked at: its lecture shows it
PACKAGES = ["", "mlp", *sorted(path.parent.name for path in HOME.glob("*/__init__.py"))]


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != FIGURES])
def test_a_public_name_has_an_example_or_is_on_the_list(package):
    module = importlib.import_module(f"byhand.{package}".rstrip("."))
    offered = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    without = {n for n, it in offered.items() if callable(it) and ">>>" not in (it.__doc__ or "")}
    assert without == set(WITHOUT.get(package, "").split())
