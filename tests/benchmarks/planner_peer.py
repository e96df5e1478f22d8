"""The planner beside llm-analysis, on the same published steps in one run.

    pip install llm-analysis==0.2.2; python tests/benchmarks/planner_peer.py [--write]

--write keeps its seconds in lib/byhand/planner/peer.json, which lecture 17 shows beside ours.
llm-analysis wants to be told which share of the peak is reached: it gets the share that suits it
best for each software, machine and precision, as our constants are fitted to the same rows. It
knows no pipeline's bubble; its FP8 is bf16 on a GPU of twice the peak; cp is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import sys
from datetime import date
from importlib.metadata import version
from itertools import groupby
from typing import Any

import numpy as np

from byhand.planner import peer
from byhand.planner.machines import MACHINES
from byhand.planner.published import Published
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


def fitted(given: list[Published]) -> tuple[float, dict[str, float]]:
    """The share of the peak that suits it best on these rows, and its seconds of each."""
    tried = [[theirs(row, share) for row in given] for share in SHARES]
    missed = [peer.missed(given, seconds)[0] for seconds in tried]
    best = int(np.argmin(missed))
    return round(float(SHARES[best]), 2), {
        row.name: seconds for row, seconds in zip(given, tried[best], strict=True)
    }


def main() -> None:
    """A line a family: mean and worst, ours and theirs."""
    if importlib.util.find_spec("llm_analysis") is None:
        print("llm-analysis is not installed: pip install llm-analysis==0.2.2")
        return
    logging.disable(logging.CRITICAL)
    shares: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for name, group in groupby(peer.rows(), peer.family):
        given = list(group)
        shares[name], found = fitted(given)
        seconds |= found
        mine = peer.missed(given, map(ours, given))
        yours = peer.missed(given, found.values())
        print(
            f"{name:30} {len(given):3} rows: ours {mine[0]:6.1%} mean {mine[1]:6.1%} worst; "
            f"llm-analysis at {shares[name]:.2f} of the peak {yours[0]:6.1%} mean "
            f"{yours[1]:6.1%} worst"
        )
    all_rows = peer.rows()
    both = [map(ours, all_rows), (seconds[row.name] for row in all_rows)]
    print("all: ours {:.1%}, theirs {:.1%}".format(*(peer.missed(all_rows, s)[0] for s in both)))
    if "--write" in sys.argv[1:]:
        kept = {
            "peer": f"llm-analysis {version('llm-analysis')}",
            "written": str(date.today()),
            "command": "python tests/benchmarks/planner_peer.py --write",
            "shares": shares,
            "seconds": {name: float(f"{each:.6g}") for name, each in seconds.items()},
        }
        peer.FILE.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
