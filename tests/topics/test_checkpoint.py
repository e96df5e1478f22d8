"""byhand.checkpoint: any cut into any other, whole or not at all, a changed byte is a sentence."""

from __future__ import annotations

import itertools
import os
import resource
import signal
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from byhand import RankError, launch
from byhand.checkpoint import Box, CheckpointError, Shard, load, newest, save
from byhand.checkpoint.boxes import check_cover, overlap, place_in, span, writers
from byhand.checkpoint.files import BLOCK
from byhand.checkpoint.folder import Checkpoint

# Boxes, pure


@st.composite
def cuts(draw, dimensions=3):
    """A shape, and two ways to cut it into boxes."""
    shape = draw(st.lists(st.integers(1, 6), min_size=dimensions, max_size=dimensions))
    edges = [
        [sorted({0, size, *draw(st.lists(st.integers(0, size), max_size=3))}) for size in shape]
        for _ in range(2)
    ]
    return tuple(shape), *(_boxes(each) for each in edges)


def _boxes(edges) -> list[Box]:
    spans = [list(itertools.pairwise(along)) for along in edges]
    return [
        Box(tuple(a for a, _ in each), tuple(b - a for a, b in each))
        for each in itertools.product(*spans)
    ]


@given(cuts())
def test_what_two_cuts_share_is_each_number_once(given_cuts):
    shape, saved, wanted = given_cuts
    whole = torch.arange(torch.Size(shape).numel()).view(shape)
    everything = Box((0,) * len(shape), shape)
    for want in wanted:
        found = torch.full(want.sizes, -1)
        for box in saved:
            if shared := overlap(box, want):
                have = whole[place_in(box, everything)][place_in(shared, box)]
                assert (found[place_in(shared, want)] == -1).all()
                found[place_in(shared, want)] = have
        assert torch.equal(found, whole[place_in(want, everything)])


@given(cuts())
def test_a_span_is_where_the_first_and_last_shared_numbers_lie(given_cuts):
    _, saved, wanted = given_cuts
    for outer, inner in itertools.product(saved, wanted):
        if shared := overlap(outer, inner):
            numbers = torch.arange(outer.count).view(outer.sizes)[place_in(shared, outer)]
            assert span(shared, outer) == (int(numbers.min()), int(numbers.max()) + 1)


