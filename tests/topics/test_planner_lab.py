"""What lecture 17 says follows from the planner: its sentences' numbers, and its pictures."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from importlib.util import find_spec

import pytest

from autograder.places import COURSE
from byhand.costs import Layout, gpt
from byhand.figures import save_svg
from byhand.planner import SOFTWARE, lab, search, step
from byhand.planner.lab import pictures
from byhand.planner.models import named
from byhand.planner.published import beyond, published, scored

MODEL = gpt(4, 512, 8, 1024, 256, tied=False)
ASKED = MODEL, "a100-80gb", 16, 32


@pytest.fixture(scope="module")
def found():
    return search(*ASKED, software="megatron-2022")


def test_groups_are_all_parts_of_a_step_each_once(found):
    named = list(itertools.chain.from_iterable(lab.GROUPS.values()))
    assert sorted(named) == sorted(found[0][1].parts)
    assert list(pictures.COLOURS) == list(lab.GROUPS)
    for _, each in found[:: len(found) // 10]:
        assert sum(lab.grouped(each).values()) == pytest.approx(each.seconds)


def test_kinds_are_all_kinds_of_bytes(found):
    assert set(pictures.KINDS) == set(found[0][1].memory)


def test_a_short_name_tells_layouts_apart():
    plain = Layout(2, 2, 4)
    assert lab.short(plain) == "dp 2 · tp 2 · pp 4"
    ways = [{"rows": 2}, {"chunks": 2}, {"zero": 1}, {"zero": 3}, {"sequence": True}, {"cp": 2}]
    ways += [{"ep": 2}, {"recompute": "full"}, {"recompute": "selective"}]
    ways += [{"order": "tp-cp-ep-pp-dp"}]
    names = [lab.short(replace(plain, **way)) for way in ways]
    assert len({*names, lab.short(plain)}) == len(ways) + 1


def test_as_many_layouts_divide_as_a_search_without_a_limit_of_memory_finds():
    every = search(*ASKED, software="megatron-2022", memory=1e30)
    assert lab.num_layouts(*ASKED, "megatron-2022") == len(every)


def test_every_scored_row_is_a_ratio():
    ratios = lab.ratios()
    assert sum(map(len, ratios.values())) == len(scored())


def test_a_neighbour_is_other_software_that_misses_by_more():
    """What the lecture says of software that nobody has fitted."""
    found = lab.unseen()
    assert set(found) == set(SOFTWARE)
    for name, (count, own, other) in found.items():
        assert lab.NEIGHBOURS[name] != name
        assert count > 0
        assert own < other < 0.15, name


def test_a_step_that_nobody_fitted_is_met_and_unknown_software_is_not():
    """What the lecture says of Megatron's own on eight replicas, and of DeepSpeed's pipeline."""
    own, *others = (seconds / published - 1 for _, seconds, published in lab.never_fitted())
    assert abs(own) < 0.03
    assert all(-0.22 < error < -0.17 for error in others)


def test_pairs_are_of_one_model_in_two_layouts():
    """Four of Korthikanti et al. are, each recomputed whole and in part, and ranked right."""
    found = lab.pairs()
    assert len(found) > 25
    assert sum(ran > 1.2 and on_paper > 1.2 for ran, on_paper in found) >= 4


def test_no_pair_differs_in_stages_or_chunks_and_one_in_tp():
    for name, most in {"pp": 0, "chunks": 0, "cp": 0, "tp": 1}.items():
        unlike = [
            one.name
            for one, other in lab.paired()
            if getattr(one.layout, name) != getattr(other.layout, name)
        ]
        assert len(unlike) == most, name


def test_a_doubt_turns_one_constant_within_its_interval():
    ours = SOFTWARE["megatron-2022"]
    found = lab.doubts("megatron-2022")
    assert [name.split()[0] for name in found] == ["products", "operand", "scores", "tensor", "hop"]
    for name, (less, more) in found.items():
        constant = name.split()[0]
        assert replace(less, **{constant: getattr(ours, constant)}) == ours
        assert replace(more, **{constant: getattr(ours, constant)}) == ours
    less, more = (by.products["a100", "bf16"] for by in found["products a100 bf16"])
    assert less < ours.products["a100", "bf16"] < more < 1
    assert less * more == pytest.approx(ours.products["a100", "bf16"] ** 2)


def test_peaks_are_those_that_were_measured():
    found = lab.peaks()
    assert [gib for gib, _ in found] == [row.gib for row in scored() if row.gib]
    assert all(0.8 < on_paper / gib < 1.5 for gib, on_paper in found)
    rows = [row for row in scored() if row.gib]
    assert {(row.software.split("-")[0], row.machine[:4]) for row in rows} == {
        ("torchtitan", "h100"),
        ("torchtitan", "h200"),
    }


def test_pictures_name_what_they_show(found, tmp_path):
    layout, best = found[0]
    steps = {"one": best, "two": found[1][1]}
    named = f"{best.seconds * 1e5 / 86400:.0f} days, the fastest: {layout.pp} stages"
    other, marks = ("another", found[-1][1]), {"at the peak": 41.0}
    cloud = pictures.cloud(found, "A cloud", other, num_steps=1e5, marks=marks)
    shown = {
        "cloud": (cloud, named),
        "cloud's mark": (cloud, "at the peak: 41 days"),
        "cloud's other": (cloud, f"{found[-1][1].seconds * 1e5 / 86400:.0f} days, another"),
        "memory": (pictures.memory_bars(steps, "Memory", 66), f"{best.num_bytes / 2**30:,.0f} GiB"),
        "ratios": (pictures.ratio_dots({"some": [0.9, 1.1]}, "Ratios"), "2 runs, 10.0%"),
        "days": (
            pictures.waterfall({"a": 40, "b": 2}, {"b": "in all"}, "Days"),
            "+2, so 42 in all",
        ),
    }
    for name, (figure, text) in shown.items():
        texts = [each.get_text() for axes in figure.axes for each in axes.texts]
        texts += [each.get_text() for axes in figure.axes for each in axes.get_yticklabels()]
        assert any(text in each for each in texts), (name, texts)
        save_svg(figure, tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size < 400_000, name


# Sentences of the lecture that no cell computes


TRILLION = named("gpt-1t"), "a100-80gb"
SOFTWARE_OF_2022 = {"software": "megatron-2022"}
TIE = 0.03  # of a step: two layouts that are nearer are equally fast
WITHIN = {"memory": 66 * pictures.GIB, **SOFTWARE_OF_2022}
SIXTEEN = Layout(128, 8, 16, chunks=8, zero=1, sequence=True, recompute="selective")


@pytest.fixture(scope="module")
def trillion():
    """As its first cell searches: with 66 GiB."""
    return search(*TRILLION, 16_384, 4096, **WITHIN)


def test_it_takes_as_many_days_as_the_first_heading_says(trillion):
    steps = 3e12 / (4096 * 2048)
    deep = Layout(32, 8, 64, sequence=True, recompute="selective")
    old = step(*TRILLION[:1], deep, TRILLION[1], 4096, **SOFTWARE_OF_2022)
    days = [steps * each.seconds / 86400 for each in (trillion[0][1], old)]
    assert [round(each) for each in days] == [79, 102]
    at_peak = 6 * TRILLION[0].parameters * 3e12 / 16_384 / 312e12 / 86400
    assert round(at_peak) == 41


def test_every_plan_for_the_trillion_can_be_run(trillion):
    runs = SOFTWARE["megatron-2022"].runs
    assert {runs.refuses(layout, 128) for layout, _ in trillion} == {""}


def test_gradients_of_the_one_pair_that_shows_them_take_longer_than_on_paper():
    one, (_, on_paper, ran) = lab.run_of("korth-530B-selective"), lab.never_fitted()[0]
    assert 0.5 < (on_paper - lab.predicted(one)) / (ran - one.seconds) < 0.6


def test_the_plan_is_the_one_that_the_lecture_explains(trillion):
    plan, best = trillion[0]
    assert lab.short(plan) == "dp 64 · tp 8 · pp 32 · v 4 · ZeRO 1 · sp · selective"
    sixteen = step(TRILLION[0], SIXTEEN, TRILLION[1], 4096, **SOFTWARE_OF_2022)
    parts = "idle", "gradients"
    saved, more = (abs(sixteen.parts[part] - best.parts[part]) for part in parts)
    assert (round(saved, 1), round(more, 1)) == (0.9, 1.2)
    assert abs(sixteen.seconds / best.seconds - 1) < 0.005
    assert sixteen.num_bytes > 66 * pictures.GIB > best.num_bytes
    assert beyond(plan, "megatron-2022") == ["dp 64", "chunks 4", "ZeRO 1"]
    ways = [replace(plan, pp=p, dp=2048 // p, chunks=128 // p) for p in (16, 32, 64)]
    assert {way.chunks * way.num_micro_batches(4096) for way in ways} == {256}


def test_a_plan_has_what_the_worst_peak_leaves():
    worst = min(on_paper / gib for gib, on_paper in lab.peaks())
    assert int(worst * 80) == 66


def test_no_constant_turned_by_its_own_doubt_makes_another_plan_win(trillion):
    for name, both in lab.doubts("megatron-2022").items():
        for by in both:
            within = {**WITHIN, "software": by}
            assert search(*TRILLION, 16_384, 4096, **within)[0][0] == trillion[0][0], name


def test_gradients_of_the_published_pair_cost_1_8_times_as_much_and_1_3_to_2_3():
    one, (_, eight, ran) = lab.run_of("korth-530B-selective"), lab.never_fitted()[0]
    on_paper, more = eight - lab.predicted(one), ran - one.seconds
    factors = [(more + by * one.seconds) / on_paper for by in (0, -0.01, 0.01)]
    assert [round(factor, 1) for factor in factors] == [1.8, 1.3, 2.3]
    assert one.layout.zero == 0


def test_the_steps_of_2021_have_replicas_and_ask_for_no_dearer_gradients():
    rows = [row for row in scored() if row.software == "megatron-2021"]
    assert (len(rows), min(row.layout.dp for row in rows)) == (10, 6)
    assert max(row.layout.dp for row in rows) == 32
    shares = {row: lab.met(row).parts["gradients"] / lab.met(row).seconds for row in rows}
    assert (round(min(shares.values()), 3), round(max(shares.values()), 2)) == (0.004, 0.05)
    for row in sorted(rows, key=shares.get)[-3:]:
        assert lab.predicted(row) > row.seconds


def test_the_step_of_2021_takes_as_many_days_here_as_the_lecture_says():
    assert round(84 * 3e12 / 450e9 * 3072 / 16_384) == 105


def test_tp_within_a_host_is_a_good_rule_for_large_batches_alone(trillion):
    def behind(found):
        return next(each.seconds for at, each in found if at.tp <= 8) / found[0][1].seconds - 1

    for num_sequences in (2048, 16_384):
        assert behind(search(*TRILLION, 16_384, num_sequences, **WITHIN)) < TIE
    assert behind(trillion) == 0
    small = search(*TRILLION, 16_384, 512, **WITHIN)
    assert 1.5 < behind(small) < 1.7
    best, ruled = small[0][0], next(at for at, _ in small if at.tp <= 8)
    assert (best.tp, best.pp, best.chunks, best.num_micro_batches(512)) == (32, 16, 8, 16)
    assert ruled.num_micro_batches(512) * 4 == ruled.pp
    assert ruled.chunks == 1
    assert "tp 32" in beyond(best, "megatron-2022")


def test_no_published_step_of_megatron_on_a100_idles_longer_than_the_chosen_layout():
    def bubble(at, num_sequences):
        return (at.pp - 1) / (at.chunks * num_sequences // (at.dp * at.rows))

    rows = [row for row in scored() if row.software.startswith("megatron-20")]
    most = max(bubble(row.layout, row.num_sequences) for row in rows)
    assert bubble(Layout(64, 8, 32, chunks=4), 4096) == pytest.approx(31 / 256)
    assert 0.12 < 31 / 256 < most < 0.125
    assert bubble(Layout(32, 8, 64), 4096) == pytest.approx(63 / 128)
    of_2022 = [row for row in rows if row.software == "megatron-2022"]
    assert {row.layout.dp for row in of_2022} == {1}


def test_idle_time_is_an_eighth_of_the_work_on_512_gpus_and_half_in_32_replicas():
    """And 16 stages without chunks gain no time: the bubble is as large."""
    way = {"sequence": True, "recompute": "selective"}
    shares = []
    for layout, sequences in (
        (Layout(1, 8, 64, **way), 512),
        (Layout(32, 8, 64, **way), 4096),
        (Layout(128, 8, 16, zero=1, **way), 4096),
    ):
        parts = step(*TRILLION[:1], layout, TRILLION[1], sequences, **SOFTWARE_OF_2022).parts
        work = sum(parts[name] for name in ("products", "attention", "small", "again", "tp"))
        shares.append(parts["idle"] / work)
    assert shares == pytest.approx([63 / 512, 63 / 128, 15 / 32], rel=0.01)


def test_sequence_parallelism_selective_recomputation_and_zero_save_what_the_lecture_says():
    deep = Layout(dp=32, tp=8, pp=64)
    ways = [deep, replace(deep, sequence=True)]
    ways.append(replace(ways[-1], recompute="selective"))
    ways.append(replace(ways[-1], zero=1))
    asked = {"machine": "a100-80gb", "num_sequences": 4096, **SOFTWARE_OF_2022}
    held = [step(TRILLION[0], way, **asked).num_bytes / pictures.GIB for way in ways]
    saved = [before - after for before, after in itertools.pairwise(held)]
    assert 50 <= round(saved[0]) < 70
    assert 50 <= round(saved[1]) < 60
    assert 20 < saved[2] < 30


def test_those_that_are_far_too_fast_on_paper_are_nearly_full():
    for row in sorted(scored(), key=lambda row: lab.predicted(row) / row.seconds)[:4]:
        each = lab.met(row)
        assert each.seconds / row.seconds < 0.93, row.name
        assert each.num_bytes > 0.95 * each.limit, row.name


def test_as_many_rows_are_left_out_as_the_lecture_says():
    reasons = [row.left_out for row in published() if row.left_out]
    assert reasons.count("experts") == 11
    assert len(reasons) == 14
    (far,) = (row for row in published() if row.left_out == "far off its neighbours")
    near = lab.run_of("mpt-L271")
    assert (far.model, far.layout.rows) == (near.model, near.layout.rows)
    assert (far.layout.dp, near.layout.dp) == (32, 64)
    assert round(far.seconds / near.seconds, 2) == 1.22


def test_nearly_all_pairs_are_ranked_right_and_those_that_are_no_tie_all():
    found = lab.pairs()
    wrong = [ran for ran, on_paper in found if (ran < 1) != (on_paper < 1)]
    assert len(wrong) <= 0.04 * len(found)
    assert all(abs(ran - 1) < TIE for ran in wrong)


def test_a_plan_for_newer_gpus_gains_more_than_a_tie_and_is_extrapolated():
    run = lab.run_of("mb-25.11-llama3-70b-pretrain-L590")
    asked = run.model, run.machine, run.layout.num_ranks, run.num_sequences
    given = {"software": run.software, "precision": run.precision, "memory": 66 * 2**30}
    best, found = search(*asked, **given)[0]
    assert 0.03 < run.seconds / found.seconds - 1 < 0.07
    assert 0.03 < lab.predicted(run) / found.seconds - 1 < 0.06
    assert beyond(best, run.software) == ["cp 2", "chunks 10"]


# Another planner


def test_another_planners_seconds_are_kept_with_where_they_come_from():
    kept = lab.peer.kept()
    assert re.fullmatch(r"llm-analysis \d+\.\d+\.\d+", kept["peer"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["written"])
    assert (COURSE / kept["command"].split()[1]).is_file()
    assert set(kept["seconds"]) == {row.name for row in lab.peer.rows()}
    assert set(kept["shares"]) == {lab.peer.family(row) for row in lab.peer.rows()}
    assert len(kept["seconds"]) == sum(row.layout.cp == 1 for row in scored())


def test_both_planners_are_scored_on_the_same_rows():
    found, rows = lab.beside_peer(), lab.peer.rows()
    theirs = [lab.peer.kept()["seconds"][row.name] / row.seconds for row in rows]
    count, ours, other = found.pop("all")
    assert count == len(rows) == sum(count for count, _, _ in found.values())
    assert other == pytest.approx((lab.missed(theirs), max(abs(each - 1) for each in theirs)))
    assert ours[0] == pytest.approx(lab.missed([lab.predicted(row) / row.seconds for row in rows]))


@pytest.mark.skipif(find_spec("llm_analysis") is None, reason="llm-analysis is not installed")
def test_what_is_kept_is_what_the_other_planner_says():
    from benchmarks.planner_peer import theirs

    kept = lab.peer.kept()
    for row in lab.peer.rows()[::10]:
        share = kept["shares"][lab.peer.family(row)]
        assert theirs(row, share) == pytest.approx(kept["seconds"][row.name], rel=1e-5), row.name
