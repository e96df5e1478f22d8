"""A rank's shard of a whole tensor, in either layout; tensors in a flat one."""

from __future__ import annotations

import pytest
import torch

from byhand import RankError, launch
from byhand.model.shards import copy_back, equal_shards, shard, views

WHOLE = torch.arange(2 * 11).view(2, 11)  # eleven columns: three ranks cannot have as many each


def both_layouts(rank, world_size, whole):
    mine = shard(whole, 1)
    same_memory = mine.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
    return mine.clone(), shard(whole, -1, layout="zigzag"), same_memory


@pytest.mark.parametrize("world_size", [1, 3, 4])
def test_the_shards_of_all_ranks_are_the_whole(world_size):
    results = launch(both_layouts, world_size, (WHOLE,)).results
    contiguous, zigzag, views_of_it = zip(*results, strict=True)
    assert torch.equal(torch.cat(contiguous, 1), WHOLE)
    assert all(views_of_it)
    chunks = WHOLE.tensor_split(2 * world_size, 1)
    for rank, mine in enumerate(zigzag):
        assert torch.equal(mine, torch.cat([chunks[rank], chunks[-1 - rank]], 1))


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: shard(torch.ones(4, 1), 1), r"\[4, 1\] is too small for 2 ranks: .* it has 1"),
        (lambda: shard(torch.ones(3), layout="zigzag"), "zigzag shards need 4"),
        (lambda: shard(torch.ones(4), layout="striped"), "no layout 'striped'"),
        (lambda: equal_shards(5, "head", advice="; pad"), "5 heads .* 2 ranks: .* ranks; pad"),
    ],
    ids=["small", "zigzag", "layout", "equal"],
)
def test_what_cannot_be_shared_is_refused_with_its_numbers(attempt, sentence):
    def on_rank(rank, world_size):
        attempt()

    with pytest.raises(RankError, match=sentence):
        launch(on_rank, 2)


def test_tensors_lie_in_a_flat_one_and_come_back():
    flat = torch.arange(9)  # the last two are padding
    first, second = views(flat, [torch.Size([2, 3]), torch.Size([])])
    flat[0] = 7
    assert (first[0, 0], second) == (7, 6)
    copies = [torch.zeros(2, 3, dtype=torch.int64), torch.zeros((), dtype=torch.int64)]
    copy_back(flat, iter(copies))
    assert torch.equal(copies[0], first)
    assert copies[1] == 6
