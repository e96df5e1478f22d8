"""byhand.checkpoint: any cut into any other, whole or not at all, a changed byte is a sentence."""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy
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
from byhand.runtime import shutdown

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
            numbers = torch.arange(outer.num_elements).view(outer.sizes)[place_in(shared, outer)]
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


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(4, 6).t(),
        torch.randn(4, 6)[1:3, 2:4],
        torch.randn(4).expand(3, 4),
        torch.randn(4, requires_grad=True),
        torch.empty(0, 4),
        torch.tensor([True, False]),
        torch.randn(3, dtype=torch.complex64).conj(),
        torch.randn(3, dtype=torch.complex64).conj().imag,
        torch.randn(3).to(torch.float8_e4m3fn),
        torch.randn(2, 3)[:1, 1],
    ],
    ids="transposed view expanded leaf empty bool conj negative float8 lone".split(),
)
def test_a_tensor_of_any_strides_and_dtype_comes_back(tmp_path, tensor):
    shape = tuple(tensor.shape)
    save(tmp_path / "a", {"w": Shard(tensor, shape, (0,) * len(shape))})
    found = torch.zeros(shape[::-1], dtype=tensor.dtype).permute(*reversed(range(len(shape))))
    load(
        tmp_path / "a",
        {"w": Shard(found.requires_grad_(tensor.requires_grad), shape, (0,) * len(shape))},
    )
    assert torch.equal(found.to(torch.complex64), tensor.to(torch.complex64))


NO_SHARDS = [
    (torch.zeros(3, device="meta"), (3,), (0,), "meta, quantized or sparse is no shard"),
    (torch.zeros(3).to_sparse(), (3,), (0,), "meta, quantized or sparse is no shard"),
    (torch.zeros(3), (3, 1), (0,), r"a shard \[3\] that begins at \[0\] is no box of \[3, 1\]"),
    (
        torch.zeros(3),
        (1, 3),
        (0, 0),
        r"a shard \[3\] that begins at \[0, 0\] is no box of \[1, 3\]",
    ),
]


@pytest.mark.parametrize(("tensor", "shape", "starts", "sentence"), NO_SHARDS)
def test_what_is_no_shard_is_a_sentence_when_it_is_saved_and_when_it_is_loaded(
    tmp_path, tensor, shape, starts, sentence
):
    shards = {"w": Shard(tensor, shape, starts)}
    with pytest.raises(CheckpointError, match=sentence):
        save(tmp_path / "a", shards)
    assert list(tmp_path.iterdir()) == []
    save(tmp_path / "a", {"w": Shard(torch.zeros(shape), shape, (0,) * len(shape))})
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path / "a", shards)


def test_shapes_and_starts_may_be_numpys_integers(tmp_path):
    starts, shape = numpy.cumsum([0, 4]), (numpy.int64(8),)
    save(tmp_path / "a", {"w": Shard(torch.arange(8.0), shape, (starts[0],))})
    second = Shard(torch.zeros(4), shape, (starts[1],))
    load(tmp_path / "a", {"w": second})
    assert second.tensor.tolist() == [4, 5, 6, 7]


def test_what_one_rank_cannot_describe_or_fill_is_a_sentence_on_all(tmp_path):
    def runs(rank: int, n: int) -> list[str]:
        save(tmp_path / "a", {"w": cut(torch.ones(8), 0, rank, n)})
        said = []
        expanded = torch.zeros(1).expand(4) if rank == 1 else torch.zeros(4)
        for number, tensor in enumerate((torch.zeros(4, 1) if rank == 1 else expanded, expanded)):
            call = (save, load)[number]
            with pytest.raises(CheckpointError) as error:
                call(tmp_path / "ba"[number], {"w": Shard(tensor, (8,), (4 * rank,))})
            said.append(str(error.value))
        return said

    first, second = launch(runs, 2).results
    assert first == second
    assert "is no box of" in first[0]
    assert "single memory location" in first[1]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_group_saves_without_the_others_and_who_is_not_in_it_is_told(tmp_path):
    def saves(rank: int, n: int) -> str:
        group = dist.new_group([1, 2])
        if rank == 0:
            with pytest.raises(ValueError, match="this rank is not in the group"):
                save(tmp_path / "a", {}, group=group)
        else:
            save(tmp_path / "a", {"w": cut(torch.arange(3), 0, rank - 1, 2)}, group=group)

    launch(saves, 3)
    found = Shard(torch.zeros(3, dtype=torch.int64), (3,), (0,))
    load(tmp_path / "a", {"w": found})
    assert found.tensor.tolist() == [0, 1, 2]


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


