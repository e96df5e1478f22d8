"""What the planner says of a step, against byhand.costs, print, and a plain loop."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from byhand.costs import Layout, Machine, gpt, held, layouts, sent
from byhand.costs.counting import chunks, in_flight
from byhand.costs.layout import RECOMPUTE
from byhand.costs.timing import Step as Costed
from byhand.frameworks.configurations import deepseek_v3
from byhand.pipeline_schedules.simulation import simulate
from byhand.planner import MACHINES, SOFTWARE, runs, search, step
from byhand.planner.__main__ import main
from byhand.planner.computing import product
from byhand.planner.explain import Question, degrees, explained, questions, runner_up, turned
from byhand.planner.flags import megatron, told, torchtitan, uneven
from byhand.planner.machines import CARD
from byhand.planner.memory import parameters
from byhand.planner.messages import ring
from byhand.planner.models import NAMES, named
from byhand.planner.published import beyond, published, scored
from byhand.planner.search import ORDERS, OUTER_DP
from byhand.planner.sizes import sizes
from byhand.planner.software import UNSEEN
from byhand.planner.step import ask, turns
from byhand.planner.table import table

SMALL = gpt(4, 256, 8, 1024, 128, tied=False)
LLAMA = gpt(8, 512, 8, 1024, 256, num_key_heads=2, width=1408, gated=True, tied=False)
MIXTURE = gpt(4, 256, 8, 1024, 128, gated=True, num_experts=8, experts_per_token=2)
A100 = MACHINES["a100-80gb"]


def predicted(row):
    asked = {"precision": row.precision, "compiled": row.compiled, "reduce_dtype": row.reduce_dtype}
    return step(
        row.model, row.layout, row.machine, row.num_sequences, software=row.software, **asked
    )


# Sizes and tables


@pytest.mark.parametrize("model", [SMALL, LLAMA, MIXTURE, gpt(2, 96, 4, 50, 16, head_size=32)])
def test_sizes_are_what_gpt_was_given(model):
    found = sizes(model)
    again = gpt(
        found.blocks,
        found.features,
        found.heads,
        int(found.tokens),
        found.positions,
        num_key_heads=round(found.keys / (found.queries / found.heads)),
        head_size=round(found.queries / found.heads),
        width=round(found.inside),
        gated=found.up == 2,
        tied=found.tied,
        num_experts=found.experts,
        experts_per_token=int(found.visited) if found.experts else 0,
    )
    assert again == model


def test_a_model_that_is_no_gpt_is_refused_in_a_sentence():
    halves = replace(SMALL, parts=tuple(part for part in SMALL.parts if part.half))
    for model in (halves, deepseek_v3()):
        with pytest.raises(ValueError, match="the planner takes models of"):
            step(model, Layout(), A100, 1, software="fsdp")


@pytest.mark.parametrize("order", [*ORDERS, "dp-tp-cp-ep-pp"])
@pytest.mark.parametrize("num_ranks", [2, 3, 4, 5, 6, 7, 8, 16, 24, 40, 64])
def test_a_groups_cards_are_those_that_costs_counts_rank_by_rank(num_ranks, order):
    """All of them where strides fit a host, and no more elsewhere."""
    machine = Machine(between=1.0, ranks_per_host=8, links_per_host=8)
    for layout in layouts(num_ranks, order, cp=2 if order.endswith("pp") else 1):
        at = table([layout])
        for axis in ("tp", "dp", "pp", "cp", "dp-cp"):
            load, stride = machine.load(layout.grid.groups(axis)), at.stride(axis)[0]
            each = 1 / at.cards(axis, 8)[0]
            assert each >= load, (layout, axis)
            together = axis != "dp-cp" or order in ORDERS  # not where tp lies between dp and cp
            if together and (8 % stride == 0 or stride % 8 == 0):
                assert each == load, (layout, axis)


@pytest.mark.parametrize("order", [*ORDERS, "tp-dp-pp-cp-ep"])
def test_neighbours_of_a_group_are_a_stride_apart_and_no_ring_has_more_cards_than_its_ranks(order):
    """With experts, and where stages lie between dp and cp: every layout that can be built."""
    machine = Machine(between=1.0, ranks_per_host=8, links_per_host=8)
    for layout in layouts(48, order, cp=4, ep=4):
        with contextlib.suppress(ValueError):  # dense and experts' layers in different pipelines
            grid, at = layout.grid, table([layout])
            for axis in ("tp", "dp", "pp", "cp", "ep", "expert-dp", "dp-cp"):
                groups, stride = grid.groups(axis), at.stride(axis)[0]
                assert 1 / at.cards(axis, 8)[0] >= machine.load(groups), (layout, axis)
                if groups.shape[1] > 1 and axis != "dp-cp":
                    assert groups[0, 1] - groups[0, 0] == stride, (layout, axis)


@pytest.mark.parametrize("layout", [Layout(6), Layout(3, 2), Layout(pp=6), Layout(2, 1, 4)])
def test_ranks_that_share_one_host_use_no_card(layout):
    """Nor does a tied table between two stages: a step takes as long with cards of a tenth."""
    model, fast = gpt(12, 768, 12, 50304, 1024), MACHINES["h100-80gb"]
    slow = replace(fast, between=fast.between / 10)
    parts = [dict(step(model, layout, machine, 12).parts) for machine in (fast, slow)]
    assert parts[0] == parts[1]


# What stands in byhand.costs too


@pytest.mark.parametrize("model", [SMALL, LLAMA, MIXTURE])
def test_state_is_what_costs_says_under_every_layout(model):
    for layout, zero in itertools.product(layouts(16, ep=4, cp=2), range(4)):
        if (model is not MIXTURE and layout.ep > 1) or layout.pp > 4 or layout.tp > 8:
            continue
        layout = replace(layout, zero=zero)
        software = SOFTWARE["megatron-bridge"]
        ends = [held(model, layout, 16, s, state=software.state) for s in (0, layout.pp - 1)]
        found = step(model, layout, "h100-80gb", 16, software=software, precision="fp8").memory
        for kind in software.state:
            assert any(found[kind] == pytest.approx(end[kind]) for end in ends), (layout, kind)


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize(("pp", "chunks"), [(1, 1), (2, 1), (4, 1), (2, 2)])
@pytest.mark.parametrize(("tp", "sequence"), [(1, False), (4, False), (4, True)])
def test_activations_are_what_costs_says(tp, sequence, pp, chunks, recompute):
    """But for the head's logits, which stand under "loss" here."""
    model = gpt(8, 256, 8, 1024, 128, scores=5)
    layout = Layout(1, tp, pp, chunks=chunks, sequence=sequence, recompute=recompute)
    logits = 128 * model.parts[-1].saved[0] / tp * in_flight(layout, 8, pp - 1) / chunks
    ends = [held(model, layout, 8, s)["activations"] - logits * (s == pp - 1) for s in (0, pp - 1)]
    found = step(model, layout, A100, 8, software="megatron-2022").memory["activations"]
    assert any(found == pytest.approx(end) for end in ends)


