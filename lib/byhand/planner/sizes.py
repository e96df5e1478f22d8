"""The sizes of a model, read from the parts of byhand.costs.gpt. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.costs.model import Model


@dataclass(frozen=True)
class Sizes:
    """L blocks, D features, heads of queries, features of queries and keys, F inside an MLP.

    up: products into an MLP's inside, 2 where it is gated. experts: of a block, of which a token
    visits `visited`; 0 and 1 where the MLP is dense. V tokens, S positions.
    """

    blocks: int
    features: int
    heads: int
    queries: float
    keys: float
    inside: float
    up: int
    experts: int
    visited: float
    tokens: float
    positions: int
    tied: bool


def sizes(model: Model) -> Sizes:
    """What gpt was given.

    Raises:
        ValueError: the model is not one of gpt's.
    """
    named = {part.name: part for part in model.parts}
    mlp = named.get("mlp") or named.get("experts")
    if mlp is None or not {"embedding", "attention", "norm", "head"} <= set(named):
        raise ValueError(
            "the planner takes models of byhand.costs.gpt: of an embedding, blocks, a norm and a "
            f"head; this one has {', '.join(sorted(named))}"
        )
    attention, head = named["attention"], named["head"]
    d, visited = model.num_features, mlp.routed or 1
    up = 1 if attention.whole else 2  # gated models have no biases
    routing = 2 * mlp.experts / max(mlp.experts, 1) * (mlp.by_token - d * (3 - up))
    inside = (mlp.flops - routing) / (2 * visited * (up + 1) * d)
    return Sizes(
        blocks=sum(part.half for part in model.parts) // 2,
        features=d,
        heads=model.num_heads,
        queries=attention.square / (4 * model.num_positions),
        keys=attention.keys,
        inside=inside,
        up=up,
        experts=round((mlp.by_token - d * (3 - up)) / d) if mlp.routed else 0,
        visited=visited,
        tokens=head.split / d,
        positions=model.num_positions,
        tied=head.tied,
    )