def test_a_save_whose_checkpoint_is_whole_succeeds_though_an_older_one_cannot_be_removed(tmp_path):
    _save_alone(tmp_path / "a", 1.0)
    in_its_way = tmp_path / "a.removed"
    in_its_way.write_text("no folder can have this name")
    save(tmp_path / "b", {}, keep=1)
    assert newest(tmp_path) == tmp_path / "b"
    assert _load_alone(tmp_path / "a").tolist() == [1.0] * 3
    in_its_way.unlink()
    save(tmp_path / "c", {}, keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_the_names_of_folders_that_are_made_for_a_checkpoint_are_synced_too(tmp_path, monkeypatch):
    synced, fsync = set(), os.fsync

    def watched(descriptor):
        synced.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    _save_alone(tmp_path / "new" / "runs" / "a", 1.0)
    assert {tmp_path, tmp_path / "new", tmp_path / "new" / "runs"} <= synced


def test_savings_that_overlap_may_all_remove_the_oldest(tmp_path):
    mine = {"w": Shard(torch.ones(100_000), (100_000,), (0,))}
    for round in range(10):
        names = [f"{round}-{number}" for number in range(4)]
        running = [save(tmp_path / name, mine, keep=2, asynchronous=True) for name in names]
        for saving in running:
            saving.wait()
    assert sorted(path.name for path in tmp_path.iterdir()) == names[2:]


@pytest.mark.parametrize("keep", [0, -1])
def test_to_keep_none_is_refused_before_anything_is_written(tmp_path, keep):
    with pytest.raises(CheckpointError, match=f"keep={keep}: at least 1 is kept"):
        save(tmp_path / "a", {}, keep=keep)
    assert list(tmp_path.iterdir()) == []


def test_keep_removes_no_checkpoint_through_a_link(tmp_path):
    save(tmp_path / "elsewhere" / "a", {})
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "elsewhere" / "a")
    assert newest(tmp_path / "here") == tmp_path / "here" / "link"
    save(tmp_path / "here" / "b", {}, keep=1)
    assert newest(tmp_path / "elsewhere") == tmp_path / "elsewhere" / "a"
    assert newest(tmp_path / "here") == tmp_path / "here" / "b"


def test_newest_is_the_last_that_was_begun_where_two_savings_end_in_the_other_order(tmp_path):
    def saves(rank: int, n: int) -> None:
        from byhand.checkpoint.saving import Saving

        written, write = threading.Event(), Saving._write

        def slow(self) -> None:
            if self.partial.final.name == "a":
                written.wait()
            write(self)

        Saving._write = slow
        mine = {"w": cut(torch.zeros(8), 0, rank, n)}
        a, b = (save(tmp_path / name, mine, asynchronous=True) for name in "ab")
        with pytest.raises(CheckpointError, match="another program is saving into"):
            save(tmp_path / "a", mine)
        b.wait()
        written.set()
        a.wait()
        a.wait()

    launch(saves, 2)
    assert newest(tmp_path) == tmp_path / "b"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_rank_killed_between_gathers_is_a_sentence_on_the_others(tmp_path):
    """Kill rank 1 before its k-th gather of a save and a load, until none is left."""

    def runs(rank: int, n: int, after: int) -> None:
        calls, gather = itertools.count(), dist.all_gather_object

        def dying(*args, **kwargs):
            if rank == 1 and next(calls) == after:
                os.kill(os.getpid(), signal.SIGKILL)
            return gather(*args, **kwargs)

        dist.all_gather_object = dying
        mine = {"w": cut(torch.ones(8), 0, rank, n)}
        try:
            save(tmp_path / f"{after}", mine)
            load(tmp_path / f"{after}", mine)
        except CheckpointError as error:
            (tmp_path / f"said-{after}-{rank}").write_text(str(error))

    for after in range(50):
        try:
            launch(runs, 3, (after,))
            break
        except RankError:
            said = [(tmp_path / f"said-{after}-{rank}").read_text() for rank in (0, 2)]
            assert all("ended" in sentence for sentence in said)
            assert not list(tmp_path.glob("*.partial"))
    assert after > 5