@pytest.mark.parametrize("zero", range(4))
def test_gradients_take_as_long_as_the_bytes_that_costs_counts(zero):
    model, layout = named("llama3-8b"), Layout(dp=16, zero=zero, rows=2)
    num_bytes = sum(sent(model, layout, 64)["dp-cp"].values())
    software = replace(SOFTWARE["nemo"], hides_gradients=0.0, reduce_bytes=2)
    parts = step(model, layout, "h100-80gb", 64, software=software).parts
    assert parts["gradients"] == pytest.approx(num_bytes / (8 * 50e9 * CARD), rel=0.03)


def test_parameters_are_the_models():
    case = ask(LLAMA, [Layout()], "h100-80gb", 1)
    assert parameters(case)[0][0] == LLAMA.parameters


@pytest.mark.parametrize(("p", "v", "m"), [(2, 1, 6), (4, 1, 8), (4, 2, 8), (2, 4, 4)])
def test_a_pipeline_takes_as_long_as_its_schedule_simulated(p, v, m):
    """With a head that outweighs a block, and messages that cost nothing."""
    model = gpt(8, 64, 4, 9000, 32)
    free = replace(MACHINES["h100-80gb"], between=np.inf, inside=np.inf)
    software = replace(SOFTWARE["nemo"], hides_sends=1.0)
    alone = turns(ask(model, [Layout()], free, 1, software=software))
    head = alone["head"][0]
    chunk = (sum(alone.values())[0] - head) / (p * v)
    ways = [[chunk * share] * (p * v) for share in (1 / 3, 2 / 3)]
    ways[0][-1] += head / 3
    ways[1][-1] += 2 * head / 3
    layout = Layout(pp=p, chunks=v)
    schedule = Costed(model, layout, Machine(), m).schedule
    found = turns(ask(model, [layout], free, m, software=software))
    simulated = simulate(schedule, *ways, backward_weight=0.0).seconds
    assert sum(found.values())[0] == pytest.approx(simulated, rel=1e-6)


