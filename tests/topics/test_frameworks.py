"""One tiny GPT under every framework: one device's losses; what each refuses, what none says."""

import functools
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import torch

from byhand.communication_cost.model import AlphaBeta
from byhand.costs import Layout, Machine, held
from byhand.costs import seconds as costs_seconds
from byhand.costs.counting import owned, parameters
from byhand.frameworks import by_jax, by_others, by_torch, capstone, lab, transformer
from byhand.frameworks.by_others import missing
from byhand.frameworks.configurations import CONFIGURATIONS
from byhand.frameworks.lab import beside_clock, beside_jax
from byhand.frameworks.lab.stored import jax_or_stored, stored
from byhand.frameworks.refusals import REFUSALS
from byhand.frameworks.which import JOBS, TOOLS, Job, ruled_out, tool_for
from byhand.model.gpt import costs_of, gpt_layers, next_token_loss, random_gpt
from byhand.model.mlp import MLP, mean_squared_error
from byhand.model.text import text_batches

SIZES = {"num_tokens": 128, "num_positions": 16, "num_features": 32, "num_heads": 8}
WEIGHTS = random_gpt(**SIZES, num_blocks=4)
BATCHES = text_batches(num_steps=20, num_sequences=16, num_positions=16)
TOLERANCE = 2e-6  # of a loss near 4, in float32: eight of its last digits
OTHERS = [
    pytest.param(name, marks=pytest.mark.skipif(name in lab.absent(), reason=str(lab.absent())))
    for name in lab.OTHERS
]


@functools.cache
def trained():
    """Every way that is installed, in one launch."""
    return lab.train_all({**lab.TORCH, **lab.others(), **lab.OURS}, WEIGHTS, BATCHES)


@functools.cache
def alone():
    return lab.losses_alone(WEIGHTS, BATCHES)


def test_the_module_has_the_layers_outputs_and_gradients():
    weights = random_gpt(**SIZES, num_blocks=2, dtype=torch.float64)
    tokens, following = BATCHES[0]
    layers, module = MLP(gpt_layers(weights)), transformer(weights)
    logits, saved = layers.forward(tokens)
    loss, grad = next_token_loss(logits, following)
    layers.backward_first(grad, saved)
    theirs = by_torch.next_token_loss(module(tokens), following)
    theirs.backward()
    torch.testing.assert_close(theirs, loss, rtol=0, atol=1e-12)
    grads = {"0.table": layers.layers[0].grad_table}
    q_gain, k_gain = layers.layers[1].layers[2].grad_gain.squeeze(1)
    grads |= {"1.attention.q_norm.weight": q_gain, "1.attention.k_norm.weight": k_gain}
    for name, ours in grads.items():
        grad = module.get_parameter(name).grad
        torch.testing.assert_close(grad, ours, rtol=0, atol=1e-12, msg=name)


@pytest.mark.parametrize("name", [*lab.TORCH, *OTHERS, *lab.OURS])
def test_twenty_steps_on_two_ranks_have_one_devices_losses(name):
    worst = max(lab.away(alone(), trained()[name].losses))
    assert worst < TOLERANCE, f"{name}: a loss is {worst:.1e} from one device's"


def test_the_losses_fall():
    assert alone()[-1] < alone()[0] - 1


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("DDP", {"all_reduce": 1}),
        ("FSDP2", {"all_gather": 2 * 4 + 1, "reduce_scatter": 4 + 1}),
        ("DTensor", {"all_reduce": 4 * (2 + 1 + 3) + 8}),  # q, k and v each sum grad_x
        ("pipelining", {"send": 4, "all_reduce": 1}),
        ("ours, data parallel", {"all_reduce": 1}),
        ("ours, tensor parallel", {"all_reduce": 4 * (2 + 2) + 3, "broadcast": 2}),
        ("ours, pipeline", {"send": 4, "all_reduce": 3}),
    ],
)
def test_a_step_makes_the_calls_that_the_lecture_explains(name, calls):
    assert trained()[name].calls == calls


