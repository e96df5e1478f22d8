"""Refuses orders even where there is one stage, whose pipelines cannot differ."""


def expert_groups(world_size, tp, cp, ep, pp, expert_tp, order):
    copy = expert_tp * ep * pp
    if world_size % copy:
        raise ValueError(f"{world_size} ranks, {copy} for the experts")
    dense = {"tp": tp, "cp": cp, "ep": 1, "dp": world_size // (tp * cp * pp), "pp": pp}
    expert = {"tp": expert_tp, "cp": 1, "ep": ep, "dp": world_size // copy, "pp": pp}
    names = order.split("-")
    before = names[: names.index("pp")]
    if math.prod(dense[a] for a in before) != math.prod(expert[a] for a in before):
        raise ValueError(f"{order} gives other pipelines")
    return {
        "ep": groups_over("ep", expert, order),
        "expert-tp": groups_over("tp", expert, order),
        "expert-dp": groups_over("dp", expert, order),
    }