# Properties


def test_a_steps_parts_add_up_and_mfu_is_of_the_peak():
    found = step(LLAMA, Layout(dp=2, tp=2, pp=2, rows=2), "h100-80gb", 16)
    assert sum(found.parts.values()) == found.seconds
    assert 0 < found.mfu < 1
    assert found.fits == (found.num_bytes <= MACHINES["h100-80gb"].memory)


@pytest.mark.parametrize("zero", range(4))
def test_twice_the_replicas_on_twice_the_batch_send_no_less_and_hold_no_more(zero):
    steps = [step(LLAMA, Layout(dp, tp=2, zero=zero), "h100-80gb", dp * 4) for dp in (2, 4, 8, 64)]
    for fewer, more in itertools.pairwise(steps):
        assert more.parts["gradients"] >= fewer.parts["gradients"]
        assert more.parts["products"] == fewer.parts["products"]
        assert more.num_bytes <= fewer.num_bytes


def test_more_chunks_idle_less_and_send_more():
    steps = [step(LLAMA, Layout(pp=2, chunks=v), "h100-80gb", 16) for v in (1, 2, 4)]
    assert steps[0].parts["idle"] == pytest.approx(4 * steps[2].parts["idle"])
    eager = replace(SOFTWARE["nemo"], hides_sends=0.0)
    each = [step(LLAMA, Layout(pp=2, chunks=v), "h100-80gb", 16, software=eager) for v in (1, 2)]
    assert each[1].parts["pp"] > each[0].parts["pp"]


def test_recomputing_takes_longer_and_holds_less():
    steps = [
        step(SMALL, Layout(rows=4, recompute=again), A100, 4, software="megatron-2022")
        for again in RECOMPUTE
    ]
    for less, more in itertools.pairwise(steps):
        assert less.seconds < more.seconds
        assert less.num_bytes > more.num_bytes


def test_a_wide_product_reaches_a_larger_share_of_the_peak():
    case = ask(LLAMA, [Layout()], "h100-80gb", 1)
    shares = [2 * n**3 / product(case, n, n, n) / 989e12 for n in (512, 4096, 65536)]
    assert shares == sorted(shares)
    assert shares[-1] < SOFTWARE["nemo"].products["h100", "bf16"]


