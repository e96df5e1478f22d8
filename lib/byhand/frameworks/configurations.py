"""Five real runs: lines of their configurations, and the same in this course's words. Pure.

Each line is its source's, shortened where it says so; beside it stands what it means here. From
the layout follow the groups of lecture 11, the bytes of a rank, by `byhand.costs.held`, and the
seconds of a step, by `byhand.planner.step`, beside those that the source gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from byhand.costs.counting import held, held_state
from byhand.costs.layout import Layout
from byhand.costs.model import Model, Part, gpt
from byhand.planner.machines import MACHINES, Machine
from byhand.planner.step import Step, step

LLAMA_405B = gpt(
    126, 16384, 128, 128256, 8192, num_key_heads=8, width=53248, gated=True, tied=False
)
BERT_LARGE = gpt(24, 1024, 16, 30522, 512)  # arXiv:1810.04805, section 3; its head is BERT's own
MIXTRAL = gpt(
    32,
    4096,
    32,
    32000,
    4096,
    num_key_heads=8,
    width=14336,
    gated=True,
    tied=False,
    num_experts=8,
    experts_per_token=2,
)


def deepseek_v3() -> Model:
    """Its parameters alone, by layer: arXiv:2412.19437, section 4.2. MTP's layer is left out.

    Attention keeps keys and values in 512 features, and queries in 1536, before 128 heads of
    128 + 64; three layers are dense, of 18432 features; 58 have 256 experts of 2048, and one that
    every token visits.
    """
    d, heads = 7168, 128
    latent = d * (512 + 64) + 512 * heads * 256 + d * 1536 + 1536 * heads * 192
    attention = Part("attention", split=latent + heads * 128 * d, half=True)
    dense = Part("mlp", split=3 * d * 18432, half=True)
    expert = 3 * d * 2048
    experts = Part("experts", experts=256 * expert, split=expert, by_token=256 * d, half=True)
    blocks = (*(attention, dense) * 3, *(attention, experts) * 58)
    table = Part("embedding", split=129280 * d)
    return Model((table, *blocks, Part("head", split=129280 * d)), d, 4096, 2, heads)


def without_positions(model: Model) -> Model:
    """The same without a table of positions: BLOOM's attention is told distances (ALiBi)."""
    table, *others = model.parts
    return replace(model, parts=(replace(table, by_token=0), *others))


JEAN_ZAY = replace(MACHINES["a100-80gb"], name="jean-zay", between=4 * 12.5e9 / 8)  # BLOOM's


@dataclass(frozen=True)
class Ran:
    """Where it ran, the planner's software for it, and how fast its source says it was.

    machine: None where the planner cannot judge, and unjudged says why. seconds or mfu: as the
    source has them, where it has them. told: the source's words. floor: why the run takes longer
    than the planner says, if it does.
    """

    machine: Machine | None
    software: str = ""
    precision: str = "bf16"
    seconds: float | None = None
    mfu: float | None = None
    told: str = ""
    floor: str = ""
    unjudged: str = ""


@dataclass(frozen=True)
class Configuration:
    """What a run wrote, and what that is here.

    lines: as the source has them, and their meaning. state: bytes a parameter of weights, gradients
    and optimizer. counted: whether `costs` knows what it saves for backward.
    """

    model: Model
    layout: Layout
    num_sequences: int
    lines: Mapping[str, str]
    source: str
    state: Mapping[str, int]
    ran: Ran
    counted: bool = True

    def held(self) -> dict[str, float]:
        """Bytes of a rank of the first stage."""
        if not self.counted:
            return held_state(self.model, self.layout, 0, self.state)
        return held(self.model, self.layout, self.num_sequences, 0, state=self.state)

    def step(self, chunks: int = 1) -> Step | None:
        """Seconds on paper, with so many chunks a stage; None where the planner cannot judge."""
        if self.ran.machine is None:
            return None
        asked = self.model, replace(self.layout, chunks=chunks), self.ran.machine
        by, precision = self.ran.software, self.ran.precision
        return step(*asked, self.num_sequences, software=by, precision=precision)


def states(weights: int, gradients: int, optimizer: int) -> dict[str, int]:
    """Bytes a parameter of each."""
    return {"weights": weights, "gradients": gradients, "optimizer": optimizer}


