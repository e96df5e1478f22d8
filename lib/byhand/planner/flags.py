"""A layout as the flags of Megatron-LM and of torchtitan. Pure.

Sources: NVIDIA/Megatron-LM, megatron/training/arguments.py; pytorch/torchtitan,
torchtitan/config (its parallelism, training and activation_checkpoint sections).
"""

from __future__ import annotations

from byhand.costs.layout import Layout
from byhand.costs.model import Model
from byhand.planner.sizes import sizes
from byhand.rank_groups.grid import ORDER


def megatron(model: Model, layout: Layout, num_sequences: int, precision: str = "bf16") -> str:
    """Flags of pretrain_gpt.py."""
    s = sizes(model)
    flags = {
        "tensor-model-parallel-size": layout.tp,
        "pipeline-model-parallel-size": layout.pp,
        "context-parallel-size": layout.cp,
        "micro-batch-size": layout.rows,
        "global-batch-size": num_sequences,
        "seq-length": s.positions,
    }
    if layout.chunks > 1:
        flags["num-virtual-stages-per-pipeline-rank"] = layout.chunks
    if layout.ep > 1:
        flags["expert-model-parallel-size"] = layout.ep
    words = [f"--{name} {value}" for name, value in flags.items()]
    words += ["--bf16"] + (["--fp8-format hybrid"] if precision == "fp8" else [])
    words += ["--sequence-parallel"] if layout.sequence else []
    words += ["--use-tp-pp-dp-mapping"] if layout.order != ORDER else []
    words += _recompute(layout) + _sharding(layout)
    return " ".join(words)


def uneven(model: Model, layout: Layout) -> str:
    """What Megatron must be told beside its flags, where blocks do not divide; else nothing."""
    blocks, chunks = sizes(model).blocks, layout.pp * layout.chunks
    if blocks % chunks == 0:
        return ""
    return (
        f"{blocks} blocks do not divide by {chunks} chunks: Megatron-LM asks for "
        "--pipeline-model-parallel-layout, which names the blocks of each"
    )


def _recompute(layout: Layout) -> list[str]:
    return {
        "none": [],
        "selective": ["--recompute-granularity selective"],
        "full": [
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
        ],
    }[layout.recompute]


def _sharding(layout: Layout) -> list[str]:
    if layout.zero < 2:
        return ["--use-distributed-optimizer"] * layout.zero
    strategy = {2: "optim_grads", 3: "optim_grads_params"}[layout.zero]
    return [f"--use-megatron-fsdp --data-parallel-sharding-strategy {strategy}"]


def torchtitan(model: Model, layout: Layout, num_sequences: int, precision: str = "bf16") -> str:
    """Flags of run_train.sh. It shards all that replicas hold, or nothing: ZeRO-1 is its 2."""
    shards, replicas = (layout.dp, 1) if layout.zero else (1, layout.dp)
    flags = {
        "parallelism.data_parallel_shard_degree": shards,
        "parallelism.data_parallel_replicate_degree": replicas,
        "parallelism.tensor_parallel_degree": layout.tp,
        "parallelism.pipeline_parallel_degree": layout.pp,
        "parallelism.context_parallel_degree": layout.cp,
        "training.local_batch_size": num_sequences // layout.dp if layout.pp > 1 else layout.rows,
        "training.global_batch_size": num_sequences,
        "training.seq_len": sizes(model).positions,
        "activation_checkpoint.mode": layout.recompute,
    }
    if layout.pp > 1:
        flags["parallelism.pipeline_parallel_microbatch_size"] = layout.rows
        schedule = "Interleaved1F1B" if layout.chunks > 1 else "1F1B"
        flags["parallelism.pipeline_parallel_schedule"] = schedule
    if layout.ep > 1:
        flags["parallelism.expert_parallel_degree"] = layout.ep
    if layout.zero in (1, 2):
        flags["parallelism.fsdp_reshard_after_forward"] = "never"
    return " ".join(f"--{name} {value}" for name, value in flags.items())