def test_a_group_with_several_ranks_a_host_uses_as_many_cards():
    near = ask(LLAMA, [Layout(dp=64)], "h100-80gb", 64)  # eight of each host
    far = ask(LLAMA, [Layout(dp=64, tp=8)], "h100-80gb", 64)  # one of each
    times = [ring(case, "dp", 1e12)[0] for case in (near, far)]
    assert times[1] / times[0] == pytest.approx(8, rel=0.01)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"layout": Layout(dp=3)}, "4 sequences do not make micro-batches"),
        ({"layout": Layout(tp=3)}, "8 heads cannot be shared by tp 3"),
        ({"layout": Layout(pp=4, chunks=9)}, "8 blocks cannot make 36 chunks"),
        ({"layout": Layout(dp=2, ep=2)}, "0 experts cannot be shared by ep 2"),
        ({"machine": "b300"}, "no machine is called 'b300'; there are a100-80gb"),
        ({"software": "mesh"}, "no software is called 'mesh'"),
        ({"machine": "a100-80gb", "precision": "fp8"}, "a100-80gb has bf16"),
        (
            {"machine": "h100-80gb", "software": "megatron-2021"},
            "nothing is known of megatron-2021",
        ),
        ({"reduce_dtype": "fp8"}, "known are bf16 and fp32"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(change, sentence):
    asked = {"model": LLAMA, "layout": Layout(), "machine": "h100-80gb", "num_sequences": 4}
    with pytest.raises(ValueError, match=sentence):
        step(**(asked | change))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"num_ranks": 0}, "num_ranks is 0: it must be at least 1"),
        ({"num_sequences": -8}, "num_sequences is -8: it must be at least 1"),
        ({"tp": 0}, "the most of tp is 0: it must be at least 1"),
        ({"zero": -1}, "the most of zero is -1: it must be at least 0"),
    ],
)
def test_a_search_for_nothing_is_refused_in_a_sentence(change, sentence):
    asked = {"model": SMALL, "machine": "h100-80gb", "num_ranks": 8, "num_sequences": 8}
    with pytest.raises(ValueError, match=sentence):
        search(**(asked | change))


def test_objects_do_as_well_as_names():
    named_, given = (
        step(LLAMA, Layout(dp=2), machine, 4, software=software)
        for machine, software in (("h100-80gb", "nemo"), (MACHINES["h100-80gb"], SOFTWARE["nemo"]))
    )
    assert dict(named_.parts) == dict(given.parts)


# Published steps


