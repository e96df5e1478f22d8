"""ZB-H1, written anew: 14.9 %, just too much."""


def own_schedule():
    orders = []
    for stage in range(4):
        order, late = [("F", i, 0) for i in range(3 - stage)], []
        for i in range(8):
            forward = i + 3 - stage
            order += [("F", forward, 0)] if forward < 8 else []
            order.append(("I", i, 0))
            late.append(("W", i, 0))
            order += [late.pop(0)] if len(late) > stage else []
        orders.append(order + late)
    return [0, 1, 2, 3], orders
