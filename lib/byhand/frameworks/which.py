"""Which tool to begin with: four jobs, and the questions that tell them apart. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY = 80e9  # bytes of a GPU
GPUS_OF_A_HOST = 8


@dataclass(frozen=True)
class Job:
    """A model to train: its parameters, the GPUs, the sequences of a step, and whether the head
    shares the embedding's table.
    """

    parameters: float
    gpus: int
    sequences: int
    shares_table: bool = False


JOBS = {
    "1 B": Job(1e9, 8, 512),
    "8 B": Job(8e9, 64, 1024),
    "405 B": Job(405e9, 128, 32),
    "176 B": Job(176e9, 16384, 1024, shares_table=True),
}


def tool_for(job: Job) -> str:
    """The tool to try first."""
    states = 16 * job.parameters  # bytes in bf16 with AdamW: lecture 06
    if states < MEMORY / 2:  # the other half is for activations
        return "DDP"
    if job.sequences >= job.gpus and states / job.gpus < MEMORY / 2:
        return "FSDP2"
    if job.gpus / job.sequences <= GPUS_OF_A_HOST:  # GPUs that share a sequence: tp
        return "torchtitan"
    # tp would leave its host, so the depth is cut, too
    return "Megatron-core" if job.shares_table else "torchtitan"
