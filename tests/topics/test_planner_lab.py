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
from byhand.planner import MACHINES, SOFTWARE, lab, search, step
from byhand.planner.explain import runner_up
from byhand.planner.lab import pictures
from byhand.planner.models import named
from byhand.planner.published import published, scored

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


def test_no_step_is_faster_than_its_bound(found):
    assert all(0 < lab.at_least(each) <= each.seconds for _, each in found)


def test_the_bound_holds_where_messages_are_free():
    free = replace(MACHINES["h100-80gb"], inside=1e30, between=1e30)
    each = step(MODEL, Layout(2, 2, 4, rows=2), free, 32)
    rest = sum(each.parts[part] for part in ("pp", "gradients", "optimizer", "other", "tp"))
    assert lab.at_least(each) == pytest.approx(each.seconds - rest)


def test_regret_is_none_of_no_layout_and_0_of_the_best(found):
    best = found[0][0]
    assert lab.regret(found, lambda at: at == best) == 0
    assert lab.regret(found, lambda at: at.tp == 3) is None
    last = found[-1]
    slow = lab.regret(found, lambda at: at == last[0])
    assert slow == pytest.approx(last[1].seconds / found[0][1].seconds - 1)
    assert slow > 0


def test_as_many_layouts_divide_as_a_search_without_a_limit_of_memory_finds():
    every = search(*ASKED, software="megatron-2022", memory=1e30)
    assert lab.num_layouts(*ASKED, "megatron-2022") == len(every)


def test_every_scored_row_is_a_ratio_and_every_other_has_its_reason():
    ratios = lab.ratios()
    assert sum(map(len, ratios.values())) == len(scored())
    assert sum(lab.left_out().values()) == len(published()) - len(scored())


def test_a_neighbour_is_other_software_that_misses_by_more():
    """What the lecture says of software that nobody has fitted."""
    found = lab.unseen()
    assert set(found) == set(SOFTWARE)
    for name, (count, own, other) in found.items():
        assert lab.NEIGHBOURS[name] != name
        assert count > 0
        assert own < other < 0.15, name


def test_the_farthest_rows_are_in_order():
    far = [abs(error) for _, error in lab.farthest(8)]
    assert far == sorted(far, reverse=True)
    missed = [abs(lab.predicted(row) / row.seconds - 1) for row in scored()]
    assert far[0] == pytest.approx(max(missed))


def test_a_host_with_one_card_is_too_slow_for_what_was_published():
    row = lab.run_of("mpt-L85")
    one = lab.predicted(row, between=MACHINES[row.machine].between / 8)
    assert one / row.seconds > 1.5
    assert lab.predicted(row) / row.seconds == pytest.approx(1, abs=0.05)


def test_the_tool_is_wrapped_and_says_one_layout():
    told = lab.tool("llama3-8b --ranks 16 --batch 32")
    assert max(map(len, told.splitlines())) <= 88
    assert told.count("MFU") == 1
    assert "\n1. dp " in told
    assert "Megatron-LM: --tensor" in told
    assert "torchtitan: --parallelism" in told


def test_pictures_name_what_they_show(found, tmp_path):
    layout, best = found[0]
    steps = {"one": best, "two": found[1][1]}
    shown = {
        "cloud": (pictures.cloud(found, "A cloud"), f"{best.seconds:.1f} s: dp {layout.dp}"),
        "steps": (pictures.step_bars(steps, "Steps", {"one": 2.0}), "2.0 s ran"),
        "memory": (pictures.memory_bars(steps, "Memory"), f"{best.num_bytes / 2**30:,.0f} GiB"),
        "ratios": (pictures.ratio_dots({"some": [0.9, 1.1]}, "Ratios"), "2 runs, 10.0%"),
    }
    for name, (figure, text) in shown.items():
        texts = [each.get_text() for axes in figure.axes for each in axes.texts]
        assert any(text in each for each in texts), (name, texts)
        save_svg(figure, tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size < 400_000, name


# Sentences of the lecture that no cell computes


TRILLION = named("gpt-1t"), "a100-80gb"


@pytest.fixture(scope="module")
def trillion():
    """As its first cell searches."""
    return search(*TRILLION, 16_384, 3072, software="megatron-2022")


def test_the_winner_and_the_second_are_those_that_the_lecture_explains(trillion):
    best, second = trillion[0], runner_up(trillion)
    assert lab.short(best[0]).startswith("dp 32 · tp 8 · pp 32 · cp 2 · rows 3")
    assert (second[0].tp, second[0].pp) == (16, 16)
    assert second[1].parts["idle"] < best[1].parts["idle"]
    assert second[1].parts["tp"] > best[1].parts["tp"]
    assert second[1].seconds / best[1].seconds - 1 < best[1].error


def test_interleaving_does_not_divide_where_cp_is_1_and_the_pipeline_is_the_winners(trillion):
    alike = [at for at, _ in trillion if (at.tp, at.pp, at.cp) == (8, 32, 1)]
    assert alike
    assert {at.chunks for at in alike} == {1}


def test_rules_lose_what_the_lecture_says(trillion):
    small = search(*TRILLION, 16_384, 512, software="megatron-2022")
    assert lab.regret(trillion, lambda at: at.tp <= 8) == 0
    assert 0.15 < lab.regret(small, lambda at: at.tp <= 8) < 0.25
    for found in (trillion, small):
        assert 0.2 < lab.regret(found, lambda at: at.recompute == "full") < 0.3
        assert lab.regret(found, lambda at: at.zero == 1) == 0
    asked = sum(lab.at_least(each) <= trillion[0][1].seconds for _, each in trillion)
    assert 0.2 < asked / len(trillion) < 0.3


def test_sequence_parallelism_selective_recomputation_and_zero_save_what_the_lecture_says():
    deep = Layout(dp=32, tp=8, pp=64)
    ways = [deep, replace(deep, sequence=True)]
    ways.append(replace(ways[-1], recompute="selective"))
    ways.append(replace(ways[-1], zero=1))
    asked = {"machine": "a100-80gb", "num_sequences": 3072, "software": "megatron-2022"}
    held = [step(TRILLION[0], way, **asked).num_bytes / pictures.GIB for way in ways]
    saved = [before - after for before, after in itertools.pairwise(held)]
    assert 50 <= round(saved[0]) < 70
    assert 50 <= round(saved[1]) < 60
    assert 20 < saved[2] < 30


def test_those_that_are_far_too_fast_on_paper_are_nearly_full():
    for name, error in lab.farthest(4):
        row = lab.run_of(name)
        asked = {"precision": row.precision, "software": row.software}
        each = step(row.model, row.layout, row.machine, row.num_sequences, **asked)
        assert error < 0
        assert each.num_bytes > 0.95 * each.limit, name


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
