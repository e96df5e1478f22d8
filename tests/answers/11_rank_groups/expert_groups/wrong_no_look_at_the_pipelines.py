"""Dense and expert layers of a stage may be on different ranks."""


def expert_groups(world_size, tp, cp, ep, pp, expert_tp, order):
    copy = expert_tp * ep * pp
    if world_size % copy:
        raise ValueError(f"{world_size} ranks are not a multiple of the experts' {copy}")
    expert = {"tp": expert_tp, "cp": 1, "ep": ep, "dp": world_size // copy, "pp": pp}
    if world_size < copy:
        raise ValueError(f"order {order!r} gives dense and expert layers different pipelines")
    names = {"ep": "ep", "expert-tp": "tp", "expert-dp": "dp"}
    return {name: groups_over(axis, expert, order) for name, axis in names.items()}