@pytest.mark.parametrize(
    ("boxes", "sentence"),
    [
        ([Box((0, 0), (2, 3))], r"w: ranks hold 6 of the 12 numbers of \[4, 3\]"),
        ([Box((0, 0), (3, 3)), Box((2, 0), (2, 3))], r"\[0:3, 0:3\] and \[2:4, 0:3\] overlap"),
        ([Box((0, 0), (4, 3)), Box((2, 0), (3, 3))], r"\[2:5, 0:3\] lies outside"),
        ([Box((0,), (12,))], "lies outside the shape"),
    ],
)
def test_boxes_that_hold_a_number_never_or_twice_are_refused(boxes, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_cover("w", (4, 3), boxes)


def test_replicas_share_what_is_to_be_written():
    copies = {(f"w{k}", Box((0,), (8,))): 8 for k in range(6)}
    chosen = writers([copies, copies, {**copies, ("mine", Box((0,), (4,))): 4}])
    assert sorted(key for keys in chosen for key in keys) == sorted({*copies, *chosen[2]})
    loads = [sum({**copies}.get(key, 4) for key in keys) for keys in chosen]
    assert max(loads) - min(loads) <= 8


# Any cut into any other, on real ranks

WHOLE = {
    "matrix": torch.randn(7, 12, generator=torch.Generator().manual_seed(0)),
    "bias": torch.arange(5, dtype=torch.bfloat16),
    "flat": torch.arange(23, dtype=torch.float64),
    "step": torch.tensor(3),
}


def cut(tensor: Tensor, dim: int, rank: int, count: int) -> Shard:
    """The share of a rank along a dimension, as torch.tensor_split makes it."""
    sizes = [len(part) for part in torch.arange(tensor.shape[dim]).tensor_split(count)]
    starts = [0] * tensor.dim()
    starts[dim] = sum(sizes[:rank])
    mine = tensor.narrow(dim, starts[dim], sizes[rank]).clone()
    return Shard(mine, tuple(tensor.shape), tuple(starts))


def shards(rank: int, tp: int, dim: int, fill: float | None = None) -> dict[str, Shard]:
    """Of WHOLE: a matrix over tp ranks, a flat vector over all, two copies."""
    n = dist.get_world_size()
    found = {
        "matrix": cut(WHOLE["matrix"], dim, rank % tp, tp),
        "flat": cut(WHOLE["flat"], 0, rank, n),
        "bias": Shard(WHOLE["bias"].clone(), (5,), (0,)),
        "step": Shard(WHOLE["step"].clone(), (), ()),
    }
    for shard in found.values() if fill is not None else ():
        shard.tensor.fill_(fill)
    return found


def saver(rank: int, n: int, folder: Path, tp: int, dim: int, asynchronous: bool) -> None:
    mine = shards(rank, tp, dim)
    saving = save(folder, mine, {"step": 3, "random": torch.arange(4)}, asynchronous=asynchronous)
    if asynchronous:
        mine["matrix"].tensor.zero_()  # training goes on
        saving.wait()


def loader(rank: int, n: int, folder: Path, tp: int, dim: int) -> tuple[bool, dict]:
    found, wanted = shards(rank, tp, dim, fill=-7), shards(rank, tp, dim)
    extra = load(folder, found)
    return all(torch.equal(found[k].tensor, wanted[k].tensor) for k in wanted), extra


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((4, 2, 0), (4, 2, 1)),
        ((2, 2, 1), (4, 4, 0)),
        ((3, 3, 0), (2, 1, 0)),
        ((1, 1, 0), (3, 3, 1)),
    ],
)
def test_what_some_ranks_save_others_load_in_another_cut(tmp_path, before, after, asynchronous):
    n, tp, dim = before
    launch(saver, n, (tmp_path / "a", tp, dim, asynchronous))
    n, tp, dim = after
    for right, extra in launch(loader, n, (tmp_path / "a", tp, dim)).results:
        assert right
        assert extra["step"] == 3
        assert extra["random"].tolist() == [0, 1, 2, 3]


