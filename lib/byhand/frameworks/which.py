"""Which tool to begin with: four jobs, six tools, and what rules a tool out. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY = 80e9  # bytes of a GPU


@dataclass(frozen=True)
class Job:
    """A model to train, and its layout: GPUs that share a layer, and stages.

    tied: the head shares the embedding's table.
    """

    parameters: float
    gpus: int
    tp: int = 1
    pp: int = 1
    tied: bool = False


JOBS = {
    "1 B": Job(1e9, 8, tied=True),
    "20 B": Job(20e9, 64),
    "405 B": Job(405e9, 128, tp=8),
    "176 B": Job(176e9, 384, tp=4, pp=12, tied=True),
}


@dataclass(frozen=True)
class Tool:
    """What lecture 18 found of a tool.

    zero: the most that ZeRO shards, as its stage: with replicas alone, with tp, with pp. splits:
    layers; cuts: the depth; both: layers of a stage, too; sums: the two gradients of a table that
    two stages share.
    """

    zero: tuple[int, int, int] = (3, 3, 3)
    splits: bool = False
    cuts: bool = False
    both: bool = True
    sums: bool = False


# By what changes: lines around the model, then the loop, then the layers. DeepSpeed's tp refuses
# ZeRO-3 (deepspeed.ai/tutorials/autotp-training), its pipeline all above ZeRO-1
# (deepspeed/runtime/pipe/engine.py). Megatron-core's is its distributed optimizer.
TOOLS = {
    "DDP": Tool(zero=(0, 0, 0)),
    "FSDP2": Tool(),
    "FSDP2 + DTensor": Tool(splits=True),
    "DeepSpeed": Tool(zero=(3, 2, 1), splits=True, cuts=True, both=False, sums=True),
    "torchtitan": Tool(splits=True, cuts=True),
    "Megatron-core": Tool(zero=(1, 1, 1), splits=True, cuts=True, sums=True),
}


def ruled_out(tool: Tool, job: Job) -> str:
    """By what; nothing if it is not."""
    if job.tp > 1 and not tool.splits:
        return "tp"
    if job.pp > 1 and not tool.cuts:
        return "pp"
    if job.tp > 1 and job.pp > 1 and not tool.both:
        return "tp in pp"
    if job.pp > 1 and job.tied and not tool.sums:
        return "table"
    stage = tool.zero[2 if job.pp > 1 else 1 if job.tp > 1 else 0]
    whole = (16, 4, 2, 0)[stage]  # bytes a parameter that all replicas have: lecture 06
    held = job.parameters * (whole / job.tp / job.pp + (16 - whole) / job.gpus)
    return f"{held / 1e9:.0f} GB" if held > MEMORY else ""


def tool_for(job: Job) -> str:
    """The tool to try first: the first that nothing rules out.

    Raises:
        ValueError: something rules out each of them; the sentence says what.
    """
    reasons = {name: ruled_out(tool, job) for name, tool in TOOLS.items()}
    for name, reason in reasons.items():
        if not reason:
            return name
    told = ", ".join(f"{name} ({reason})" for name, reason in reasons.items())
    raise ValueError(
        f"no tool trains {job.parameters / 1e9:g} billion parameters on {job.gpus} GPUs of "
        f"{MEMORY / 1e9:.0f} GB with tp {job.tp} and pp {job.pp}; what rules out each: {told}"
    )