def test_bytes_are_those_of_the_formulas():
    weights = sum(p.nbytes for p in transformer(WEIGHTS).parameters())
    sent = {name: found.sent_bytes / (weights / 2) for name, found in trained().items()}
    for name, halves in (("DDP", 2), ("ours, data parallel", 2), ("ZeroRedundancyOptimizer", 3)):
        assert sent[name] == pytest.approx(halves, rel=0.01), name
    # An optimizer's shard after a reduce-scatter: 2 halves; FSDP2 gathers the root once.
    assert sent["ours, ZeRO-1"] == pytest.approx(2, rel=0.01)
    assert sent["ours, ZeRO-3"] == pytest.approx(3, rel=0.01)
    assert 2.8 < sent["FSDP2"] < sent["ours, ZeRO-3"]


def test_a_shard_of_everything_holds_less_than_a_replica():
    held = {name: found.peak_bytes for name, found in trained().items()}
    assert held["FSDP2"] < held["ZeroRedundancyOptimizer"] < held["DDP"]
    assert held["ours, ZeRO-3"] < held["ours, ZeRO-1"] < held["ours, data parallel"]


def test_lines_changed_are_those_that_one_device_has_not():
    assert lab.lines_changed(by_torch.alone) == []
    assert len(lab.lines_changed(by_torch.ddp)) == 2
    assert len(lab.lines_changed(by_torch.fsdp2)) == 4


def test_a_framework_that_is_not_there_says_how_to_get_it():
    sentence = "no_such_framework is not installed: pip install 'byhand[frameworks]'"
    assert missing("no_such_framework") == sentence
    assert missing("torch") is None


def test_each_refuses_in_a_sentence():
    found = lab.refused(WEIGHTS, BATCHES)
    assert set(found) == set(REFUSALS) - set(lab.absent())
    quiet = [name for name, sentence in found.items() if "Error: " not in sentence]
    assert not quiet, f"no error from {quiet}"
    assert "1 head cannot be split over 2 ranks" in found["ours"]


def test_a_silence_is_told_by_the_loss_alone():
    found = {name: max(lab.away(*both)) for name, both in lab.silent(WEIGHTS, BATCHES).items()}
    assert found.pop("ours: unequal rows") < TOLERANCE
    for name, worst in found.items():
        assert worst > 10 * TOLERANCE, name
    by_harm = "DTensor: gains", "DDP: unequal rows", "pipelining: table"  # as the lecture says
    assert tuple(sorted(found, key=found.get)) == by_harm


def test_copies_that_should_be_one_are_apart_where_a_sum_is_missing_and_not_for_unequal_rows():
    found = lab.copies_apart(WEIGHTS, BATCHES[:3], right=False)
    assert found.pop("DDP: unequal rows") == 0
    assert min(found.values()) > 1e-4
    assert set(lab.copies_apart(WEIGHTS, BATCHES[:3], right=True).values()) == {0}


def test_ways_take_turns_and_each_has_its_steps_seconds():
    ways = {"DDP": by_torch.ddp, "FSDP2": by_torch.fsdp2, "DTensor": by_torch.tensor_parallel}
    found = lab.step_seconds(ways, WEIGHTS, BATCHES[:4])
    assert list(found) == list(ways)
    assert min(found.values()) > 0
    row = lab.whole_table({name: trained()[name] for name in found}, found).splitlines()[1].split()
    ddp = trained()["DDP"]
    assert row[:4] == ["DDP", "2", "1", f"{ddp.sent_bytes / 1e3:.0f}"]


@pytest.mark.parametrize(
    ("more", "hook", "calls"),
    [
        ({}, False, 24),  # the gains are not summed
        (by_torch.NORMS, False, 24 + 3 * 8),  # AdamW asks for a partial gradient three times
    ],
)
def test_the_plan_decides_what_dtensor_sums(more, hook, calls):
    way = functools.partial(
        by_torch.tensor_parallel, plan={**by_torch.PLAN, **more}, sum_gains=hook
    )
    found = lab.train_all({"DTensor": way}, WEIGHTS, BATCHES[:4])["DTensor"]
    assert found.calls == {"all_reduce": calls}
    right = max(lab.away(alone()[:4], found.losses)) < TOLERANCE
    assert right == (bool(more) or hook)


