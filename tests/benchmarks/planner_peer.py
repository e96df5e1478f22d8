"""The planner beside llm-analysis, on the same published steps in one run.

    pip install llm-analysis==0.2.2; python tests/benchmarks/planner_peer.py

llm-analysis wants to be told which share of the peak is reached: it gets the share that suits it
best for each software, machine and precision, as our constants are fitted to the same rows. It
knows no pipeline's bubble; its FP8 is bf16 on a GPU of twice the peak; cp is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections import defaultdict
from itertools import groupby
from typing import Any

import numpy as np

from byhand.planner.machines import MACHINES
from byhand.planner.published import Published, scored
from byhand.planner.sizes import sizes
from byhand.planner.step import step

SHARES = np.arange(0.14, 0.90, 0.02)


def ours(row: Published) -> float:
    """Seconds, by the planner."""
    given = {"precision": row.precision, "compiled": row.compiled, "reduce_dtype": row.reduce_dtype}
    asked = row.model, row.layout, row.machine, row.num_sequences
    return step(*asked, software=row.software, **given).seconds


def theirs(row: Published, share: float) -> float:
    """Seconds, by llm-analysis at that share of the peak."""
    analysis: Any = importlib.import_module("llm_analysis.analysis")
    config: Any = importlib.import_module("llm_analysis.config")
    s, at, machine = sizes(row.model), row.layout, MACHINES[row.machine]
    keys = round(s.keys / (s.queries / s.heads))
    model = config.ModelConfig(
        name=row.name,
        num_layers=s.blocks,
        n_head=s.heads,
        hidden_dim=s.features,
        vocab_size=round(s.tokens),
        max_seq_len=s.positions,
        num_key_value_heads=keys,
        ffn_embed_dim=round(s.inside),
        expansion_ratio=s.inside / s.features,
    )
    gpu = config.GPUConfig(
        name=machine.name,
        mem_per_GPU_in_GB=10_000,  # it refuses what it thinks does not fit
        hbm_bandwidth_in_GB_per_sec=machine.memory_rate / 1e9,
        intra_node_bandwidth_in_GB_per_sec=machine.inside / 1e9,
        intra_node_min_message_latency=8e-6,
        peak_fp16_TFLOPS=machine.peak[row.precision] / 1e12,
        inter_node_bandwidth_in_GB_per_sec=machine.ranks_per_host * machine.between / 1e9,
    )
    degrees = config.ParallelismConfig(
        tp_size=at.tp, pp_size=at.pp, dp_size=at.dp, sp_size=at.tp if at.sequence else 1
    )
    peer = analysis.LLMAnalysis(
        model, gpu, parallelism_config=degrees, flops_efficiency=share, hbm_memory_efficiency=0.85
    )
    again = ["none", "selective", "full"].index(at.recompute)
    found = peer.training(
        batch_size_per_gpu=at.rows,
        global_batch_size=row.num_sequences,
        seq_len=s.positions,
        activation_recomputation=analysis.ActivationRecomputation(again),
        ds_zero=analysis.DSZeRO(at.zero),
        flash_attn=not row.software.startswith("megatron-20"),
        mlp_gated_linear_units=s.up == 2,
    )
    return found["latency_per_iter"]


def family(row: Published) -> tuple[str, str, str]:
    """What shares one efficiency."""
    return row.software, MACHINES[row.machine].kind, row.precision


def main() -> None:
    """A line a family: mean and worst, ours and theirs."""
    if importlib.util.find_spec("llm_analysis") is None:
        print("llm-analysis is not installed: pip install llm-analysis==0.2.2")
        return
    logging.disable(logging.CRITICAL)
    rows = sorted((row for row in scored() if row.layout.cp == 1), key=family)
    every: dict[str, list[float]] = defaultdict(list)
    for key, group in groupby(rows, family):
        given = list(group)
        mine = [abs(ours(row) / row.seconds - 1) for row in given]
        tried = [[abs(theirs(row, e) / row.seconds - 1) for row in given] for e in SHARES]
        best = min(range(len(SHARES)), key=lambda number: sum(tried[number]))
        every["ours"] += mine
        every["theirs"] += tried[best]
        print(
            f"{' '.join(key):30} {len(given):3} rows: ours {np.mean(mine):6.1%} mean "
            f"{max(mine):6.1%} worst; llm-analysis at {SHARES[best]:.2f} of the peak "
            f"{np.mean(tried[best]):6.1%} mean {max(tried[best]):6.1%} worst"
        )
    print(f"all: ours {np.mean(every['ours']):.1%}, theirs {np.mean(every['theirs']):.1%}")


if __name__ == "__main__":
    main()
