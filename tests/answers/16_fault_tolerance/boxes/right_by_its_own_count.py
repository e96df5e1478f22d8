"""Counts a box's numbers by `num_elements`, as the statement says, and knows replicas by a set."""


def reads(saved, wanted):
    found, seen, missing = [], set(), wanted.num_elements
    for number, box in enumerate(saved):
        starts = tuple(map(max, box.starts, wanted.starts))
        ends = tuple(map(min, box.ends, wanted.ends))
        both = Box(starts, tuple(max(0, b - a) for a, b in zip(starts, ends, strict=True)))
        if both.num_elements == 0 or box in seen:
            continue
        seen.add(box)
        missing -= both.num_elements
        there, here = (
            tuple(slice(a - s, b - s) for a, b, s in zip(starts, ends, one.starts, strict=True))
            for one in (box, wanted)
        )
        found.append((number, there, here))
    if missing > 0:
        raise ValueError(f"{missing} numbers are missing")
    return found
