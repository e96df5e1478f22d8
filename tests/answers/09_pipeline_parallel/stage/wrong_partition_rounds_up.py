"""The cuts are rounded up: sizes differ by one at most, but the first stages do not get more."""


def partition(num_layers, num_stages):
    if num_stages > num_layers:
        raise ValueError(f"{num_layers} layers cannot make {num_stages} stages")
    edges = [-(-stage * num_layers // num_stages) for stage in range(num_stages + 1)]
    return [range(edges[stage], edges[stage + 1]) for stage in range(num_stages)]
