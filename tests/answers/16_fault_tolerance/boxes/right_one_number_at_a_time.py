"""Each number is a read of its own: from the first saved box that has it."""


def reads(saved, wanted):
    out, nowhere = [], 0
    for index in itertools.product(*map(range, wanted.starts, wanted.ends)):
        for number, box in enumerate(saved):
            if all(a <= i < e for i, a, e in zip(index, box.starts, box.ends)):
                there = tuple(slice(i - a, i - a + 1) for i, a in zip(index, box.starts))
                here = tuple(slice(i - a, i - a + 1) for i, a in zip(index, wanted.starts))
                out.append((number, there, here))
                break
        else:
            nowhere += 1
    if nowhere:
        raise ValueError(f"in no saved box: {nowhere}")
    return out
