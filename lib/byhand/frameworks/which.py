"""Which tool to begin with: four jobs, and the questions that tell them apart. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY = 80e9  # bytes of a GPU


@dataclass(frozen=True)
class Job:
    """A model to train: its parameters, the GPUs, the sequences of a step, and whether its blocks
    are of one's own design or a GPT's.
    """

    parameters: float
    gpus: int
    sequences: int
    own_blocks: bool = False


JOBS = {
    "1 B": Job(1e9, 8, 512, own_blocks=True),
    "8 B": Job(8e9, 64, 1024, own_blocks=True),
    "405 B": Job(405e9, 128, 32, own_blocks=True),
    "176 B": Job(176e9, 16384, 1024),
}


def tool_for(job: Job) -> str:
    """The tool to try first."""
    states = 16 * job.parameters  # bytes in bf16 with AdamW: lecture 06
    if states < MEMORY / 2:  # the other half is for activations
        return "DDP"
    if job.sequences >= job.gpus and states / job.gpus < MEMORY / 2:
        return "FSDP2 or DeepSpeed"  # no layer is split, so its lines do not matter
    # GPUs share a sequence: layers must be split, and perhaps the depth
    return "torchtitan" if job.own_blocks else "Megatron-core"
