"""RankGrid does it, refusals included."""


def expert_groups(world_size, tp, cp, ep, pp, expert_tp, order):
    grid = RankGrid(world_size, tp, cp, ep, pp, expert_tp, order)
    return {name: grid.groups(name).tolist() for name in ("ep", "expert-tp", "expert-dp")}