def test_two_axes_at_once_make_the_calls_of_each():
    found = lab.train_all({"2 x 2": by_torch.two_axes}, WEIGHTS, BATCHES[:4], 4)["2 x 2"]
    assert max(lab.away(alone()[:4], found.losses)) < TOLERANCE
    fsdp2 = {"all_gather": 2 * 4 + 1, "reduce_scatter": 4 + 1}
    tokens = {"all_gather": 4 * 4 + 2, "reduce_scatter": 4 * 4}  # 2: the table's, and the head's
    norms = 2 * (2 * 4 + 1) + 2 * 4  # a gain and a bias of each, and the two gains of heads
    sums = {op: fsdp2[op] + tokens[op] for op in fsdp2}
    assert found.calls == {**sums, "all_reduce": norms}


def test_a_checkpoint_of_two_tables_as_one_forgets_and_of_one_does_not():
    later = text_batches(num_steps=22, num_sequences=16, num_positions=16)[20:]
    as_trained, loaded = lab.saved(WEIGHTS, BATCHES, later, tie=True)
    assert as_trained == loaded
    parted, forgets = lab.saved(WEIGHTS, BATCHES, later, tie=False)
    assert abs(parted - loaded) < 0.1
    assert forgets - loaded > 0.5


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_stored_of_the_others_is_what_they_do(name):
    kept, found = stored()["ways"][name], trained()[name]
    assert kept["calls"] == dict(found.calls)
    assert kept["sent_bytes"] == found.sent_bytes


def test_what_is_stored_says_how_it_came_to_be():
    kept = stored()
    assert set(kept["ways"]) == set(lab.OTHERS)
    assert kept["command"] == "python -m byhand.frameworks.lab.stored"
    assert all(one["furthest"] < TOLERANCE and one["version"] for one in kept["ways"].values())
    assert all(far > 10 * TOLERANCE for far in kept["silences"].values())


def test_a_tool_is_chosen_by_what_fits_by_what_is_split_and_by_the_table_on_two_stages():
    assert [tool_for(job) for job in JOBS.values()] == [
        "DDP",
        "FSDP2",
        "FSDP2 + DTensor",
        "Megatron-core",
    ]
    for change, tool in (
        ({"tied": False}, "torchtitan"),
        ({"pp": 1}, "FSDP2 + DTensor"),
        ({"tp": 1, "pp": 1}, "FSDP2"),
    ):
        assert tool_for(replace(JOBS["176 B"], **change)) == tool, change
    with pytest.raises(
        ValueError, match=r"70 billion parameters on 8 GPUs of 80 GB.* DDP \(1120 GB"
    ):
        tool_for(Job(70e9, 8))
    for name, run in (("405 B", "torchtitan 405B"), ("176 B", "BLOOM 176B")):
        job, layout = JOBS[name], CONFIGURATIONS[run].layout
        assert (job.gpus, job.tp, job.pp) == (layout.num_ranks, layout.tp, layout.pp)


def test_a_tool_is_ruled_out_with_the_reason():
    out = [ruled_out(tool, JOBS["405 B"]) for tool in TOOLS.values()]
    assert out == ["tp", "tp", "", "146 GB", "", "240 GB"]
    out = [ruled_out(tool, JOBS["20 B"]) for tool in TOOLS.values()]
    assert out == ["320 GB", "", "", "", "", "84 GB"]
    assert ruled_out(TOOLS["torchtitan"], JOBS["176 B"]) == "table"
    assert ruled_out(TOOLS["DeepSpeed"], JOBS["176 B"]) == "tp in pp"
    assert ruled_out(TOOLS["FSDP2"], replace(JOBS["176 B"], tp=1)) == "pp"
    assert ruled_out(TOOLS["FSDP2 + DTensor"], JOBS["176 B"]) == "pp"
    assert ruled_out(TOOLS["FSDP2"], Job(405e9, 64)) == "101 GB"


