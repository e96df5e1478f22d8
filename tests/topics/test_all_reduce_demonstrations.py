"""What lecture 03 shows: rounds drawn right, two hosts whose kernel agrees with the ledger."""

import pytest
from readable import assert_readable, words

from byhand import VirtualNetwork, all_reduce
from byhand.all_reduce import algorithms, rings, trees
from byhand.all_reduce.lab import (
    ALGORITHMS,
    all_reduce_explorer,
    by_name,
    compare_on_hosts,
    crossing,
    draw_round,
    shared_wire,
    watch_rounds,
)
from byhand.communication_cost import cost
from byhand.figures import round_picture


def test_a_round_shows_whose_terms_are_summed_and_what_each_link_has_carried():
    first, last = (words(watch_rounds("ring", 4).picture(number)) for number in (1, 6))
    assert "Ring, round 1 of 6: 0 of 16 shards are complete" in first
    assert (first.count("2"), first.count(".25")) == (4 + 3, 4)  # a column, a row, a shard sent
    assert "Ring, round 6 of 6: 16 of 16 shards are complete" in last
    assert (last.count("4"), last.count("1.5")) == (16, 4)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_links_carry_what_the_ledger_counted(name):
    rounds = watch_rounds(name, 4, 24)
    planned = rounds.sent(len(rounds.algorithm.rounds))
    counted = {}
    for event in rounds.ledger.select("send"):
        link = event.rank, event.peer
        counted[link] = counted.get(link, 0) + event.sent_bytes / (4 * 24)
    assert counted == pytest.approx(planned)
    assert rounds.busiest == max(4 * rounds.algorithm.sent_elements(rank, 24) for rank in range(4))


def test_a_picture_needs_no_run():
    figure = round_picture({(0, 0): {0}, (1, 0): {0, 1}}, [], {(0, 1): 1.0}, "A title")
    assert {"A title", "rank 0", "rank 1", "2"} <= set(words(figure))


def test_the_explorer_follows_the_algorithm_and_keeps_the_round_in_reach():
    choices, rounds, shown, sentence = all_reduce_explorer("ring", 4).children
    number, play = rounds.children
    assert (number.max, play.max) == (6, 6)
    assert "24 messages" in sentence.value
    number.value = 6
    before = shown.value
    choices.children[0].value = "recursive doubling"
    assert (number.max, number.value) == (2, 2)
    assert shown.value.startswith("<img ")
    assert shown.value != before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bucket", 4, 8, 1), "no algorithm is called 'bucket'"),
        (("ring", 9, 8, 1), "1 to 8 ranks can be shown, not 9"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw_round(*arguments)


@pytest.mark.network
def test_between_two_hosts_ledger_and_kernel_agree_and_two_levels_send_two_thirds():
    num_bytes = 1 << 21
    compared = compare_on_hosts(VirtualNetwork(2, 2, bytes_per_second=20e6), num_bytes)
    shares = {"ring": 1.5, "hierarchical": 1.0}
    for name, share in shares.items():
        for host in range(2):
            crossed = compared.crossed(name, host)
            assert crossed == share * num_bytes
            assert 1 < compared.runs[name].traffic.hosts[host].sent / crossed < 1.05
    assert f"{compared.seconds('ring'):.2f}" in str(compared)
    assert "hierarchical" in words(compared.picture())
    by_bytes = [float(line.split()[-2]) for line in str(compared).splitlines()[1:]]
    assert by_bytes == [pytest.approx(s * num_bytes / 20e6, abs=0.005) for s in shares.values()]


@pytest.mark.parametrize(("num_ranks", "per_host"), [(2, 1), (16, 8), (63, 9), (64, 8)])
def test_through_no_link_does_a_ring_send_more_than_two_tensors(num_ranks, per_host):
    for around in (algorithms.ring(num_ranks), algorithms.double_ring(num_ranks)):
        assert around.in_turn(per_host) == pytest.approx(2 * (num_ranks - 1) / num_ranks)


@pytest.mark.parametrize("name", ["tree", "recursive doubling", "halving-doubling", "ring"])
@pytest.mark.parametrize("num_ranks", [2, 4, 8, 63, 64])
def test_what_passes_the_fullest_links_is_what_lecture_04_prices(name, num_ranks):
    priced = cost(name.replace(" ", "_").replace("-", "_"), num_ranks, 1)
    algorithm = ALGORITHMS[name](num_ranks)
    assert (len(algorithm.rounds), algorithm.in_turn()) == pytest.approx(
        (priced.rounds, priced.num_bytes)
    )


def test_the_ranks_of_a_host_share_its_link():
    doubling = trees.recursive_doubling(64)
    assert doubling.in_turn(8) == 3 + 3 * 8
    assert doubling.in_turn(64) == doubling.in_turn() == 6
    far = trees.halving_doubling(64)
    assert far.in_turn(8) == 8 * 2 * (1 / 2 + 1 / 4 + 1 / 8) + 2 * (1 / 16 + 1 / 32 + 1 / 64)


@pytest.mark.parametrize("num_ranks", [1, 3, 8, 64])
def test_with_the_near_partner_first_halving_fills_links_as_little_as_two_levels(num_ranks):
    near = trees.halving_doubling(num_ranks, near_first=True)
    algorithms.check(near)
    assert near.in_turn() == trees.halving_doubling(num_ranks).in_turn()
    assert len(near.rounds) == len(trees.halving_doubling(num_ranks).rounds)
    if num_ranks == 64:
        assert near.in_turn(8) == algorithms.hierarchical(64, 8).in_turn(8) == 3.5


def test_what_leaves_a_host_are_the_shares_of_partners_on_other_hosts():
    near, far = (trees.halving_doubling(64, near_first=first) for first in (True, False))
    assert near.leaves_host(8) == algorithms.hierarchical(64, 8).leaves_host(8) == 1.75
    assert far.leaves_host(8) == 14
    assert algorithms.ring(64).leaves_host(8) == pytest.approx(2 * 63 / 64)
    assert near.leaves_host(64) == 0


def test_a_shared_wire_is_idle_while_the_ranks_of_a_host_add_up_among_themselves():
    near, far = (trees.halving_doubling(64, near_first=first) for first in (True, False))
    plans = {"ring": algorithms.ring(64), "near first": near, "far first": far}
    figure = shared_wire(plans, ranks_per_host=8, most=5)
    title = "The wire is busy: ring 100%, near first 50%, far first 98% of the time"
    assert {title, "1.97", "3.50", "14.22"} <= set(words(figure))
    assert words(figure).count("idle") == 2 + 1  # once in the key
    assert_readable(figure)


def test_a_crossing_is_where_lines_through_the_points_meet():
    slow_start, many_bytes = [(1, 8.0), (100, 8.0)], [(1, 1.0), (100, 64.0)]
    assert crossing(many_bytes, slow_start) == pytest.approx(10)
    assert crossing(slow_start, many_bytes) is None
    assert crossing(many_bytes, [(1, 9.0), (100, 90.0)]) is None


def test_the_ring_that_is_read_is_the_ring_that_runs():
    assert all_reduce.ring_all_reduce is rings.ring_all_reduce
    assert by_name("ring") is rings.ring_all_reduce