def test_flat_shards_of_zero_go_from_three_ranks_to_two_without_their_padding(tmp_path):
    tensors = [torch.arange(5.0), torch.arange(6.0).view(2, 3)]

    def shard(rank: int, n: int) -> Shard:
        flat, count = torch.cat([t.flatten() for t in tensors]), 11
        size = -(-count // n)
        mine = flat[rank * size : min((rank + 1) * size, count)].clone()
        return Shard(mine, (count,), (min(rank * size, count),))

    def saves(rank: int, n: int) -> None:
        save(tmp_path / "a", {"flat": shard(rank, n)})

    def loads(rank: int, n: int) -> bool:
        mine, wanted = shard(rank, n), shard(rank, n).tensor
        mine.tensor.fill_(-1)
        load(tmp_path / "a", {"flat": mine})
        return torch.equal(mine.tensor, wanted)

    launch(saves, 3)
    assert launch(loads, 2).results == [True, True]


def test_replicas_are_written_once_and_a_rank_reads_only_the_blocks_that_it_needs(tmp_path):
    rows = 8 * BLOCK // 4096  # of 1024 float32

    def saves(rank: int, n: int) -> None:
        whole = torch.zeros(rows, 1024)
        save(tmp_path / "a", {"w": Shard(whole, (rows, 1024), (0, 0))})

    launch(saves, 2)
    files = {path.name: path.stat().st_size for path in (tmp_path / "a").glob("0*")}
    assert sum(files.values()) == 8 * BLOCK
    found = Checkpoint(tmp_path / "a")
    (name,) = (name for name, size in files.items() if size)
    found.read(name, 3 * BLOCK + 5, 4 * BLOCK + 5)
    assert found.num_read == 2 * BLOCK


def test_what_torch_reshards_is_what_we_do(tmp_path):
    from torch.distributed import checkpoint as torchs
    from torch.distributed.tensor import Shard as Split
    from torch.distributed.tensor import distribute_tensor, init_device_mesh

    def saves(rank: int, n: int) -> None:
        mesh = init_device_mesh("cpu", (n,))
        matrix = distribute_tensor(WHOLE["matrix"].clone(), mesh, [Split(0)])
        torchs.save({"matrix": matrix}, checkpoint_id=tmp_path / "torch")
        save(tmp_path / "ours", {"matrix": cut(WHOLE["matrix"], 0, rank, n)})

    def loads(rank: int, n: int) -> tuple[Tensor, Tensor]:
        mesh = init_device_mesh("cpu", (n,))
        matrix = distribute_tensor(torch.zeros(7, 12), mesh, [Split(1)])
        torchs.load({"matrix": matrix}, checkpoint_id=tmp_path / "torch")
        ours = cut(WHOLE["matrix"], 1, rank, n)
        ours.tensor.zero_()
        load(tmp_path / "ours", {"matrix": ours})
        return matrix.to_local(), cut(ours.tensor, 0, 0, 1).tensor

    launch(saves, 3)
    for theirs, ours in launch(loads, 4).results:
        assert torch.equal(theirs, ours)


# Whole or not at all


def _save_alone(folder: Path, value: float, size: int = 3) -> None:
    save(folder, {"w": Shard(torch.full((size,), value), (size,), (0,))}, {"value": value})


def _load_alone(folder: Path, size: int = 3) -> Tensor:
    shard = Shard(torch.zeros(size), (size,), (0,))
    load(folder, {"w": shard})
    return shard.tensor


def test_newest_is_the_last_that_was_saved_and_keep_removes_the_oldest(tmp_path):
    assert newest(tmp_path) is None
    for name in ("b", "a", "c", "aa"):
        save(tmp_path / name, {}, keep=2)
    assert newest(tmp_path) == tmp_path / "aa"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aa", "c"]


def test_a_saver_killed_at_any_write_leaves_the_old_one_or_the_new_one(tmp_path):
    """Kill rank 0, or 1, before its k-th call of those that change the disk, until none is left."""

    def saves(rank: int, n: int, victim: int, after: int) -> None:
        from byhand.checkpoint import files

        calls = itertools.count()

        def dying(call):
            def wrapped(*args, **kwargs):
                if rank == victim and next(calls) == after:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*args, **kwargs)

            return wrapped

        for owner, name in ((os, "fsync"), *((Path, n) for n in ("rename", "unlink", "mkdir"))):
            setattr(owner, name, dying(getattr(owner, name)))
        files.zlib.crc32 = dying(files.zlib.crc32)  # before each block that is written
        mine = {"w": cut(torch.full((8,), 2.0), 0, rank, n)}
        save(tmp_path / "new", mine, {"value": 2.0})

    _save_alone(tmp_path / "old", 1.0, 8)
    outcomes = set()
    for victim in (0, 1):
        for after in range(50):
            try:
                launch(saves, 2, (victim, after))
                survived = True
            except RankError:
                survived = False
            last = newest(tmp_path)
            outcomes.add((survived, last.name))
            assert _load_alone(last, 8).tolist() == [2.0 if last.name == "new" else 1.0] * 8
            if last.name == "new":
                Checkpoint(last).remove()
            if survived:
                break
    assert outcomes >= {(False, "old"), (False, "new"), (True, "new")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]


