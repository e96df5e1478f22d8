"""Both ends of a language model, split by the vocabulary: no rank has all scores of a token.

    VocabularyParallelEmbedding           each rank looks up the tokens that are in its rows
    VocabularyParallelHead                the same rows again: this rank's columns of the logits
    vocabulary_parallel_cross_entropy     the loss, and the gradient of these columns

The loss needs of a row its largest logit, the sum of the exponentials and the logit of the answer:
three numbers a token cross, where an all-gather would bring V to each rank.
Any vocabulary of at least n tokens will do: rank r has the rows that `tensor_split` gives it.

Shapes: B sequences, S positions, T = B·S tokens, D features, n ranks, V vocabulary, V_r rank r's.
Simplified: computes in the logits' dtype, where Megatron takes float32; no label smoothing.
Sources: Shoeybi et al. 2019, arXiv:1909.08053, section 3; Megatron-LM, cross_entropy.py.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from byhand.model.layer import PARTIAL, SHARDED, Layer
from byhand.model.shards import Group, shard
from byhand.sequence_parallel.tokens import gather, reduce_scatter

Pair = tuple[Tensor, Tensor]


class VocabularyParallelEmbedding(Layer):
    """y[b, s] = E[tokens[b, s]] + positions[s], with V_r rows of E [V, D] on rank r."""

    holds = {"table": SHARDED, "positions": PARTIAL}

    def __init__(self, table: Tensor, positions: Tensor, group: Group = None):
        """Keep this rank's rows of the full table E [V, D], and all positions [S, D].

        Raises:
            ValueError: fewer tokens than ranks.
        """
        self.first, last = columns_of_rank(len(table), group)
        self.vocabulary, self.group = len(table), group
        self.table, self.positions = table[self.first : last].clone(), positions.clone()
        self.grad_table = torch.zeros_like(self.table)
        self.grad_positions = torch.zeros_like(positions)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """tokens [B, S] replicated -> y [B, S/n, D] sharded by token; saves the tokens.

        Each rank looks up its own rows and has 0 for the others: their sum over ranks is E[tokens].
        Sends (n-1)/n · T·D elements per rank: one reduce-scatter.

        Raises:
            ValueError: a number is no token of the vocabulary.
        """
        _check_tokens(tokens, "token", self.vocabulary)
        rows, found = _within(tokens - self.first, len(self.table))
        y = reduce_scatter(self.table[rows].where(found.unsqueeze(-1), 0), self.group)
        return y + shard(self.positions[: tokens.shape[1]], 0, self.group), tokens

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[None, Pair]:
        """grad_y [B, S/n, D] -> nothing: tokens have no gradient; keeps grad_y and the tokens."""
        return None, (grad_y, saved)

    def backward_weight(self, kept: Pair) -> None:
        """Add to the gradients. Sends one all-gather, of grad_y.

        A rank's grad_positions holds its own tokens' rows and 0: one term of the sum.
        """
        grad_y, tokens = kept
        rows, found = _within(tokens - self.first, len(self.table))
        self.grad_table.index_add_(0, rows[found], gather(grad_y, self.group)[found])
        shard(self.grad_positions[: tokens.shape[1]], 0, self.group).add_(grad_y.sum(dim=0))


class VocabularyParallelHead(Layer):
    """y = x Eᵀ, with the embedding's rows of E: a rank's rows of E are its columns of y.

    The two uses of a row are on one rank: tied weights need no message.
    """

    def __init__(self, embedding: VocabularyParallelEmbedding):
        self.owner = embedding

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, S/n, D] sharded by token -> y [B, S, V_r] sharded by column; saves x.

        Sends (n-1)/n · T·D elements per rank: one all-gather.
        """
        return gather(x, self.owner.group) @ self.owner.table.T, x

    def backward_input(self, grad_y: Tensor, saved: Tensor) -> tuple[Tensor, Pair]:
        """grad_y [B, S, V_r] -> grad_x [B, S/n, D]: one reduce-scatter; keeps grad_y and x."""
        return reduce_scatter(grad_y @ self.owner.table, self.owner.group), (grad_y, saved)

    def backward_weight(self, kept: Pair) -> None:
        """Add to the table's gradient. Sends one all-gather, of x."""
        grad_y, x = kept[0], gather(kept[1], self.owner.group)
        self.owner.grad_table.addmm_(grad_y.flatten(0, -2).T, x.flatten(0, -2))


