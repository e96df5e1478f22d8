"""Gives back what it got: whole backwards."""


def place_weight_halves(orders, most, delay):
    return [list(order) for order in orders]
