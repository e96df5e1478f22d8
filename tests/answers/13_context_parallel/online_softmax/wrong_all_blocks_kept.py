"""The state is all scores and values so far: right numbers, and nothing is online."""


def add_block(state, scores, v):
    if state is None:
        return scores, v
    return torch.cat([state[0], scores], dim=1), torch.cat([state[1], v])


def finish(state):
    return state[0].softmax(dim=1) @ state[1], state[0].logsumexp(dim=1)
