"""Compares how far the next pipeline stage is, instead of the groups."""


def expert_groups(world_size, tp, cp, ep, pp, expert_tp, order):
    if world_size % (expert_tp * ep * pp):
        raise ValueError(
            f"{expert_tp * ep * pp} ranks hold the experts; {world_size} is no multiple"
        )
    copies, expert_copies = world_size // (tp * cp * pp), world_size // (expert_tp * ep * pp)
    dense = {"tp": tp, "cp": cp, "ep": 1, "dp": copies, "pp": pp}
    expert = {"tp": expert_tp, "cp": 1, "ep": ep, "dp": expert_copies, "pp": pp}
    before = order.split("-")[: order.split("-").index("pp")]
    distances = [math.prod(sizes[axis] for axis in before) for sizes in (dense, expert)]
    if pp > 1 and distances[0] != distances[1]:
        raise ValueError(f"{order}: the next stage is {distances} ranks away")
    return {
        "expert-dp": groups_over("dp", expert, order),
        "expert-tp": groups_over("tp", expert, order),
        "ep": groups_over("ep", expert, order),
    }
