"""What a generation of software makes of a machine: a few constants each, fitted once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

State = Mapping[str, float]
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
    """

    name: str
    products: Mapping[tuple[str, str], float]
    attention: Mapping[str, float]
    operand: Mapping[str, float]
    traffic: float = 1.3
    tensor: float = 1.0
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
    error: float = 0.05


SOFTWARE = {
    software.name: software
    for software in (
        Software(
            "megatron-2021",
            products={("a100", "bf16"): 0.80},
            attention={},
            operand={"bf16": 3.6},
            tensor=1.17,
            fused=False,
            dropout=True,
            scores=8.6,
            hop=6e-4,
            optimizer=46,
            reduce_bytes=2,
            step_seconds=0.05,
        ),
        Software(
            "megatron-2022",
            products={("a100", "bf16"): 0.886},
            attention={},
            operand={"bf16": 3.6},
            tensor=1.17,
            fused=False,
            dropout=True,
            scores=8.6,
            hop=6e-4,
            optimizer=46,
            step_seconds=0.05,
        ),
        Software(
            "fsdp",
            products={("a100", "bf16"): 0.799, ("h100", "bf16"): 0.665, ("h100", "fp8"): 0.674},
            attention={"a100": 0.428, "h100": 0.235},
            operand={"bf16": 4.4, "fp8": 5.8},
            traffic=1.1,
            stops_early=True,
            hides_gradients=0.33,
            head_cost=2.2,
            attention_backward=3.8,
            loss=25,
            logit=6,
        ),
        Software(
            "nemo",
            state={"weights": 2, "gradients": 2, "optimizer": 12},
            products={("h100", "bf16"): 0.7, ("h100", "fp8"): 0.573},
            attention={"h100": 0.311},
            operand={"bf16": 4.4, "fp8": 2.05},
            tensor=0.37,
            hides_gradients=0.85,
            hides_sends=0.9,
        ),
        Software(
            "megatron-bridge",
            products={("h100", "bf16"): 0.7, ("h100", "fp8"): 0.67},
            attention={"h100": 0.379},
            operand={"bf16": 4.4, "fp8": 2.05},
            tensor=0.37,
            hides_gradients=0.85,
            hides_sends=0.9,
        ),
        *(
            Software(
                name,
                products={
                    ("h100", "bf16"): 0.579,
                    ("h100", "fp8"): 0.583,
                    ("h200", "bf16"): 0.65,
                    ("h200", "fp8"): 0.657,
                },
                attention={"h100": 0.236, "h200": 0.262},
                operand={"bf16": 4.5, "fp8": 7.1},
                tensor=show,
                eager=3.5,
                stops_early=True,
                selective=0.4,
                ring_cost=0.365,
                logit=14,
                hides_gradients=0.92,
            )
            for name, show in (("torchtitan", 1.02), ("torchtitan-async", 0.58))
        ),
    )
}