# JAX

JAX = pytest.mark.skipif(missing("jax") is not None, reason=str(missing("jax")))


@functools.cache
def compiled():
    return beside_jax.all_ways(num_devices=4)


@JAX
def test_jax_has_our_loss_and_gradients_and_one_devices():
    weights, x, target = beside_jax.case()
    model, (found, _) = MLP.from_weights(weights), compiled()
    y, saved = model.forward(x)
    loss, grad_y = mean_squared_error(y, target)
    alone = [model.backward(grad_y, saved), *model.gradients()]
    for name, one in found.items():
        assert one.loss == pytest.approx(float(loss), rel=1e-6), name
        for ours, theirs in zip(alone, one.gradients, strict=True):
            torch.testing.assert_close(theirs, ours, rtol=1e-5, atol=1e-6, msg=name)


@JAX
def test_the_compiler_writes_the_calls_that_one_wrote_by_hand():
    """One sum of y [16, 8] forward, and one of grad_x backward; of gradients where rows are."""
    found, _ = compiled()
    y, parameters = 4 * 16 * 8, 4 * (2 * 32 * 8 + 32 + 8)
    for name in (beside_jax.OURS, "shard_map", "jit, weights split"):
        assert found[name].forward == [("all_reduce", y)], name
        assert found[name].step == 2 * [("all_reduce", y)], name
    assert found["jit, rows split"].forward == [("all_reduce", 4)]
    assert found["jit, rows split"].step == [("all_reduce", 4 + parameters)]


@JAX
def test_shard_map_refuses_a_program_whose_sum_is_left_out():
    assert "require replication" in compiled()[1]


@JAX
def test_what_is_stored_of_jax_is_what_it_does_and_no_jax_is_imported_here():
    told, where = jax_or_stored()
    assert where == f"Run here, jax {told['version']}"
    assert "jax" not in sys.modules
    told, kept = json.loads(json.dumps(told)), stored()["jax"]
    assert told["calls"] == kept["calls"]
    assert max(told["furthest"], kept["furthest"]) < TOLERANCE


def test_where_jax_is_absent_the_stored_run_is_shown_and_the_reason(monkeypatch):
    monkeypatch.setattr(by_others, "missing", lambda package: f"{package} is not installed")
    told, where = jax_or_stored()
    assert told == stored()["jax"]
    assert where.startswith("jax is not installed\nStored on 20")


def test_a_compiled_programs_calls_are_read_from_its_text():
    text = """
      %a.5 = (f32[], f32[32,8]{1,0}) all-reduce(%x, %y), channel_id=1, to_apply=%add
      %fused = f32[16,8]{1,0} fusion(%all-reduce.1), calls=%all-gather.clone
      ROOT %b = f32[16,8]{1,0} all-gather-start(%p), dimensions={0}
    """
    assert by_jax.calls(text) == [("all_reduce", 4 + 4 * 256), ("all_gather", 512)]


# Real configurations


@pytest.mark.parametrize(
    ("name", "billions", "ranks"),
    [
        ("BLOOM 176B", 176.2, 384),  # the model's card says 176,247,271,424
        ("Llama 3 405B", 405, 16384),
        ("torchtitan 405B", 405, 128),
        ("Mixtral 8x7B", 46.7, 32),
        ("DeepSeek-V3", 671, 2048),
    ],
)
def test_a_configuration_has_its_models_parameters_and_its_ranks(name, billions, ranks):
    found = CONFIGURATIONS[name]
    assert found.model.parameters / 1e9 == pytest.approx(billions, rel=0.003)
    assert found.layout.num_ranks == ranks
    assert found.layout.num_micro_batches(found.num_sequences) >= 1
    assert sum(found.held().values()) < 80e9