def test_a_full_disk_on_one_rank_is_a_sentence_on_all_and_leaves_nothing(tmp_path):
    def saves(rank: int, n: int) -> str:
        if rank == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        with pytest.raises(CheckpointError) as error:
            save(tmp_path / "a", {"w": cut(torch.zeros(4000), 0, rank, n)})
        return str(error.value)

    for said in launch(saves, 3).results:
        assert "File too large" in said
    assert list(tmp_path.iterdir()) == []


def test_two_programs_that_save_at_once_make_one_checkpoint(tmp_path):
    from byhand.checkpoint.folder import Partial

    first = Partial(tmp_path / "a")
    first.begin()
    with pytest.raises(CheckpointError, match="another program is saving into"):
        _save_alone(tmp_path / "a", 1.0)
    first.close()
    _save_alone(tmp_path / "a", 1.0)
    with pytest.raises(CheckpointError, match="a exists: save each step in a folder of its own"):
        _save_alone(tmp_path / "a", 2.0)
    assert _load_alone(tmp_path / "a").tolist() == [1.0] * 3


def test_a_rank_that_ends_while_another_waits_for_its_file_is_named(tmp_path):
    from byhand.checkpoint.folder import Partial

    partial = Partial(tmp_path / "a")
    partial.begin()
    partial.open(1).close()  # as the kernel does with a process that ends
    with pytest.raises(CheckpointError, match="rank 1 ended while it wrote"):
        partial.wait_for(1)


# What is not as it was written


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        ("00000.bin", lambda b: bytes([b[0] ^ 1]) + b[1:], "has changed since it was written"),
        ("00000.bin", lambda b: b[:-1], r"has \d+ bytes of \d+"),
        ("extra.pt", lambda b: b[:9] + b"x" + b[10:], "has changed since it was written"),
        ("index.json", lambda b: b.replace(b'"w"', b'"v"'), "has changed since it was written"),
        ("00000.bin", None, "is missing"),
        ("index.json", None, "is no whole checkpoint: it has no index.json"),
    ],
)
def test_a_changed_torn_or_missing_file_is_a_sentence_and_fills_nothing(
    tmp_path, file, change, sentence
):
    _save_alone(tmp_path / "a", 1.0, 100)
    path = tmp_path / "a" / file
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    shard = Shard(torch.zeros(100), (100,), (0,))
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path / "a", {"w": shard})
    assert not shard.tensor.any()


def test_a_rank_whose_bytes_are_good_fills_nothing_where_anothers_have_changed(tmp_path):
    launch(saver, 2, (tmp_path / "a", 2, 0, False))
    path = tmp_path / "a" / "00001.bin"
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])

    def loads(rank: int, n: int) -> tuple[str, float]:
        mine = {"matrix": cut(torch.zeros(7, 12), 0, rank, n)}
        with pytest.raises(CheckpointError) as error:
            load(tmp_path / "a", mine)
        return str(error.value), float(mine["matrix"].tensor.abs().sum())

    for said, filled in launch(loads, 2).results:
        assert "has changed since it was written" in said
        assert filled == 0


@pytest.mark.parametrize(
    ("name", "shard", "sentence"),
    [
        ("v", Shard(torch.zeros(3), (3,), (0,)), "has no 'v'; it has w"),
        ("w", Shard(torch.zeros(4), (4,), (0,)), r"'w' of shape \[3\], and \[4\] is asked for"),
        ("w", Shard(torch.zeros(3).half(), (3,), (0,)), "of dtype float32, and float16 is asked"),
        ("w", Shard(torch.zeros(3), (3,), (1,)), r"'w' \[3\] has no box \[1:4\]"),
    ],
)
def test_a_checkpoint_of_another_model_is_a_sentence(tmp_path, name, shard, sentence):
    _save_alone(tmp_path / "a", 1.0)
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path / "a", {name: shard})


def test_what_only_code_could_read_is_no_extra(tmp_path):
    with pytest.raises(CheckpointError, match="UnpicklingError"):
        save(tmp_path / "a", {}, extra=Path)
    assert list(tmp_path.iterdir()) == []