def test_a_saver_whose_first_rank_died_writes_nothing_into_the_next_ones(tmp_path):
    from byhand.checkpoint.folder import Partial

    dead, stale = Partial(tmp_path / "a", 1), Partial(tmp_path / "a", 1)
    dead.begin()
    stale.open(1)
    dead.close()
    _save_alone(tmp_path / "a", 1.0)
    with pytest.raises(FileNotFoundError):
        stale.done(1, boxes=[], num_bytes=0, checksums=[])
    assert _load_alone(tmp_path / "a").tolist() == [1.0] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_dead_saver_left_goes_with_the_next_of_any_name_and_what_a_live_one_writes_stays(
    tmp_path,
):
    from byhand.checkpoint.folder import Partial

    dead, alive, no_lock_yet = (Partial(tmp_path / name, 1) for name in ("a", "b", "c"))
    for one in (dead, alive):
        one.begin()
        one.open(0)
    dead.close()
    no_lock_yet.path.mkdir()
    _save_alone(tmp_path / "d", 1.0)
    stay = {"b.1.partial", "c.1.partial", "d"}
    assert {path.name for path in tmp_path.iterdir()} == stay
    assert sorted(path.name for path in alive.path.iterdir()) == ["00000.bin", "lock"]
    assert not list(no_lock_yet.path.iterdir())


def test_who_comes_at_the_last_moment_leaves_a_saver_its_files(tmp_path, monkeypatch):
    """A second program that saves the same folder just before the first one's appears."""
    rename, others = Path.rename, []

    def late(self, target):
        if self.suffix == ".partial" and not others:
            others.append("came")
            with pytest.raises(CheckpointError, match="another program is saving into"):
                _save_alone(tmp_path / "a", 2.0)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    _save_alone(tmp_path / "a", 1.0)
    assert others
    assert _load_alone(tmp_path / "a").tolist() == [1.0] * 3
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == [
        "00000.bin",
        "extra.pt",
        "index.json",
    ]


def test_what_a_writer_meets_is_named_on_all_ranks_whatever_it_is(tmp_path):
    def saves(rank: int, n: int) -> str:
        from byhand.checkpoint import saving

        def fails(*args):
            raise MemoryError("no room for a copy")

        saving.write = fails if rank == 1 else saving.write
        mine = {"w": cut(torch.ones(8), 0, rank, n)}
        running = save(tmp_path / "a", mine, asynchronous=True)
        with pytest.raises(CheckpointError) as error:
            running.wait()
        return str(error.value)

    for said in launch(saves, 3).results:
        assert "rank 1 could not write" in said
        assert "MemoryError: no room for a copy" in said
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_failed_is_removed_when_no_rank_writes_any_more(tmp_path):
    def saves(rank: int, n: int, fails: int) -> bool:
        from byhand.checkpoint import saving

        there = [True]

        def writes(file, parts, write=saving.write):
            if rank == fails:
                raise OSError("no room")
            time.sleep(0.2 * rank)  # the others have failed, or are done
            there[0] = Path(file.name).exists()
            return write(file, parts)

        saving.write = writes
        with pytest.raises(CheckpointError, match=f"rank {fails} could not write .*no room"):
            save(tmp_path / "a", {"w": cut(torch.ones(8), 0, rank, n)})
        return there[0]

    for fails in (0, 1):
        assert launch(saves, 3, (fails,)).results == [True, True, True]
        assert list(tmp_path.iterdir()) == []