def test_light_ends_take_a_block_off_the_first_and_the_last_stage():
    for name, ends, between in (("BLOOM 176B", 5, 6), ("Llama 3 405B", 7, 8)):
        one = CONFIGURATIONS[name]
        stages = [owned(one.model, one.layout, stage) for stage in range(one.layout.pp)]
        blocks = [sum(part.half for part in parts) / 2 for parts in stages]
        assert blocks == [ends, *[between] * (one.layout.pp - 2), ends], name
    bloom = CONFIGURATIONS["BLOOM 176B"]
    assert parameters(bloom.model, bloom.layout)[0] / 1e9 == pytest.approx(4.0, abs=0.02)
    assert bloom.held()["optimizer"] / 1e9 == pytest.approx(6, abs=0.05)


def test_llama_holds_as_much_in_chunks_for_all_its_micro_batches_are_in_flight():
    llama = CONFIGURATIONS["Llama 3 405B"]
    cut = [replace(llama, layout=replace(llama.layout, chunks=v)).held() for v in (1, 2, 4)]
    assert cut[1] == cut[2] == pytest.approx(cut[0])


def test_llama_fits_only_where_its_tp_ranks_share_tokens():
    found = CONFIGURATIONS["Llama 3 405B"]
    whole = replace(found, layout=replace(found.layout, sequence=False))
    assert sum(whole.held().values()) > 2 * sum(found.held().values())


def test_what_ran_and_what_the_planner_says_differ_by_what_the_lecture_says():
    bloom, llama = CONFIGURATIONS["BLOOM 176B"], CONFIGURATIONS["Llama 3 405B"]
    assert bloom.ran.seconds / bloom.step().seconds - 1 == pytest.approx(0.15, abs=0.01)
    plain, cut = llama.step(), llama.step(chunks=8)
    assert plain.parts["idle"] / plain.seconds > 0.4
    assert plain.mfu < 0.26
    assert abs(cut.mfu - llama.ran.mfu) < 0.03
    hours = 180e3 * 3600 / 2048  # seconds of the cluster for 10¹² tokens
    deepseek = CONFIGURATIONS["DeepSeek-V3"]
    tokens = deepseek.num_sequences * deepseek.model.num_positions
    assert deepseek.ran.seconds == pytest.approx(hours / 1e12 * tokens)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_says_its_seconds_or_why_not(name):
    one, told = CONFIGURATIONS[name], lab.seconds_of(name)
    if one.ran.machine is None:
        assert told == f"not judged: {one.ran.unjudged}"
    else:
        assert told.strip().startswith(f"{one.step().seconds:.1f} s")
        assert one.step().fits
    assert bool(one.ran.told) == bool(one.ran.seconds or one.ran.mfu), "a number has its source"


def test_a_run_is_set_beside_what_the_planner_says():
    assert lab.seconds_of("BLOOM 176B").split()[2:] == ["105.0", "s", "+15%"]
    ran, paper = CONFIGURATIONS["Llama 3 405B"].ran, CONFIGURATIONS["Llama 3 405B"].step(8)
    published, off = lab.seconds_of("Llama 3 405B", 8).split()[2::2]
    assert float(published) == pytest.approx(paper.seconds * paper.mfu / ran.mfu, abs=0.06)
    assert off == f"{paper.mfu / ran.mfu - 1:+.0%}"


# By layers


@functools.cache
def trained_by_layers(world_size):
    return lab.train_all(lab.BY_LAYERS, WEIGHTS, BATCHES, world_size)


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("name", lab.BY_LAYERS)
def test_a_model_cut_by_its_layers_has_one_devices_losses(name, world_size):
    found = trained_by_layers(world_size)[name]
    assert max(lab.away(alone(), found.losses)) < TOLERANCE
    assert found.calls["send"] == (1 if "naive" in name else 4)


@pytest.mark.parametrize("whose", ["torch", "ours"])
def test_1f1b_holds_less_than_gpipe_and_that_no_more_than_the_whole_batch_at_once(whose):
    held = {name: found.peak_bytes for name, found in trained_by_layers(2).items()}
    sent = {found.sent_bytes for name, found in trained_by_layers(2).items() if whose in name}
    assert held[f"{whose}, 1F1B"] < 0.8 * held[f"{whose}, GPipe"]
    assert held[f"{whose}, GPipe"] <= held[f"{whose}, naive"]
    assert len(sent) == 1


