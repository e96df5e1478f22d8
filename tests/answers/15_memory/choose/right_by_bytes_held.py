"""For each number of bytes held so far the least work, in a dictionary made anew for each layer."""


def choose(layers, num_bytes):
    ways = {0: (0, ())}
    for i, (whole, again, work) in enumerate(layers):
        new = {}
        for held, (cost, chosen) in ways.items():
            for h, way in (
                (held + whole, (cost, chosen)),
                (held + again, (cost + work, (*chosen, i))),
            ):
                new[h] = min(new.get(h, way), way)
        ways = new
    fitting = [way for held, way in ways.items() if held <= num_bytes]
    if not fitting:
        raise ValueError(f"{min(ways)} > {num_bytes}")
    return torch.tensor(min(fitting)[1], dtype=torch.int64)