def test_a_save_that_is_interrupted_leaves_nothing_and_lets_go(tmp_path, monkeypatch):
    from byhand.checkpoint import saving

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(saving, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _save_alone(tmp_path / "a", 1.0)
    assert list(tmp_path.iterdir()) == []
    _save_alone(tmp_path / "a", 1.0)


@pytest.mark.parametrize("name", ["a.partial", "a.removed"])
def test_a_name_that_newest_would_not_find_is_refused(tmp_path, name):
    with pytest.raises(CheckpointError, match=f"{name}: .{name[2:]} is the end of names"):
        _save_alone(tmp_path / name, 1.0)


def test_a_removal_that_was_cut_off_is_no_checkpoint_and_goes_with_the_next(tmp_path):
    def cut_off(rank: int, n: int) -> None:
        from byhand.checkpoint import folder

        def dies(path, **kwargs):
            if path.exists():
                os.kill(os.getpid(), signal.SIGKILL)

        folder.shutil.rmtree = dies
        save(tmp_path / "b", {}, keep=1)

    _save_alone(tmp_path / "a", 1.0)
    with pytest.raises(RankError):
        launch(cut_off, 1)
    assert newest(tmp_path) == tmp_path / "b"
    assert (tmp_path / "a.removed" / "index.json").exists(), "killed as it began to delete"
    _save_alone(tmp_path / "a", 2.0)
    save(tmp_path / "c", {}, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]


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

    first = Partial(tmp_path / "a", 1)
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

    partial = Partial(tmp_path / "a", 1)
    partial.begin()
    partial.done(0)
    partial.open(1).close()  # as the kernel does with a process that ends
    with pytest.raises(CheckpointError, match="rank 1 ended while it wrote"):
        partial.wait_for(2)


# What is not as it was written


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        ("00000.bin", lambda b: bytes([b[0] ^ 1]) + b[1:], "has changed since it was written"),
        ("00000.bin", lambda b: b[:-1], r"has \d+ bytes of \d+"),
        ("extra.pt", lambda b: b[:9] + b"x" + b[10:], "has changed since it was written"),
        ("index.json", lambda b: b.replace(b'"w"', b'"v"'), "has changed since it was written"),
        ("index.json", lambda b: b[: b.index(b"checksum")], "has changed since it was written"),
        ("index.json", lambda b: b[:-1], "has changed since it was written"),
        ("index.json", lambda b: b"", "has changed since it was written"),
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
    assert newest(tmp_path) in (None, tmp_path / "a")


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


def test_ranks_that_name_different_checkpoints_mix_none(tmp_path):
    for number in range(2):
        save(tmp_path / f"{number}", {"w": Shard(torch.full((8,), 1.0 + number), (8,), (0,))})
    shutil.copytree(tmp_path / "1", tmp_path / "copy")

    def loads(rank: int, n: int) -> tuple[str, float, float]:
        mine = cut(torch.zeros(8), 0, rank, n)
        with pytest.raises(CheckpointError) as error:
            load(tmp_path / f"{rank}", {"w": mine})
        before = float(mine.tensor.sum())
        load(tmp_path / ("1" if rank else "copy"), {"w": mine})
        return str(error.value), before, float(mine.tensor.sum())

    for said, before, after in launch(loads, 2).results:
        assert "is another checkpoint on another rank" in said
        assert (before, after) == (0, 8)


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
    for extra in (Path, {"loss": numpy.float64(3)}):
        with pytest.raises(CheckpointError, match="extra holds what is read only by running code"):
            save(tmp_path / "a", {}, extra=extra)
    assert list(tmp_path.iterdir()) == []


def test_ranks_that_save_no_shard_and_odd_names_are_no_special_case(tmp_path):
    name = "a·b\n\ud800/é [0]"

    def saves(rank: int, n: int) -> None:
        save(tmp_path / "[x] é.1", {name: Shard(torch.ones(3), (3,), (0,))} if rank == 1 else {})

    launch(saves, 2)
    found = Shard(torch.zeros(3), (3,), (0,))
    load(newest(tmp_path), {name: found})
    assert found.tensor.tolist() == [1.0] * 3


def test_saving_and_loading_often_keeps_no_descriptor_no_mapping_and_no_folder(tmp_path):
    shutdown()  # else an idle launcher may end meanwhile, and leave fewer descriptors

    def once(step: int) -> None:
        mine = {"w": Shard(torch.ones(1000), (1000,), (0,))}
        saving = save(tmp_path / str(step), mine, keep=2, asynchronous=step % 2 == 1)
        if saving is not None:
            saving.wait()
        load(newest(tmp_path), mine)

    def held() -> tuple[int, int]:
        maps = Path("/proc/self/maps").read_text()
        return len(os.listdir("/proc/self/fd")), maps.count(str(tmp_path))

    for step in range(3):
        once(step)
    before = held()
    for step in range(3, 103):
        once(step)
    assert held() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["101", "102"]
