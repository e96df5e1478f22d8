"""Published models by name. Pure.

Sources: Narayanan et al. 2021, arXiv:2104.04473 (gpt-3's shapes and the trillion);
mosaicml/llm-foundry, scripts/train/yamls/pretrain (mpt); pytorch/torchtitan and NVIDIA/NeMo
(llama, nemotron).
"""

from __future__ import annotations

from byhand.costs.model import Model, gpt

# blocks, features, heads, key heads, width, tokens, positions; gated
MPT = {"125m": (12, 768, 12), "350m": (24, 1024, 16), "760m": (24, 1536, 12), "1b": (24, 2048, 16)}
MPT |= {"3b": (32, 2560, 20), "7b": (32, 4096, 32), "13b": (40, 5120, 40), "30b": (48, 7168, 56)}
MPT |= {"70b": (80, 8192, 64)}
SHAPES = {
    "llama2-7b": (32, 4096, 32, 32, 11008, 32000, 4096, True),
    "llama2-13b": (40, 5120, 40, 40, 13824, 32000, 4096, True),
    "llama2-70b": (80, 8192, 64, 8, 28672, 32000, 4096, True),
    "llama3-8b": (32, 4096, 32, 8, 14336, 128256, 8192, True),
    "llama3-70b": (80, 8192, 64, 8, 28672, 128256, 8192, True),
    "llama3-405b": (126, 16384, 128, 8, 53248, 128256, 8192, True),
    "nemotron-340b": (96, 18432, 96, 8, 73728, 256000, 4096, False),
    "gpt3-20b": (44, 6144, 48, 48, 24576, 51200, 2048, False),
    "gpt3-175b": (96, 12288, 96, 96, 49152, 51200, 2048, False),
    "gpt-530b": (105, 20480, 128, 128, 81920, 51200, 2048, False),
    "gpt-1t": (128, 25600, 160, 160, 102400, 51200, 2048, False),
}
SHAPES |= {
    f"mpt-{size}": (blocks, features, heads, heads, 4 * features, 50368, 2048, False)
    for size, (blocks, features, heads) in MPT.items()
}
NAMES = tuple(SHAPES)


def named(name: str, num_positions: int | None = None) -> Model:
    """The model of that name, on sequences of so many tokens; its own number where None.

    Raises:
        ValueError: no such model.
    """
    if name not in SHAPES:
        raise ValueError(f"no model is called {name!r}; there are {', '.join(NAMES)}")
    blocks, features, heads, keys, width, tokens, positions, gated = SHAPES[name]
    return gpt(
        blocks,
        features,
        heads,
        tokens,
        num_positions or positions,
        num_key_heads=keys,
        width=width,
        gated=gated,
        tied=name.startswith(("gpt", "mpt")),
    )
