"""A layout as flags of the program whose software priced it. Pure.

What the constants say of overlap must be switched on, too: it is off by default.
Sources: NVIDIA/Megatron-LM, megatron/training/arguments.py; pytorch/torchtitan,
torchtitan/config (its parallelism, training and activation_checkpoint sections);
mosaicml/llm-foundry, scripts/train/yamls/pretrain.
"""

from __future__ import annotations

from byhand.costs.layout import Layout
from byhand.costs.model import Model
from byhand.planner.runs import shared_out
from byhand.planner.sizes import sizes
from byhand.planner.software import Software
from byhand.rank_groups.grid import ORDER

MEGATRON = "Megatron-LM"


def told(
    model: Model, layout: Layout, num_sequences: int, software: Software, precision: str = "bf16"
) -> tuple[str, str]:
    """(the program that runs as this software does, its flags)."""
    if software.name.startswith("torchtitan"):
        return "torchtitan", torchtitan(model, layout, num_sequences)
    if software.name == "fsdp":
        return "llm-foundry", foundry(layout, num_sequences)
    return MEGATRON, megatron(model, layout, num_sequences, precision, software)


def megatron(
    model: Model,
    layout: Layout,
    num_sequences: int,
    precision: str = "bf16",
    software: Software | None = None,
) -> str:
    """Flags of pretrain_gpt.py. software: what its constants rest on is asked for as well."""
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
    words += _overlap(layout, software) if software else []
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


def _overlap(layout: Layout, software: Software) -> list[str]:
    """What hides messages, and what keeps gradients in two bytes, where the software's rows did."""
    words = []
    if software.hides_gradients and layout.dp * layout.cp > 1:
        words += ["--overlap-grad-reduce"] + ["--overlap-param-gather"] * (layout.zero > 0)
    if software.tensor < 1 and layout.tp > 1 and layout.sequence:
        words.append("--tp-comm-overlap")
    if software.state["gradients"] == 2:
        words.append("--grad-reduce-in-bf16")
    return words


def foundry(layout: Layout, num_sequences: int) -> str:
    """Settings of llm-foundry's train.py."""
    strategy = {0: "NO_SHARD", 2: "SHARD_GRAD_OP", 3: "FULL_SHARD"}.get(layout.zero, "FULL_SHARD")
    full = str(layout.recompute == "full").lower()
    return (
        f"fsdp_config.sharding_strategy={strategy} fsdp_config.activation_checkpointing={full} "
        f"device_train_microbatch_size={layout.rows} global_train_batch_size={num_sequences}"
    )


def _sharding(layout: Layout) -> list[str]:
    if layout.zero < 2:
        return ["--use-distributed-optimizer"] * layout.zero
    strategy = {2: "optim_grads", 3: "optim_grads_params"}[layout.zero]
    return [f"--use-megatron-fsdp --data-parallel-sharding-strategy {strategy}"]


def torchtitan(model: Model, layout: Layout, num_sequences: int) -> str:
    """Flags of run_train.sh. FSDP2 shards all that replicas hold, or nothing: it has no ZeRO-1."""
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
    if layout.chunks > 1:
        each, first, last = shared_out(sizes(model).blocks, layout.pp * layout.chunks)
        flags["parallelism.pipeline_parallel_layers_per_stage"] = each
        flags["parallelism.pipeline_parallel_first_stage_less_layers"] = first
        flags["parallelism.pipeline_parallel_last_stage_less_layers"] = last
    if layout.ep > 1:
        flags["parallelism.expert_parallel_degree"] = layout.ep
    if layout.zero == 2:
        flags["parallelism.fsdp_reshard_after_forward"] = "never"
    return " ".join(f"--{name} {value}" for name, value in flags.items())
