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
    "8 B": Job(8e9, 64),
    "405 B": Job(405e9, 128, tp=8),
    "176 B": Job(176e9, 384, tp=4, pp=12, tied=True),
}


@dataclass(frozen=True)
class Tool:
    """What lecture 18 found of a tool.

    shards: states over all GPUs; splits: layers, None where it was not checked; cuts: the depth;
    sums: the two gradients of a table that two stages share.
    """

    shards: bool = True
    splits: bool | None = False
    cuts: bool = False
    sums: bool = False


TOOLS = {  # by what changes: lines around the model, then the loop, then the layers
    "DDP": Tool(shards=False),
    "FSDP2": Tool(),
    "FSDP2 + DTensor": Tool(splits=True),
    "DeepSpeed": Tool(splits=None, cuts=True, sums=True),
    "torchtitan": Tool(splits=True, cuts=True),
    "Megatron-core": Tool(splits=True, cuts=True, sums=True),
}


def ruled_out(tool: Tool, job: Job) -> str:
    """By what; nothing if it is not."""
    states = 16 * job.parameters  # bytes in bf16 with AdamW: lecture 06
    held = states / job.gpus if tool.shards else states  # at best: ZeRO-3 over all
    if held > MEMORY:
        return f"{held / 1e9:.0f} GB"
    if job.tp > 1 and not tool.splits:
        return "tp ?" if tool.splits is None else "tp"
    if job.pp > 1 and not tool.cuts:
        return "pp"
    if job.pp > 1 and job.tied and not tool.sums:
        return "table"
    return ""


def tool_for(job: Job) -> str:
    """The tool to try first: the first that nothing rules out."""
    return next(name for name, tool in TOOLS.items() if not ruled_out(tool, job))
