"""A model as its costs see it: a row of layers, each a few numbers, before anybody splits it. Pure.

    Part     one layer: its parameters by how tensor parallelism treats them, its operations,
             what it saves, and where it talks
    Model    the parts in their order, and the sizes of what passes between them
    gpt      the parts of a published model, from the sizes that its table gives

Tensor parallelism leaves a part's parameters and what it saves *split* or *whole*. It is entered
where a layer split by column begins, and left where one split by row ends; forward sends where it
is left, backward where it is entered (Megatron's g and f). byhand.model.gpt.costs_of gives the
parts of the course's own GPT, one for each of its layers.

Letters: D features, H heads of size d, K key heads, F features inside an MLP, V tokens, S
positions, E experts; T = tokens of a micro-batch on one rank.
Sources: Korthikanti et al. 2022, arXiv:2205.05198, sections 4.1 and 4.3 (what a layer saves);
Narayanan et al. 2021, arXiv:2104.04473, appendix (operations).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One layer before anybody splits it.

    Parameters, of which a rank of tp holds 1/t of `split` and of `experts`, and all others whole:
        split      of layers split by feature or by vocabulary
        whole      whose gradient comes out equal on every rank of tp, as a row layer's bias
        by_token   equal too, but a term of a sum where ranks share tokens: norms, positions
        partial    each rank's gradient is a term of a sum: gains that all heads share
        experts    of all experts together; ep shares them out
    For each token:
        flops      operations of forward; backward has twice as many
        square     those of them that attention's scores take, over the whole square
        saved      bytes for backward: (that tp splits, whole)
        kept       the same between backward's two halves, where they are apart; None: as saved
        scores     bytes of attention's scores, which tp splits and a ring does not keep
        ring       bytes that the ring keeps in their place
        keys       features of its keys, and as many of its values
        routed     rows of D features that it sends to experts
        sums       numbers summed over tp, forward: a split loss's
    enters, leaves: how often forward enters and leaves what tp splits.
    tied: its parameters are the first part's; on another stage than that, a copy of them.
    half: whether it is half of a block, and so one of those that stages share out equally.

    >>> attention = gpt(12, 768, 12, num_tokens=50304, num_positions=1024).parts[1]
    >>> attention.name, attention.parameters
    ('attention', 2363904)
    """

    name: str
    split: float = 0
    whole: float = 0
    by_token: float = 0
    partial: float = 0
    experts: float = 0
    flops: float = 0
    square: float = 0
    saved: tuple[float, float] = (0, 0)
    kept: tuple[float, float] | None = None
    scores: float = 0
    ring: float = 0
    keys: float = 0
    routed: float = 0
    sums: float = 0
    enters: float = 0
    leaves: float = 0
    tied: bool = False
    half: bool = False

    @property
    def parameters(self) -> float:
        """Of the whole layer."""
        return self.split + self.whole + self.by_token + self.partial + self.experts


@dataclass(frozen=True)
class Model:
    """Parts, one after the other; itemsize: bytes of a number that passes between them.

    num_heads: of queries, which tp must divide.

    >>> model = gpt(12, 768, 12, num_tokens=50304, num_positions=1024)
    >>> len(model.parts), model.parameters, f"{model.flops:.3g}"
    (27, 124475904, '2.92e+11')
    """

    parts: tuple[Part, ...]
    num_features: int
    num_positions: int
    itemsize: int = 2
    num_heads: int = 1

    def __repr__(self) -> str:
        """Short: of its parts how many there are."""
        sizes = f"num_features={self.num_features}, num_positions={self.num_positions}"
        return f"Model({len(self.parts)} parts, {self.parameters:,.0f} parameters, {sizes})"

    @property
    def parameters(self) -> float:
        """Of the model, tied ones once."""
        return sum(part.parameters for part in self.parts if not part.tied)

    @property
    def flops(self) -> float:
        """Operations of one sequence's forward."""
        return self.num_positions * sum(part.flops for part in self.parts)


