"""Runs that die and go on: in any layout, under torchrun, and what is found of a torn save."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist

from byhand import RankError, launch
from byhand.checkpoint import Box, Shard, load, newest, save
from byhand.checkpoint.boxes import check_cover, place_in
from byhand.costs.layout import Layout
from byhand.fault_tolerance import lab
from byhand.fault_tolerance.lab import dying, pictures
from byhand.fault_tolerance.places import box_of, changed, flat_shards, numbered, shapes, shards
from byhand.fault_tolerance.training import Sampler
from byhand.hybrid_parallel import GROUPS, chunks_of
from byhand.model.gpt import gpt_layers, random_gpt
from byhand.model.mlp import MLP, random_weights, softmax_cross_entropy
from byhand.model.optimizers import AdamW
from byhand.model.shards import shard
from byhand.rank_groups.process_groups import groups_for_this_rank
from byhand.sequence_parallel.gpt import sequence_parallel_parts
from byhand.zero import ShardedParameters

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = random_gpt(24, 8, 16, 4, 3, dtype=torch.float64)
DP_TP, TP_PP = Layout(dp=2, tp=2), Layout(tp=2, pp=2)


# Where a split model's weights lie


def held_by(rank: int, n: int, layout: Layout) -> dict[str, Shard]:
    groups = groups_for_this_rank(layout.groups, GROUPS)
    both = [chunks_of(of, groups) for of in (WEIGHTS, numbered(WEIGHTS))]
    tensors, numbers = ([t for chunk in of for t in chunk.parameters()] for of in both)
    return shards(tensors, numbers, WEIGHTS)


def split_by_token(rank: int, n: int) -> dict[str, Shard]:
    parts = sequence_parallel_parts()
    both = (MLP(gpt_layers(of, parts=parts)) for of in (WEIGHTS, numbered(WEIGHTS)))
    return shards(*(model.parameters() for model in both), WEIGHTS)


def check(by_rank: list[dict[str, Shard]]) -> None:
    """The ranks hold every number of every weight, each where its box says."""
    whole: dict[str, torch.Tensor] = {}
    changed(WEIGHTS, lambda name, tensor: whole.setdefault(name, tensor))
    for name, shape in shapes(WEIGHTS).items():
        check_cover(name, shape, [of[name].box for of in by_rank if name in of])
    for name, held in ((name, held) for of in by_rank for name, held in of.items()):
        place = place_in(held.box, Box((0,) * len(held.shape), held.shape))
        assert torch.equal(held.tensor, whole[name].view(held.shape)[place]), name


@pytest.mark.parametrize("layout", [DP_TP, TP_PP, Layout(tp=4), Layout(pp=3), Layout(dp=2, pp=2)])
def test_boxes_say_where_the_weights_of_a_split_model_lie(layout):
    check(launch(held_by, layout.num_ranks, (layout,)).results)


def test_a_table_split_by_vocabulary_lies_in_boxes_too():
    by_rank = launch(split_by_token, 2).results
    check(by_rank)
    assert [of["table"].starts for of in by_rank] == [(0, 0), (12, 0)]


def test_a_shard_is_a_view_so_that_loading_fills_the_model():
    model, twin = (MLP(gpt_layers(of)) for of in (WEIGHTS, numbered(WEIGHTS)))
    found = shards(model.parameters(), twin.parameters(), WEIGHTS)
    found["block 1.qkv.weight"].tensor.fill_(7)
    assert sum(bool((p == 7).all()) for p in model.parameters()) == 1


def test_rows_of_queries_keys_and_values_are_a_box_of_three_matrices_alone():
    rows = torch.arange(24).view(3, 4, 2)[:, :2].flatten()
    assert box_of(rows, "qkv", (3, 4, 2)) == Box((0, 0, 0), (3, 2, 2))
    with pytest.raises(ValueError, match=r"of qkv \[12, 2\] is no box of it"):
        box_of(rows, "qkv", (12, 2))


def test_two_copies_of_a_weight_on_one_rank_are_refused():
    tensors = [torch.zeros(24, 16)] * 2
    with pytest.raises(ValueError, match="holds two tensors of table"):
        shards(tensors, [numbered(WEIGHTS).table] * 2, WEIGHTS)


# A run goes on


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> tuple[Path, dict[float, list[float]]]:
    """By dropout, a folder in which a run stopped after 6 steps, and the losses of 12 at once."""
    folder, whole = tmp_path_factory.mktemp("runs"), {}
    for dropout in (0.0, 0.1):
        whole[dropout] = lab.train(DP_TP, 12, dropout=dropout)
        lab.train(DP_TP, 6, folder / str(dropout), save=True, dropout=dropout)
    return folder, whole


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_in_the_same_layout_a_run_goes_on_to_the_last_bit(stopped, dropout):
    folder, whole = stopped
    found = lab.train(DP_TP, 12, folder / str(dropout), dropout=dropout)
    assert found == whole[dropout][6:]


@pytest.mark.parametrize("layout", [TP_PP, Layout(tp=4), Layout(pp=3), Layout(dp=4), Layout()])
def test_in_another_layout_it_goes_on_to_rounding(stopped, layout):
    folder, whole = stopped
    found = lab.train(layout, 12, folder / "0.0")
    assert len(found) == 6
    assert max(abs(a - b) for a, b in zip(found, whole[0.0][6:], strict=True)) < 1e-10


@pytest.mark.parametrize("what", ["optimizer", "random numbers", "place in the data"])
def test_what_a_run_forgets_changes_its_losses(stopped, what):
    folder, whole = stopped
    found = lab.train(DP_TP, 12, folder / "0.1", dropout=0.1, without=[what])
    assert found != whole[0.1][6:]


def test_a_run_goes_on_behind_the_batches_that_it_skips(stopped):
    def on_rank(rank: int, n: int, folder: Path | None) -> list[float]:
        training = lab.resuming.make(DP_TP)
        if folder is None or not training.resume(folder):
            list(training.train(6))
        training.skip(2)
        rows = Sampler(len(training.data[0]), 16)
        for _ in range(8):
            rows.next()
        assert (rows.epoch, rows.position) == (training.sampler.epoch, training.sampler.position)
        return list(training.train(8))

    went_on, resumed = (launch(on_rank, 4, (f,)).results[0] for f in (None, stopped[0] / "0.0"))
    assert resumed == went_on
    assert resumed != stopped[1][0.0][6:8]


def test_the_loss_scale_goes_on_too(stopped):
    def on_rank(rank: int, n: int) -> tuple[float, int, int]:
        training = lab.resuming.make(DP_TP)
        training.resume(stopped[0] / "0.0")
        list(training.train(9))
        return training.scale.value, training.scale.steps_since, training.adam.steps

    assert launch(on_rank, 4).results == [(2.0**17, 1, 9)] * 4  # it doubled after 8


def test_without_a_checkpoint_a_run_begins_at_its_beginning(tmp_path):
    assert lab.train(Layout(dp=2), 2, tmp_path) == lab.train(Layout(dp=2), 2)


def test_a_sampler_gives_every_row_once_an_epoch_and_goes_on_from_its_place():
    sampler, again = Sampler(10, 3), Sampler(10, 3)
    epochs = [torch.cat([sampler.next() for _ in range(3)]).tolist() for _ in range(2)]
    assert [len(set(epoch)) for epoch in epochs] == [9, 9]
    assert epochs[0] != epochs[1]
    again.epoch, again.position = 1, 3
    assert again.next().tolist() == epochs[1][3:6]


def zero_steps(rank: int, n: int, folder: Path, number: int, resume: bool) -> list[float]:
    layers = MLP.from_weights(random_weights([7, 9, 5], dtype=torch.float64)).layers
    x, labels = torch.linspace(-1, 1, 84).double().view(12, 7), torch.arange(12) % 5
    model, held, losses = ShardedParameters(layers, AdamW), {}, []
    adam = model.optimizer
    for what, of in ("weights", adam.parameters), ("mean", adam.mean), ("square", adam.square):
        held |= flat_shards(of, model.flats, what)
    if resume:
        adam.steps = load(folder / "4", held)["steps"]
    for _ in range(number):
        logits, saved = model.forward(shard(x))
        loss, grad = softmax_cross_entropy(logits, shard(labels), len(x))
        model.backward(grad, saved)
        model.step()
        dist.all_reduce(loss)
        losses.append(float(loss))
    if not resume:
        save(folder / f"{number}", held, {"steps": adam.steps})
    return losses


def test_zeros_shards_of_three_ranks_train_on_over_two(tmp_path):
    whole = launch(zero_steps, 3, (tmp_path, 8, False)).results[0]
    assert launch(zero_steps, 3, (tmp_path, 4, False)).results[0] == whole[:4]
    found = launch(zero_steps, 2, (tmp_path, 4, True)).results[0]
    assert max(abs(a - b) for a, b in zip(found, whole[4:], strict=True)) < 1e-10


PREPARED = "parameters imports whole-ways whole-together boxes-figure boxes-fill"


def test_the_lectures_cells_that_save_may_be_run_again():
    book = json.loads((ROOT / "lectures" / "16_fault_tolerance.ipynb").read_text())
    source, page = {c["id"]: "".join(c["source"]) for c in book["cells"]}, {"__name__": "__main__"}
    for cell in PREPARED.split():
        exec(source[cell], page)
    page["world_size"] = 2
    for cell in ("layouts-run", "state-run"):  # a sixth of their steps does as well
        source[cell] = re.sub(r"\b(48|24|12|6)\b", lambda n: str(int(n[0]) // 6), source[cell])
    with page["scratch"]:
        for cell in ("boxes-run", "layouts-run", "state-run") * 2:
            exec(source[cell], page)


# A rank dies


def test_a_rank_killed_under_torchrun_costs_time_and_nothing_else(tmp_path):
    death = lab.kill_one(tmp_path, num_steps=24, every=5, after=11)
    before, after = death.losses(0), death.losses(1)
    assert death.exit_code == 0, death.log[-2000:]
    assert {step: before[step] for step in death.lost} == {s: after[s] for s in death.lost}
    assert sorted({*before, *after}) == list(range(1, 25))
    assert (min(after) - 1) % 5 == 0
    whole = dict(enumerate(lab.never_killed(24), 1))
    assert all(abs(whole[step] - loss) < 1e-10 for step, loss in (before | after).items())
    assert all(seconds >= 0 for seconds in death.parts.values())
    assert pictures.downtime(death, "").axes
    assert not [p for p in psutil.process_iter() if str(tmp_path) in command(p)]


def test_a_second_run_in_a_folder_kills_no_process_that_the_first_ones_diary_names(tmp_path):
    stranger = subprocess.Popen(["sleep", "600"])  # has the number of a rank that is long dead
    step = {"what": "step", "rank": 1, "restart": 0, "step": 11, "pid": stranger.pid}
    (tmp_path / "diary-1.jsonl").write_text(json.dumps({**step, "when": 0.0, "loss": 1.0}) + "\n")
    try:
        death = lab.kill_one(tmp_path, num_steps=6, every=2, after=3)
        assert stranger.poll() is None, "the program that has the old number now was killed"
    finally:
        stranger.kill()
        stranger.wait()
    assert max(death.losses(1)) == 6, death.log[-2000:]


def test_a_rank_that_hangs_is_left_by_a_watchdog_and_the_run_goes_on(tmp_path):
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    worker = ["-m", "byhand.fault_tolerance.lab.worker", str(tmp_path), "24", "5", "10"]
    with open(tmp_path / "log.txt", "wb") as log:
        started = subprocess.Popen([*run, "--max-restarts", "3", *worker], stderr=log)
    try:
        hung = psutil.Process(dying.wait_for(tmp_path, started, rank=1, step=11)["pid"])
        other = psutil.Process(next(e for e in dying.diaries(tmp_path) if not e["rank"])["pid"])
        hung.suspend()  # it neither goes on nor ends
        other.wait(120)  # ends itself, for it waits for the one that hangs
        hung.resume()  # which torchrun's signal now reaches
        assert started.wait(120) == 0, (tmp_path / "log.txt").read_text()[-2000:]
    finally:
        dying.end(started)
    assert "Timeout (0:00:10)!" in (tmp_path / "log.txt").read_text()
    losses = {e["step"]: e["loss"] for e in dying.diaries(tmp_path) if e["what"] == "step"}
    whole = dict(enumerate(lab.never_killed(24), 1))
    assert losses == pytest.approx(whole, abs=1e-10)


ALONE = """
import sys
from pathlib import Path
from byhand.fault_tolerance.lab import worker
worker.PATIENCE = 1.0
worker.main(Path(sys.argv[1]), 24, 5, 1.0)
"""


def test_a_rank_that_hangs_before_its_first_step_is_left_by_a_watchdog_too(tmp_path):
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "TORCHELASTIC_RESTART_COUNT": "0"}
    env = {**os.environ, **where, "RANK": "0", "WORLD_SIZE": "2"}  # the other never comes
    run = [sys.executable, "-c", ALONE, str(tmp_path)]
    ended = subprocess.run(run, env=env, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, "Timeout (0:00:01)!" in ended.stderr) == (1, True), ended.stderr
    assert [e["what"] for e in dying.diaries(tmp_path)] == ["started", "imported"]


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


RESTARTED = """
import os, signal, torch, torch.distributed as dist
from byhand import cleanup, setup
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
setup(rank, world_size)
total = torch.tensor(rank + 1)
dist.all_reduce(total)
if os.environ["TORCHELASTIC_RESTART_COUNT"] < "2" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
open(f"{os.environ['SAID']}-{rank}", "w").write(str(int(total)))
cleanup()
"""


def test_setup_meets_again_each_time_that_torchrun_restarts_the_ranks(tmp_path):
    script = tmp_path / "restarted.py"
    script.write_text(RESTARTED)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "SAID": str(tmp_path / "said"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*run, "--max-restarts", "2", script], env=environment, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert [(tmp_path / f"said-{rank}").read_text() for rank in (0, 1)] == ["3", "3"]


def test_where_one_of_two_hosts_dies_the_other_goes_on_alone(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quick = "last_call_timeout=3,keep_alive_interval=1,keep_alive_max_attempt=2"
    run = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:2", "--max-restarts", "3"]
    meet = ["--rdzv-backend", "c10d", "--rdzv-id", "x", "--rdzv-endpoint", f"127.0.0.1:{port}"]
    worker = ["-m", "byhand.fault_tolerance.lab.worker", str(tmp_path), "30", "5"]
    hosts = [
        subprocess.Popen(
            [*run, *meet, "--rdzv-conf", f"is_host={is_host},{quick}", *worker],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.DEVNULL,
        )
        for is_host in (1, 0)
    ]
    try:
        dying.wait_for(tmp_path, hosts[1], rank=1, step=12)
        for process in (*psutil.Process(hosts[1].pid).children(recursive=True), hosts[1]):
            process.kill()
        assert hosts[0].wait(120) == 0
    finally:
        for host in hosts:
            dying.end(host)
    steps = [e for e in dying.diaries(tmp_path) if e["what"] == "step" and e["rank"] == 0]
    together, alone = ([e["step"] for e in steps if e["of"] == n] for n in (2, 1))
    assert max(together) >= 11
    assert alone == list(range(alone[0], 31))
    assert alone[0] - 1 in (max(together) // 5 * 5, max(together) // 5 * 5 - 5)


# A save is cut off


def keep(folder: Path, value: int) -> None:
    save(folder / f"step-{value}", {"w": Shard(torch.full((8,), value), (8,), (0,))})


def write_over(folder: Path, value: int) -> None:
    with open(folder / "latest.pt", "wb") as file:
        torch.save(torch.full((8,), value), file)


def read(folder: Path) -> str:
    try:
        return str(int(torch.load(folder / "latest.pt")[0]))
    except (RuntimeError, EOFError, OSError):  # torn, or empty
        return "nothing"


def test_a_save_that_fails_by_itself_is_told_what_it_raised():
    def save(folder: Path) -> None:
        (folder / "new").write_text(1)

    with pytest.raises(RankError, match=r"before it was killed: TypeError: .*must be str"):
        lab.killed_at_each_call(save, read, lambda folder: None)


def test_a_save_in_place_loses_both_once_it_is_open_and_ours_neither_whenever_it_is_killed():
    first, second = (
        lab.killed_at_each_call(partial(way, value=2), find, partial(way, value=1))
        for way, find in ((write_over, read), (keep, lambda folder: newest(folder).name))
    )
    assert (first[0].call, first[0].found) == ("open", "1")
    assert {moment.found for moment in first[1:-1]} == {"nothing"}
    names = [moment.found for moment in second]
    renamed = names.index("step-2")
    assert set(names[:renamed]) == {"step-1"}
    assert set(names[renamed:]) == {"step-2"}
    assert second[renamed - 1].call == "rename"
