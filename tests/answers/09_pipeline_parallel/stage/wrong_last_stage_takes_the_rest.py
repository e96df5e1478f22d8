"""What is left over goes to the last stage, not one each to the first ones."""


def partition(num_layers, num_stages):
    if num_stages > num_layers:
        raise ValueError(f"{num_layers} layers cannot make {num_stages} stages")
    size = num_layers // num_stages
    starts = [stage * size for stage in range(num_stages)] + [num_layers]
    return [range(starts[stage], starts[stage + 1]) for stage in range(num_stages)]
