"""Which tool to begin with: four jobs, and the questions that tell them apart. Pure."""

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


def tool_for(job: Job) -> str:
    """The tool to try first."""
    states = 16 * job.parameters  # bytes in bf16 with AdamW: lecture 06
    if states < MEMORY / 2:  # the other half is for activations
        return "DDP"
    if job.tp == job.pp == 1:  # states are sharded, and no layer is split
        return "FSDP2 or DeepSpeed"
    if job.pp > 1 and job.tied:  # the table lies on two stages: torchtitan refuses
        return "Megatron-core"
    return "torchtitan"
