"""All calls are issued at once per kind, and waited for together."""


def sum_gradients(groups, gradients, placements):
    for placement, name in (("", "dp"), ("partial", "tp"), ("tied", "embedding")):
        pending = [
            dist.all_reduce(gradient, group=groups[name], async_op=True)
            for gradient, word in zip(gradients, placements, strict=True)
            if placement in ("", word)
        ]
        for work in pending:
            work.wait()