def gpt(
    num_layers: int,
    num_features: int,
    num_heads: int,
    num_tokens: int,
    num_positions: int,
    *,
    num_key_heads: int | None = None,
    head_size: int | None = None,
    width: int | None = None,
    gated: bool = False,
    tied: bool = True,
    num_experts: int = 0,
    experts_per_token: int = 0,
    itemsize: int = 2,
    scores: float = 0,
) -> Model:
    """A published model of that many blocks. Its attention is counted over the whole square.

    width: of the MLP, or of one expert; 4 D when None. gated: Llama's form, three products in the
    MLP, RMSNorm, no biases, no dropout, no table of positions; else GPT-3's. scores: bytes that
    attention saves for a pair of positions and a head: 0 with a fused kernel, 5 in Korthikanti's
    table. The table of tokens is split by vocabulary; of its logits the loss keeps a copy of four
    bytes each.

    Raises:
        ValueError: a count below 1, features that are no multiple of the heads, heads that are no
            multiple of the key heads, or a token that visits more experts than there are.

    >>> model = gpt(96, 12288, 96, num_tokens=51200, num_positions=2048)
    >>> f"{model.parameters:,}"
    '174,615,846,912'
    """
    counts = {"num_layers": num_layers, "num_features": num_features, "num_heads": num_heads}
    counts |= {"num_tokens": num_tokens, "num_positions": num_positions, "itemsize": itemsize}
    more = {"num_key_heads": num_key_heads, "head_size": head_size, "width": width}
    for name, count in (counts | more).items():
        if count is not None and count < 1:
            raise ValueError(f"{name} is {count}: it must be at least 1")
    if head_size is None and num_features % num_heads:
        raise ValueError(
            f"{num_features} features do not make {num_heads} heads: without head_size they must "
            "be a multiple"
        )
    if num_heads % (num_key_heads or num_heads):
        raise ValueError(
            f"{num_heads} heads cannot share {num_key_heads} key heads: they must be a multiple"
        )
    if not bool(num_experts) <= experts_per_token <= num_experts:
        raise ValueError(f"a token cannot visit {experts_per_token} of {num_experts} experts")
    form, size = _Form(num_features, itemsize, gated), head_size or num_features // num_heads
    queries, keys = num_heads * size, (num_key_heads or num_heads) * size
    attention = form.attention(queries, keys, num_positions, scores * num_heads * num_positions)
    inside = width or 4 * num_features
    mlp = form.mlp(inside)
    if num_experts:
        mlp = form.experts(inside, num_experts, experts_per_token)
    blocks = (attention, mlp) * num_layers
    parts = (form.embedding(num_tokens, num_positions), *blocks, *form.end(num_tokens, tied))
    return Model(parts, num_features, num_positions, itemsize, num_heads)


@dataclass(frozen=True)
class _Form:
    """GPT-3's layers or, if gated, Llama's: D features, numbers of `itemsize` bytes."""

    num_features: int
    itemsize: int
    gated: bool

    @property
    def biases(self) -> int:
        """How many a feature that comes out of a product has."""
        return 0 if self.gated else 1

    @property
    def norm(self) -> int:
        """Parameters of a norm."""
        return self.num_features * (1 + self.biases)

    @property
    def mask(self) -> int:
        """Bytes of a dropout's mask, for a token: one a feature."""
        return self.biases * self.num_features

    @property
    def row(self) -> int:
        """Bytes of a token's D features."""
        return self.num_features * self.itemsize

    @property
    def whole(self) -> int:
        """Bytes that half a block saves whole, for a token: a norm's input and output, a mask."""
        return 2 * self.row + self.mask

    def attention(self, queries: int, keys: int, num_positions: int, scores: float) -> Part:
        """Features of all heads' queries, and of their keys; bytes of scores for a token."""
        d, products = self.num_features, queries + 2 * keys
        square = 4 * num_positions * queries
        return Part(
            "attention",
            split=d * products + queries * d + self.biases * products,
            whole=self.biases * d,
            by_token=self.norm,
            flops=2 * d * products + 2 * queries * d + square,
            square=square,
            saved=((2 * queries + 2 * keys) * self.itemsize, self.whole),
            scores=scores,
            keys=keys,
            enters=1,
            leaves=1,
            half=True,
        )

    def weights(self, width: int) -> tuple[int, int]:
        """Of an MLP with F features inside: its weights, and bytes of F that a token saves."""
        products = 3 if self.gated else 2  # of D x F weights; as many tensors of F are saved
        return products * self.num_features * width, products * width * self.itemsize

    def mlp(self, width: int) -> Part:
        """One MLP, with F features inside."""
        weights, inside = self.weights(width)
        return Part(
            "mlp",
            split=weights + self.biases * width,
            whole=self.biases * self.num_features,
            by_token=self.norm,
            flops=2 * weights,
            saved=(inside, self.whole),
            enters=1,
            leaves=1,
            half=True,
        )

    def experts(self, width: int, count: int, visited: int) -> Part:
        """MLPs in the place of one, and the router that chooses those a token visits."""
        (weights, inside), router = self.weights(width), self.num_features * count
        return Part(
            "experts",
            experts=count * (weights + self.biases * (width + self.num_features)),
            by_token=self.norm + router,
            flops=2 * (visited * weights + router),
            saved=(visited * inside, self.whole + 2 * visited * self.row),  # rows there and back
            routed=visited,
            enters=1,
            leaves=1,
            half=True,
        )

    def embedding(self, num_tokens: int, num_positions: int) -> Part:
        """The table of tokens, and GPT-3's of positions."""
        places = self.biases * num_positions * self.num_features
        table = num_tokens * self.num_features
        return Part("embedding", split=table, by_token=places, saved=(0, self.mask), leaves=1)

    def end(self, num_tokens: int, tied: bool) -> tuple[Part, Part]:
        """The last norm and the head, with the loss behind it."""
        table = num_tokens * self.num_features
        saved = (4 + self.itemsize) * num_tokens, self.row
        head = Part("head", split=table, flops=2 * table, saved=saved, sums=3, enters=1, tied=tied)
        return Part("norm", by_token=self.norm, saved=(0, self.row)), head
