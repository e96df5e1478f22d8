"""The library's dispatch and combine."""


def to_experts(x, chosen, home):
    from byhand.expert_parallel import dispatch, make_exchange

    n = dist.get_world_size()
    placement = [(home == rank).nonzero()[:, 0].tolist() for rank in range(n)]
    exchange = make_exchange(chosen, placement)
    mine = torch.tensor(placement[dist.get_rank()], dtype=torch.int64)
    return dispatch(x, exchange), mine.repeat_interleave(torch.tensor(exchange.loads)), exchange


def from_experts(made, weights, saved):
    from byhand.expert_parallel import combine

    return combine(made, weights, saved)[0]
