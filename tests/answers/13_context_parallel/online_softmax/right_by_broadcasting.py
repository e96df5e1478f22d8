"""Broadcasts in place of a product of matrices: it needs much at once, and never more."""


def add_block(state, scores, v):
    largest = scores.max(1).values
    if state is not None:
        largest = torch.maximum(state["largest"], largest)
    finite = largest.nan_to_num(neginf=0.0)
    weight = (scores - finite[:, None]).exp()
    total, weighted = weight.sum(1), (weight[:, :, None] * v[None]).sum(1)
    if state is not None:
        shrink = (state["largest"] - finite).exp()
        total = total + shrink * state["total"]
        weighted = weighted + shrink[:, None] * state["weighted"]
    return {"largest": largest, "total": total, "weighted": weighted}


def finish(state):
    y = state["weighted"] / state["total"][:, None]
    return y, state["largest"] + state["total"].log()