def test_bert_on_paper_gains_nothing_naively_and_half_its_time_in_micro_batches():
    one, naive, cut = lab.bert(1, 1), lab.bert(4, 1), lab.bert(4, 8)
    assert naive.seconds == pytest.approx(one.seconds, rel=0.03)
    assert 2 < one.seconds / cut.seconds < 2.3
    assert one.memory["activations"] == pytest.approx(4 * naive.memory["activations"], rel=0.01)
    assert naive.memory["activations"] == pytest.approx(2 * cut.memory["activations"], rel=0.01)
    assert lab.BERT_LARGE.parameters / 1e6 == pytest.approx(340, rel=0.02)  # as Devlin et al. say


# The capstone


def make_idle_step(weights, layout, num_sequences):
    """A step that sends one number to everybody, and learns nothing."""
    return lambda tokens, following: torch.distributed.all_reduce(torch.ones(1))


def beside_the_clock():
    layout, machine = Layout(dp=2), Machine(AlphaBeta(1e-4, 0), 1e7, 1, flops=1e9)
    state = {"weights": 4, "gradients": 4, "optimizer": 4}
    on = layout, costs_of(WEIGHTS), machine, state
    return beside_clock.beside_the_clock(make_idle_step, WEIGHTS, BATCHES[:3], *on)


@pytest.mark.network
def test_a_step_is_set_beside_the_clock_on_slow_links_and_without(capsys):
    figure = beside_the_clock()
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["slow links", "no limit"]
    assert capsys.readouterr().out.count("modelled") == 2


def test_where_no_virtual_network_can_be_laid_a_sentence_says_so(capsys, monkeypatch):
    monkeypatch.setattr(beside_clock, "why_no_network", lambda: "the program tc is missing")
    figure = beside_the_clock()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["no limit"]
    assert "Not measured on slow links: the program tc is missing" in capsys.readouterr().out


@functools.cache
def exercise_18():
    """Its cells' texts by id, and what the first two define."""
    path = Path(__file__).parents[2] / "solutions" / "18_frameworks" / "frameworks.ipynb"
    texts = {cell["id"]: cell["source"] for cell in nbformat.read(path, as_version=4)["cells"]}
    names = {}
    for cell in ("imports", "fastest-layout"):
        exec(texts[cell], names)
    return texts, names


def fewest_seconds(case):
    """Of the fastest layout that the solution finds, or None."""
    names = exercise_18()[1]
    try:
        layout = names["fastest_layout"](*case)
    except ValueError:
        return None
    machine = names["machine_of"](*case[3:])
    return capstone.price(names["MODEL"], layout, machine, case[1], names["STATE"])[0]


def test_the_seconds_that_exercise_18_stores_are_those_of_the_fastest_layouts():
    texts, names = exercise_18()
    stored = re.findall(r"check_choice\((.*), fewest=(.*)\)", texts["test-layout"])
    assert len(stored) > 10
    run = re.search(r"takes (\S+) s;", texts["test-run"]).group(1)
    on = "16, NUM_SEQUENCES, MEMORY, RATE, RANKS_PER_HOST"
    for case, seconds in [*stored, (on, run)]:
        expected = fewest_seconds(eval(f"({case})", names))
        assert eval(seconds) == (expected and pytest.approx(expected, rel=1e-3)), case


def test_a_price_is_of_the_fullest_stage_and_an_impossible_layout_has_none():
    model, state = costs_of(WEIGHTS), {"weights": 4, "gradients": 4, "optimizer": 4}
    on, machine = Layout(pp=4), Machine(AlphaBeta(1e-4, 0), 1e7, 1, flops=1e9)
    took, most = capstone.price(model, on, machine, 4, state)
    stages = [sum(held(model, on, 4, stage, state=state).values()) for stage in range(4)]
    assert most == max(stages) > min(stages)
    assert took == sum(costs_seconds(model, on, machine, 4, state).values())
    with pytest.raises(ValueError, match="must be a multiple of 3"):
        capstone.price(model, Layout(rows=3), machine, 4, state)
