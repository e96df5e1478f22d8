"""What a generation of software makes of a machine: a few constants each, fitted once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from byhand.planner import runs

State = Mapping[str, float]
UNSEEN = 0.10  # the error where constants are another's: its own rows would be missed by 4 to 14 %
MEGATRON: State = {"weights": 2, "gradients": 4, "optimizer": 12}


@dataclass(frozen=True)
class Software:
    """Constants of one generation. Shares are of the machine's data sheet.

    Fitted:
    products           a large product's share of the peak, by kind of GPU and precision
    operand            bytes moved for each element of a product's three matrices, by precision
    attention          a fused kernel's share of the bf16 peak, on half the square, by kind of GPU
    traffic            element-wise bytes, for one that a perfectly fused kernel would move
    tensor             seconds of tp's messages that show, for one at NVLink's rate
    hides_gradients    share of gradients' messages that hides behind computing
    Chosen for what the software does, or fitted for few:
    fused              attention's kernel
    scores             bytes of one score's passes, forward, where attention is not fused
    head_cost          a fused kernel's work beside products, as features of a head
    attention_backward seconds of backward for one of forward
    fp8_messages       tp's bytes in fp8, for one in bf16: 0.75 where all-gathers are in fp8
    ring_cost          what cp's ring adds to attention's seconds
    eager              element-wise bytes where nothing is compiled, for one where it is
    stops_early        recomputation leaves out a block's last product
    selective          share of products that "selective" computes again, where attention is fused
    hop, hides_sends   seconds a message between stages; share that interleaving hides
    optimizer, loss    bytes that the optimizer moves a parameter, and the loss a logit
    weight_bytes       of a gathered weight
    reduce_bytes       of a gradient as it is summed
    step_seconds       of a step, whatever it computes
    For memory:
    state, logit       bytes a parameter, and a logit of the loss
    dropout            whether its masks are kept
    And:
    runs               which layouts it runs at all
    error              what rows were missed by on average whose model the fit had not seen

    >>> sorted(SOFTWARE)[:3]
    ['fsdp', 'megatron-2021', 'megatron-2022']
    """

    name: str
    products: Mapping[tuple[str, str], float]
    attention: Mapping[str, float]
    operand: Mapping[str, float]
    traffic: float = 1.3
    tensor: float = 1.0
    fp8_messages: float = 1.0
    hides_gradients: float = 0.0
    fused: bool = True
    scores: float = 0.0
    head_cost: float = 0.0
    attention_backward: float = 2.5
    ring_cost: float = 0.0
    eager: float = 1.0
    stops_early: bool = False
    selective: float = 0.0
    hop: float = 0.0
    hides_sends: float = 0.0
    optimizer: float = 30
    loss: float = 22
    weight_bytes: float = 2
    reduce_bytes: int = 4
    step_seconds: float = 0.02
    state: State = field(default_factory=lambda: MEGATRON)
    logit: float = 10
    dropout: bool = False
    runs: runs.Runs = runs.ANY
    error: float = 0.05


MEGATRON_A100: dict[str, Any] = {
    "attention": {},
    "operand": {"bf16": 3.6},
    "tensor": 1.17,
    "fused": False,
    "dropout": True,
    "scores": 8.6,
    "hop": 6e-4,
    "optimizer": 46,  # unscales, clips and copies beside what Adam moves
    "step_seconds": 0.05,
}
# Attention on H200 and A100, and bf16 on H100, are borrowed: from h100's shares, and from fsdp.
NVIDIA_H100: dict[str, Any] = {
    "runs": runs.MEGATRON,
    "operand": {"bf16": 4.4, "fp8": 2.05},
    "tensor": 0.37,
    "hides_gradients": 0.85,
    "hides_sends": 0.9,
}
TORCHTITAN: dict[str, Any] = {
    "runs": runs.TORCHTITAN,
    "products": {
        ("h100", "bf16"): 0.578,  # of GPUs held to 500 W
        ("h100", "fp8"): 0.572,
        ("h200", "bf16"): 0.665,  # borrowed: from fsdp on h100
        ("h200", "fp8"): 0.664,
        ("a100", "bf16"): 0.80,  # borrowed: from fsdp
    },
    "attention": {"h100": 0.239, "h200": 0.265, "a100": 0.31},
    "operand": {"bf16": 4.5, "fp8": 7.6},
    "eager": 3.5,
    "stops_early": True,
    "selective": 0.4,
    "ring_cost": 0.38,
    "fp8_messages": 0.75,
    "hides_gradients": 0.94,
    "logit": 14,
}
SOFTWARE = {
    software.name: software
    for software in (
        Software(
            "nemo",
            products={
                ("h100", "fp8"): 0.573,
                ("h100", "bf16"): 0.665,
                ("h200", "fp8"): 0.573,
                ("h200", "bf16"): 0.665,
                ("a100", "bf16"): 0.886,
            },
            attention={"h100": 0.311, "h200": 0.311, "a100": 0.31},
            state={"weights": 2, "gradients": 2, "optimizer": 12},
            error=0.04,
            **NVIDIA_H100,
        ),
        Software(
            "megatron-bridge",
            products={
                ("h100", "fp8"): 0.67,
                ("h100", "bf16"): 0.7,
                ("h200", "fp8"): 0.67,
                ("h200", "bf16"): 0.7,
                ("a100", "bf16"): 0.886,
            },
            attention={"h100": 0.379, "h200": 0.379, "a100": 0.31},
            error=0.04,
            **NVIDIA_H100,
        ),
        Software(
            "fsdp",
            products={
                ("a100", "bf16"): 0.799,
                ("h100", "bf16"): 0.665,
                ("h100", "fp8"): 0.674,
                ("h200", "bf16"): 0.665,
                ("h200", "fp8"): 0.674,
            },
            attention={"a100": 0.428, "h100": 0.235, "h200": 0.235},
            operand={"bf16": 4.37, "fp8": 5.84},
            traffic=1.11,
            stops_early=True,
            hides_gradients=0.33,
            head_cost=2.2,
            attention_backward=3.77,
            loss=25,
            logit=6,
            runs=runs.FSDP,
            error=0.03,
        ),
        Software("torchtitan", tensor=1.05, error=0.06, **TORCHTITAN),
        Software("torchtitan-async", tensor=0.59, error=0.06, **TORCHTITAN),
        Software(
            "megatron-2021",
            products={("a100", "bf16"): 0.80},
            reduce_bytes=2,
            runs=runs.MEGATRON_2021,
            error=0.03,
            **MEGATRON_A100,
        ),
        Software(
            "megatron-2022",
            products={("a100", "bf16"): 0.886},
            runs=runs.MEGATRON_2022,
            error=0.03,
            **MEGATRON_A100,
        ),
    )
}

# Two thirds of fits lie within this share of a constant: tests/benchmarks/planner.py --fit
TITAN_INTERVALS = {
    "products h100 bf16": 0.05,
    "products h100 fp8": 0.09,
    "products h200 fp8": 0.13,
    "attention h100": 0.04,
    "attention h200": 0.16,
    "operand fp8": 0.17,
    "eager": 0.13,
    "selective": 0.28,
    "ring_cost": 0.18,
    "hides_gradients": 0.19,
}
INTERVALS: Mapping[str, Mapping[str, float]] = {
    "megatron-2021": {"products a100 bf16": 0.03},
    "megatron-2022": {
        "products a100 bf16": 0.04,
        "operand bf16": 0.21,
        "scores": 0.24,
        "tensor": 0.10,
        "hop": 0.56,
    },
    "fsdp": {
        "products a100 bf16": 0.02,
        "products h100 bf16": 0.02,
        "products h100 fp8": 0.15,
        "attention a100": 0.07,
        "attention h100": 0.07,
        "operand bf16": 0.12,
        "operand fp8": 0.20,
        "traffic": 0.27,
        "head_cost": 0.45,
        "attention_backward": 0.09,
        "hides_gradients": 0.20,
        "loss": 0.15,
        "step_seconds": 0.28,
    },
    "nemo": {
        "products h100 fp8": 0.08,
        "attention h100": 0.02,
        "operand fp8": 0.39,
        "tensor": 0.29,
        "hides_gradients": 0.09,
    },
    "megatron-bridge": {"products h100 fp8": 0.09, "attention h100": 0.15},
    "torchtitan": TITAN_INTERVALS | {"tensor": 0.14},
    "torchtitan-async": TITAN_INTERVALS | {"tensor": 0.22},
}


def usual(kind: str) -> str:
    """The software that is meant where none is named: one that was fitted to this kind of GPU."""
    return "megatron-2022" if kind == "a100" else "nemo"


def error(software: Software, kind: str, precision: str) -> float:
    """What to expect of a prediction: the software's error where its products' share was fitted."""
    fitted = f"products {kind} {precision}" in INTERVALS.get(software.name, {})
    return software.error if fitted else UNSEEN
