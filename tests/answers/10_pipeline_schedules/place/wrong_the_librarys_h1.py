"""The library's ZB-H1, for any order."""


def place_weight_halves(orders, most, delay):
    m = 1 + max(i for order in orders for _, i, _ in order)
    return letters(library.zero_bubble_h1(len(orders), m))
