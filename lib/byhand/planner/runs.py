"""What a generation of software runs at all: a search lists no other layouts. Pure.

Every chunk of a pipeline is made of whole blocks. Where they do not divide, the first chunks have
one more; Megatron of 2021 and 2022 runs equal chunks alone. Later software can give the table of
tokens and the head a chunk each, as Llama 3 405B had: 126 blocks in 128 chunks.
Sources: NVIDIA/Megatron-LM, megatron/training/arguments.py (chunks) and its history: sequence
parallelism came in March 2022, the distributed optimizer (ZeRO-1) in June 2022, cp in 2023.
mosaicml/llm-foundry (FSDP alone). pytorch/torchtitan, torchtitan/config (ZeRO by FSDP2: 2 and 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from byhand.costs.layout import RECOMPUTE, Layout


@dataclass(frozen=True)
class Runs:
    """most: of degrees and of chunks, by name. even: all chunks must have as many blocks.

    inner_even: so must those between the model's first and last, where a stage has several.
    piped: the stages of ZeRO, of those in `zero`, that run under a pipeline.
    """

    most: Mapping[str, int] = field(default_factory=dict)
    zero: tuple[int, ...] = (0, 1, 2, 3)
    sequence: tuple[bool, ...] = (False, True)
    recompute: tuple[str, ...] = RECOMPUTE
    piped: tuple[int, ...] = (0, 1, 2, 3)
    even: bool = False
    inner_even: bool = False

    def refuses(self, layout: Layout, blocks: int) -> str:
        """Why a model of so many blocks cannot run so, in a sentence; "" where it can."""
        for name, most in self.most.items():
            if (degree := getattr(layout, name)) > most:
                return f"{name} is {degree}: at most {most} can be run"
        for name in ("zero", "sequence", "recompute"):
            known, value = getattr(self, name), getattr(layout, name)
            if value not in known:
                return f"{name} is {value}: only {', '.join(map(str, known))} can be run"
        if layout.pp > 1 and layout.zero not in self.piped:
            return f"zero is {layout.zero} under a pipeline: only {self.piped} can be run there"
        if not self.cuts(blocks, layout.pp, layout.chunks):
            total = layout.pp * layout.chunks
            why = f"{blocks} blocks cannot make {total} {'equal ' * self.even}chunks"
            inner = self.inner_even and layout.chunks > 1
            return why + inner * " of which only the first and the last have fewer"
        return ""

    def cuts(self, blocks: int, pp: int, chunks: int) -> bool:
        """Whether so many blocks can be cut so."""
        if self.even:
            return blocks % (pp * chunks) == 0
        if self.inner_even and chunks > 1:
            each, first, _ = shared_out(blocks, pp * chunks)
            return first <= each
        return pp * chunks <= most(blocks, chunks)


def most(blocks: int, chunks: int) -> int:
    """Chunks of the whole model: as many as blocks, and where stages have several, two tables."""
    return blocks + 2 if chunks > 1 else blocks


def shared_out(blocks: int, chunks: int) -> tuple[int, int, int]:
    """Blocks of a chunk, and how many fewer the first and the last have: torchtitan's words.

    >>> shared_out(126, 128), shared_out(126, 64), shared_out(10, 8)  # no chunk can lack 3 of 2
    ((1, 1, 1), (2, 1, 1), (2, 3, 3))
    """
    each = -(-blocks // chunks)
    spare = each * chunks - blocks
    return each, -(-spare // 2), spare // 2


ANY = Runs()
MEGATRON_2021 = Runs({"cp": 1, "ep": 1}, (0,), (False,), ("none", "full"), even=True)
MEGATRON_2022 = Runs({"cp": 1, "ep": 1}, (0, 1), even=True)
MEGATRON = Runs(piped=(0, 1))  # its FSDP is in no published row that has a pipeline
FSDP = Runs({"tp": 1, "pp": 1, "cp": 1, "ep": 1}, (0, 2, 3), (False,), ("none", "full"))
TORCHTITAN = Runs(zero=(0, 2, 3), inner_even=True)