CONFIGURATIONS = {
    "BLOOM 176B": Configuration(
        without_positions(gpt(70, 14336, 112, 250880, 2048)),
        Layout(dp=8, tp=4, pp=12, rows=2, zero=1, recompute="full", light_ends=True),
        2048,
        {
            "#SBATCH --nodes=48, --gres=gpu:8": "384 ranks",
            "TP_SIZE=4": "tp 4: half a host",
            "PP_SIZE=12": "pp 12; so dp = 384 / 4 / 12 = 8",
            "MICRO_BATCH_SIZE=2": "micro-batches of 2 rows",
            "GLOBAL_BATCH_SIZE=2048": "2048 sequences a step: 128 micro-batches a replica",
            "--pp-partition-method 'type:transformer|embedding'": (
                "70 blocks and 2 copies of the table share 12 stages: 6 each"
            ),
            "--checkpoint-activations": "blocks are recomputed",
            "ZERO_STAGE=0 # ... its own zero stage 1 equivalent": (
                "ZeRO stage 1, by DeepSpeed's bf16 optimizer itself"
            ),
        },
        "github.com/bigscience-workshop/bigscience, train/tr11-176B-ml/tr11-176B-ml.slurm",
        states(2, 4, 12),
        Ran(
            JEAN_ZAY,
            "megatron-2021",
            seconds=105,
            told="105 seconds an iteration: train/tr11-176B-ml/README.md",
        ),
    ),
    "Llama 3 405B": Configuration(
        LLAMA_405B,
        Layout(
            dp=128,
            tp=8,
            pp=16,
            order="tp-cp-ep-pp-dp",
            zero=2,
            sequence=True,
            light_ends=True,
        ),
        2048,
        {
            "GPUs 16,384": "16 384 ranks",
            "TP 8, CP 1, PP 16, DP 128": "tp 8, cp 1, pp 16, dp 128",
            "[TP, CP, PP, DP]": "the order: tp nearest, dp furthest",
            "Seq. Len. 8,192; Batch size/DP 16": "16 micro-batches of 1 row; 2048 sequences",
            "reduce one Transformer layer each": "7 blocks on the first and last stage, else 8",
            "we do not reshard after forward computation": (
                "weights stay whole from forward to backward: ZeRO stage 2"
            ),
            "8K tokens without activation checkpointing": "nothing is recomputed",
        },
        "arXiv:2407.21783, section 3.3.2, table 4",
        states(2, 4, 12),
        Ran(
            MACHINES["h100-80gb"],
            "nemo",
            mfu=0.41,
            told="BF16 MFU 41 %: table 4",
        ),
    ),
    "torchtitan 405B": Configuration(
        LLAMA_405B,
        Layout(dp=16, tp=8, rows=2, zero=3, sequence=True, recompute="full"),
        32,
        {
            "this toml config is a preset for 128 H100 GPUs": "128 ranks",
            "tensor_parallel_degree = 8": "tp 8, with sequence parallelism (lecture 08)",
            "data_parallel_shard_degree = -1": "what is left: dp 128 / 8 = 16, ZeRO stage 3",
            "pipeline_parallel_degree = 1": "pp 1",
            "local_batch_size = 2": "one micro-batch of 2 rows: 32 sequences a step",
            "[activation_checkpoint] mode = 'full'": "blocks are recomputed",
            'converters = ["float8"]': "products in FP8",
            "enable_async_tensor_parallel = true": "tp's messages hide behind products",
        },
        "github.com/pytorch/torchtitan, commit 8a2686c4a4e41545a21b54954aff10a0df59eef9, "
        "torchtitan/models/llama3/train_configs/llama3_405b.toml",
        states(4, 4, 8),
        Ran(MACHINES["h100-80gb"], "torchtitan-async", "fp8"),
    ),
    "Mixtral 8x7B": Configuration(
        MIXTRAL,
        Layout(dp=8, pp=4, ep=8, zero=1),
        256,
        {
            "--tensor-model-parallel-size 1": "tp 1",
            "--pipeline-model-parallel-size 4": "pp 4",
            "--expert-model-parallel-size 8": "ep 8: dp is a multiple of 8",
            "--sequence-parallel": "nothing, where tp is 1",
            "--use-distributed-optimizer": "ZeRO stage 1",
            "--micro-batch-size 1": "micro-batches of 1 row",
        },
        "github.com/NVIDIA/Megatron-LM, examples/mixtral/train_mixtral_8x7b_distributed.sh",
        states(2, 4, 12),
        Ran(
            MACHINES["h100-80gb"],
            "megatron-bridge",
            floor="rows routed evenly, at no cost",
        ),
    ),
    "DeepSeek-V3": Configuration(
        deepseek_v3(),
        Layout(dp=128, pp=16, ep=64, zero=1),
        15360,
        {
            "2048 NVIDIA H800 GPUs": "2048 ranks",
            "16-way Pipeline Parallelism": "pp 16; so dp = 2048 / 16 = 128",
            "64-way Expert Parallelism spanning 8 nodes": "ep 64: two copies of an expert",
            "ZeRO-1 Data Parallelism": "ZeRO stage 1",
            "increased from 3072 to 15360": "15 360 sequences a step, in the end",
        },
        "arXiv:2412.19437, sections 3.1, 3.2 and 4.2",
        states(2, 4, 8),
        Ran(
            None,
            seconds=180e3 * 3600 / 2048 / (1e12 / (15360 * 4096)),
            told="180K H800 GPU hours for 10¹² tokens: section 1",
            unjudged="no constants are fitted for its attention, its FP8 in blocks, or H800",
        ),
        counted=False,
    ),
}
