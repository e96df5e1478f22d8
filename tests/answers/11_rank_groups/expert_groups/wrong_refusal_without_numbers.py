"""The world that does not fit is refused in general terms."""


def expert_groups(world_size, tp, cp, ep, pp, expert_tp, order):
    copy = expert_tp * ep * pp
    if world_size % copy:
        raise ValueError("the experts do not fit")
    dense = {"tp": tp, "cp": cp, "ep": 1, "dp": world_size // (tp * cp * pp), "pp": pp}
    expert = {"tp": expert_tp, "cp": 1, "ep": ep, "dp": world_size // copy, "pp": pp}
    if groups_over("pp", dense, order) != groups_over("pp", expert, order):
        raise ValueError(f"order {order!r} gives dense and expert layers different pipelines")
    names = {"ep": "ep", "expert-tp": "tp", "expert-dp": "dp"}
    return {name: groups_over(axis, expert, order) for name, axis in names.items()}