def vocabulary_parallel_cross_entropy(
    logits: Tensor, targets: Tensor, group: Group = None, vocabulary: int | None = None
) -> tuple[Tensor, Tensor]:
    """logits [T, V_r] sharded by column, targets [T] replicated -> the mean loss, and grad_logits.

    The loss is replicated, grad_logits [T, V_r] sharded as the logits are. With x the logits of a
    token, m the largest and t its answer, the loss is log Σ exp(x - m) - (x_t - m), and the
    gradient softmax(x), less 1 at t. vocabulary: V; when None the ranks add up their columns.

    Sends, of 2 (n-1)/n each: an all-reduce (max) of T elements and one (sum) of 2T; without
    `vocabulary` one more, of 8 bytes.

    Raises:
        ValueError: the columns are not those that tensor_split gives this rank, or a target is no
            token of the vocabulary.

    >>> def loss(rank, world_size):
    ...     logits = torch.zeros(1, 4).tensor_split(world_size, dim=1)[rank]
    ...     return vocabulary_parallel_cross_entropy(logits, torch.tensor([2]))
    >>> launch(loss, 2).results[0]
    (tensor(1.3863), tensor([[0.2500, 0.2500]]))
    >>> launch(loss, 2).results[1]
    (tensor(1.3863), tensor([[-0.7500,  0.2500]]))
    """
    if vocabulary is None:
        count = torch.tensor(logits.shape[1], device=logits.device)
        dist.all_reduce(count, group=group)
        vocabulary = int(count)
    first = _check_columns(logits, targets, vocabulary, group)
    largest = logits.amax(dim=1)
    dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
    shifted = logits - largest[:, None]
    column, found = _within(targets - first, logits.shape[1])
    rows = torch.arange(len(targets), device=logits.device)
    answer = shifted[rows, column].where(found, 0)  # 0 where another rank has it; not 0 · -inf
    exponentials = shifted.exp_()
    sums = torch.stack([exponentials.sum(dim=1), answer])
    dist.all_reduce(sums, group=group)
    total, answer = sums
    grad_logits = exponentials.div_(total[:, None])
    grad_logits[rows, column] -= found.to(grad_logits.dtype)
    return (total.log() - answer).mean(), grad_logits.div_(len(targets))


def columns_of_rank(vocabulary: int, group: Group = None) -> tuple[int, int]:
    """The first of this rank's tokens, and the one after its last: the first ranks have one more.

    Raises:
        ValueError: fewer tokens than ranks.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    if vocabulary < world_size:
        raise ValueError(f"a vocabulary of {vocabulary} cannot be split over {world_size} ranks")
    each, more = divmod(vocabulary, world_size)
    first = rank * each + min(rank, more)
    return first, first + each + (rank < more)


def _within(number: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The numbers that are 0 to count - 1, 0 in place of all others, and which these are."""
    found = (number >= 0) & (number < count)
    return number * found, found


def _check_columns(logits: Tensor, targets: Tensor, vocabulary: int, group: Group) -> int:
    """The first of this rank's columns."""
    first, last = columns_of_rank(vocabulary, group)
    if len(targets) != len(logits) or logits.shape[1] != last - first or len(targets) == 0:
        raise ValueError(
            f"logits {list(logits.shape)} and targets {list(targets.shape)} do not fit: this rank "
            f"has {last - first} of {vocabulary} columns, as tensor_split cuts, and a target a row"
        )
    _check_tokens(targets, "target", vocabulary)
    return first


def _check_tokens(tokens: Tensor, what: str, vocabulary: int) -> None:
    wrong = tokens[(tokens < 0) | (tokens >= vocabulary)]
    if len(wrong):
        raise ValueError(
            f"a {what} of {wrong[0]}: a vocabulary of {vocabulary} has 0 to {vocabulary - 1}"
        )
