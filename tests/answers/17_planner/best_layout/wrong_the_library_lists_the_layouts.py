"""All layouts are written down by the library's search."""


def best_layout(question):
    from byhand.planner.case import Case
    from byhand.planner.search import every
    from byhand.planner.table import table

    sizes, layers = question.sizes, question.sizes.layers
    given = described(question.machine), SOFTWARE, question.num_sequences
    case = Case(gpt(*sizes, tied=False), table([Layout()]), *given)
    found = every(case, question.num_ranks, Layout().order, {"cp": 1, "zero": 1})
    ways = [found.layout(number) for number in range(len(found))]
    ways = [at for at in ways if layers % (at.pp * at.chunks) == 0 and question.fits(at)]
    best, fewest = None, math.inf
    for at in sorted(ways, key=question.at_least):
        if question.at_least(at) >= fewest:
            break
        if question.seconds(at) < fewest:
            best, fewest = at, question.seconds(at)
    return best