def test_published_steps_are_met_as_closely_as_is_said():
    """Of each software: the mean within its stated error; three rows of four within twice it."""
    for name, rows in itertools.groupby(
        sorted(scored(), key=lambda r: r.software), lambda r: r.software
    ):
        missed = sorted(abs(predicted(row).seconds / row.seconds - 1) for row in rows)
        error = SOFTWARE[name].error
        assert sum(missed) / len(missed) <= error, name
        assert missed[3 * len(missed) // 4 - 1] <= 2 * error, name


def test_every_row_that_is_left_out_says_why():
    reasons = {row.left_out for row in published()} - {""}
    assert reasons == {"experts", "LoRA", "fine-tuning", "far off its neighbours"}
    assert len(scored()) > 120


def test_every_published_layout_fits_where_it_ran():
    assert [row.name for row in scored() if not predicted(row).fits] == []


def test_measured_peaks_of_memory_are_met():
    rows = [row for row in scored() if row.gib]
    missed = [abs(predicted(row).num_bytes / 2**30 / row.gib - 1) for row in rows]
    assert len(rows) == 9
    assert np.median(missed) < 0.1
    assert np.mean(missed) < 0.15


# Search


TINY = replace(A100, memory=2.1e9), replace(MACHINES["h100-80gb"], memory=2.1e9)
CASES = {  # model, machine, ranks, sequences, software
    "gpt": (gpt(2, 256, 4, 512, 64), TINY[0], 4, 4, "megatron-2022"),
    "llama": (gpt(2, 512, 4, 512, 64, num_key_heads=2, gated=True), TINY[1], 8, 2, "nemo"),
    "experts": (
        gpt(2, 128, 2, 512, 64, gated=True, num_experts=4, experts_per_token=2),
        TINY[1],
        4,
        2,
        "torchtitan",
    ),
}


@functools.cache
def plainly(case):
    """Every layout that can run, one after the other: {layout: step}."""
    model, machine, num_ranks, num_sequences, software = CASES[case]
    found = {}
    for at in layouts(num_ranks, cp=16, ep=64):
        settings = itertools.product((1, 2, 4), (1, 2, 4), range(4), (False, True), RECOMPUTE)
        for rows, many, zero, sequence, again in settings:
            more = {"rows": rows, "chunks": many, "zero": zero, "sequence": sequence}
            layout = replace(at, recompute=again, **more)
            if many > 1 and (at.pp == 1 or num_sequences // at.dp // rows % at.pp):
                continue  # interleaving goes round whole stages
            if SOFTWARE[software].runs.refuses(layout, sizes(model).blocks):
                continue
            with contextlib.suppress(ValueError):
                found[layout] = step(model, layout, machine, num_sequences, software=software)
    return found


@pytest.mark.parametrize("gib", [None, 2.0, 1.97])
@pytest.mark.parametrize("case", CASES)
def test_no_layout_is_faster_than_the_best_of_search(case, gib):
    """A plain loop over step finds none, however little memory there is."""
    model, machine, num_ranks, num_sequences, software = CASES[case]
    limit = machine.memory if gib is None else gib * 2**30
    seconds = [each.seconds for each in plainly(case).values() if each.num_bytes <= limit]
    found = search(
        model, machine, num_ranks, num_sequences, software=software, memory=limit, orders=ORDERS[:1]
    )
    assert found[0][1].seconds == pytest.approx(min(seconds))
    same = {layout for layout, each in found} - set(plainly(case))
    assert not same
    assert len(found) <= len(seconds)


def test_a_search_says_of_each_layout_what_step_says():
    found = search(LLAMA, "h100-80gb", 16, 8)
    assert [s.seconds for _, s in found] == sorted(s.seconds for _, s in found)
    assert len({layout for layout, _ in found}) == len(found)
    for layout, each in found[:: len(found) // 20]:
        alone = step(LLAMA, layout, "h100-80gb", 8)
        assert dict(each.parts) == pytest.approx(dict(alone.parts))
        assert dict(each.memory) == pytest.approx(dict(alone.memory))
        assert layout.num_ranks == 16


def test_every_layout_of_a_search_can_be_built():
    """With experts, and stages near: both kinds of layers have the same pipelines."""
    found = search(MIXTURE, "h100-80gb", 16, 32, software="megatron-bridge")
    kinds = {(at.order == OUTER_DP, at.ep > 1) for at, _ in found}
    assert kinds == {(False, False), (False, True), (True, False)}
    for layout, _ in found:
        assert layout.grid.expert_dp == layout.expert_dp


def test_a_long_sequence_is_shared_by_as_many_as_it_needs():
    found = search(named("llama3-8b", 1 << 20), "h100-80gb", 64, 1)
    assert found[0][0].cp > 16
    with pytest.raises(ValueError, match="layouts fits"):
        search(named("llama3-8b", 1 << 20), "h100-80gb", 32, 1, cp=1, tp=1)


def test_rules_of_thumb_lose_the_best_somewhere():
    """tp within a host, no chunks, no sharding, nothing recomputed, all of it."""
    asked = named("gpt-1t"), "a100-80gb", 16384
    for num_sequences, rule in RULES:
        best, ruled = (
            search(*asked, num_sequences, software="megatron-2022", orders=ORDERS[:1], **limits)
            for limits in ({}, rule)
        )
        assert ruled[0][1].seconds > 1.05 * best[0][1].seconds, rule


RULES = [(512, {"tp": 8}), (4096, {"chunks": 1}), (4096, {"zero": 0})]


def test_most_chunks_are_not_always_the_fastest():
    """A chunk for every block: with many micro-batches, messages cost more than is idled less."""
    found = search(named("gpt3-175b"), "a100-80gb", 512, 8192, software="megatron-2022")
    most = next(each for at, each in found if at.pp > 1 and at.chunks * at.pp == 96)
    assert most.seconds > 1.01 * found[0][1].seconds


def test_a_trillion_on_sixteen_thousand_has_every_layout():
    found = search(named("gpt-1t"), "a100-80gb", 16384, 3072, software=EVERY)
    assert len(found) > 30_000
    assert all(each.fits for _, each in found[::1000])


# What software runs


EVERY = replace(SOFTWARE["megatron-2022"], runs=runs.ANY)


def test_every_published_layout_is_one_that_its_software_runs():
    refused = {
        row.name: why
        for row in scored()
        if (why := SOFTWARE[row.software].runs.refuses(row.layout, sizes(row.model).blocks))
    }
    assert refused == {}


@pytest.mark.parametrize(
    ("software", "layout", "sentence"),
    [
        ("megatron-2021", Layout(zero=1), "zero is 1: only 0 can be run"),
        ("megatron-2021", Layout(tp=2, sequence=True), "sequence is True: only False"),
        ("megatron-2022", Layout(cp=2), "cp is 2: at most 1"),
        ("megatron-2022", Layout(pp=3), "8 blocks cannot make 3 equal chunks"),
        ("megatron-2022", Layout(pp=4, chunks=4), "8 blocks cannot make 16 equal chunks"),
        ("fsdp", Layout(pp=2), "pp is 2: at most 1"),
        ("nemo", Layout(pp=4, chunks=3), "8 blocks cannot make 12 chunks"),
        ("nemo", Layout(pp=9), "8 blocks cannot make 9 chunks"),
        ("megatron-bridge", Layout(2, pp=2, zero=3), "zero is 3 under a pipeline"),
        ("torchtitan", Layout(zero=1), "zero is 1: only 0, 2, 3 can be run"),
        ("torchtitan", Layout(pp=4, chunks=3), "8 blocks cannot make 12 chunks of which only"),
    ],
)
def test_what_software_does_not_run_is_said(software, layout, sentence):
    assert SOFTWARE[software].runs.refuses(layout, 8).startswith(sentence)


def test_llamas_tables_may_have_chunks_of_their_own():
    llama, layout = named("llama3-405b"), Layout(8, 8, 16, chunks=8, zero=1, sequence=True)
    assert SOFTWARE["nemo"].runs.refuses(layout, 126) == ""
    assert step(llama, layout, "h100-80gb", 2048).seconds > 0
    ends = replace(layout, light_ends=True)
    cut = [chunks(llama, ends, stage) for stage in range(16)]
    assert sum(len(chunk) for stage in cut for chunk in stage) == len(llama.parts)
    assert all(chunk for stage in cut for chunk in stage), "no chunk is empty"


@pytest.mark.parametrize("software", ["megatron-2021", "megatron-2022", "fsdp", "torchtitan"])
def test_a_search_finds_nothing_that_the_software_does_not_run(software):
    ours = SOFTWARE[software]
    found = search(gpt(6, 512, 8, 1024, 128), "a100-80gb", 24, 48, software=ours)
    assert {ours.runs.refuses(layout, 6) for layout, _ in found} == {""}
    free = replace(ours, runs=runs.ANY)
    more = search(gpt(6, 512, 8, 1024, 128), "a100-80gb", 24, 48, software=free)
    able = [layout for layout, _ in more if not ours.runs.refuses(layout, 6)]
    assert {layout for layout, _ in found} == set(able)


# Why


def test_the_reasons_name_the_winner_the_second_and_what_would_change_it():
    question = Question.of(LLAMA, "h100-80gb", 16, 16)
    found = question.found()
    second = runner_up(found)
    lines = explained(question, found)
    assert lines[0].startswith(f"{found[0][0]} wins: ")
    assert degrees(second[0]) != degrees(found[0][0])
    assert lines[1].startswith(f"second: {second[0]}")
    assert sum(line.startswith("with ") for line in lines) == 9


def test_each_rate_of_the_network_is_turned_too():
    question = Question.of(LLAMA, "h100-80gb", 16, 16)
    others = list(questions(question).values())
    assert len(others) == 2 + len(turned(question.software))
    assert others[0].machine.between == 1.1 * question.machine.between
    assert others[1].machine.inside == 1.1 * question.machine.inside


def test_a_tenth_more_of_a_constant_changes_it_alone_and_no_share_passes_1():
    software = SOFTWARE["megatron-2022"]
    assert turned(software, 2)["products"].products["a100", "bf16"] == 1
    software = SOFTWARE["nemo"]
    for name, other in turned(software).items():
        changed = [
            f.name
            for f in dataclasses.fields(other)
            if getattr(other, f.name) != getattr(software, f.name)
        ]
        assert changed in ([name], []), name


# The tool


def tool(*words):
    command = [sys.executable, "-m", "byhand.planner", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


SMALLEST = "llama3-8b", "--ranks", "16", "--batch", "32"


def test_the_tool_prints_five_layouts_and_flags():
    ran = tool(*SMALLEST, "--machine", "h100")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("MFU") == 5
    assert "Megatron-LM: --tensor-model-parallel-size" in ran.stdout
    assert "torchtitan" not in ran.stdout


@pytest.mark.parametrize(
    ("software", "words"),
    [
        ("nemo", ("Megatron-LM", "--overlap-grad-reduce --overlap-param-gather")),
        ("nemo", ("Megatron-LM", "--grad-reduce-in-bf16")),
        ("nemo", ("Megatron-LM", "--tp-comm-overlap")),
        ("torchtitan", ("torchtitan", "--parallelism.pipeline_parallel_layers_per_stage 3")),
        ("fsdp", ("llm-foundry", "fsdp_config.sharding_strategy=FULL_SHARD")),
    ],
)
def test_flags_are_of_the_program_whose_constants_were_used(software, words):
    layout = Layout(2, 2, 2, chunks=4, zero=1, sequence=True)
    if software != "nemo":
        layout = replace(layout, zero=3)
    program, flags = told(gpt(24, 256, 8, 1024, 128), layout, 16, SOFTWARE[software])
    assert program == words[0]
    assert words[1] in flags


@pytest.mark.parametrize("blocks", [126, 44, 30, 10])
def test_torchtitan_makes_the_stages_that_its_flags_ask_for(blocks):
    """By the rule in its pipeline_parallel.py: so many that pp divides them, none below empty."""
    model, by = gpt(blocks, 128, 2, 512, 64), SOFTWARE["torchtitan"]
    every = [Layout(pp=pp, chunks=v) for pp in (2, 4, 8, 16) for v in range(2, 1 + blocks // 2)]
    run = [layout for layout in every if not by.runs.refuses(layout, blocks)]
    for layout in run:
        flags = dict(re.findall(r"(\w+) (\d+)", told(model, layout, 16, by)[1]))
        each, first, last = (int(flags[f"pipeline_parallel_{name}"]) for name in LESS)
        stages = math.ceil((blocks + first + last) / each)
        assert stages == layout.pp * layout.chunks, layout
        assert max(first, last) <= (blocks + first + last) // stages, layout
    assert 1 < len(run) < len(every)


LESS = "layers_per_stage", "first_stage_less_layers", "last_stage_less_layers"


def test_what_megatron_asks_for_is_told_of_megatron_alone(capsys):
    asked = "llama3-405b", "--ranks", "512", "--batch", "128", "--json"
    notes = {}
    for software in ("nemo", "torchtitan"):
        assert main([*asked, "--software", software]) == 0
        found = json.loads(capsys.readouterr().out)
        notes[found["program"]] = found["note"]
        assert 126 % (found["best"][0]["layout"]["pp"] * found["best"][0]["layout"]["chunks"])
    assert notes["Megatron-LM"].startswith("126 blocks do not divide")
    assert notes["torchtitan"] == ""


def test_what_hides_nothing_asks_for_no_overlap():
    given = named("gpt-1t"), Layout(2, 8, 8, zero=1, sequence=True), 64
    assert "overlap" not in megatron(*given, software=SOFTWARE["megatron-2022"])
    assert "--grad-reduce" not in megatron(*given, software=SOFTWARE["megatron-2022"])


def test_what_no_published_step_has_is_called_extrapolated():
    run = next(row for row in scored() if row.name == "korth-1T-selective")
    assert beyond(run.layout, run.software) == []
    far = replace(run.layout, dp=64, tp=16, zero=1)
    assert beyond(far, run.software) == ["dp 64", "tp 16", "ZeRO 1"]
    assert beyond(replace(run.layout, sequence=False), "nemo")[-1] == "recompute selective"
    assert beyond(replace(run.layout, order=OUTER_DP), run.software) == [f"order {OUTER_DP}"]


def test_the_tools_json_is_what_search_finds():
    ran = tool(*SMALLEST, "--json")
    found = json.loads(ran.stdout)
    layout, best = search(named("llama3-8b"), "h100-80gb", 16, 32)[0]
    assert found["best"][0]["seconds"] == pytest.approx(best.seconds)
    assert Layout(**found["best"][0]["layout"]) == layout
    assert found["best"][0]["error"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("llama9", *SMALLEST[1:]), "no model is called 'llama9'"),
        ((*SMALLEST, "--machine", "tpu"), "no machine is called 'tpu'"),
        (("llama3-8b", "--ranks", "0", "--batch", "1"), "--ranks is 0"),
        (("gpt-1t", "--ranks", "8", "--batch", "8"), "layouts fits: 8 ranks of 80 GiB cannot"),
    ],
)
def test_the_tool_refuses_in_a_sentence(words, sentence, capsys):
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


def test_flags_say_what_the_layout_says():
    layout = Layout(8, 4, 2, chunks=3, rows=2, zero=1, sequence=True, recompute="full")
    words = megatron(named("gpt3-175b"), layout, 64)
    for flag in (
        "--tensor-model-parallel-size 4",
        "--pipeline-model-parallel-size 2",
        "--num-virtual-stages-per-pipeline-rank 3",
        "--micro-batch-size 2",
        "--global-batch-size 64",
        "--sequence-parallel",
        "--use-distributed-optimizer",
        "--recompute-granularity full",
    ):
        assert flag in words
    assert uneven(named("gpt3-175b"), layout) == ""
    assert uneven(named("llama3-405b"), Layout(pp=8)).startswith("126 blocks do not divide by 8")
    shards = torchtitan(named("llama3-8b"), replace(layout, chunks=1, recompute="none"), 64)
    assert "--parallelism.data_parallel_shard_degree 8" in shards
    assert "--parallelism.pipeline_parallel_microbatch_size 2" in shards


def test_every_name_is_a_model():
    for name in NAMES:
        assert sizes(named(name)).blocks == len(named(name).parts) // 2 - 1


def test_constants_that_are_borrowed_have_a_larger_error():
    """nemo's rows are H100's in FP8: what it says of bf16, or of an A100, is another's."""
    asked = named("llama3-8b"), Layout(dp=8, zero=1), 64
    own = step(asked[0], asked[1], "h100-80gb", asked[2], precision="fp8")
    assert own.error == SOFTWARE["nemo"].error
    for machine in ("h100-80gb", "a100-80gb"):
        assert step(asked[0], asked[1], machine, asked[2]).error == UNSEEN > own.error


def test_every_row_that_was_fitted_has_its_softwares_error():
    for row in scored():
        assert predicted(row).error == SOFTWARE[row.software].error, row.name


@pytest.mark.parametrize("case", CASES)
def test_one_of_each_set_of_degrees_is_the_fastest_of_them(case):
    model, machine, *counts, software = CASES[case]
    every = search(model, machine, *counts, software=software)
    first = {}
    for layout, each in every:
        first.setdefault(degrees(layout), (layout, each.seconds))
    found = search(model, machine, *counts, software=software, one_each=True)
    assert [(layout, each.seconds) for layout, each in found] == list(first.values())
