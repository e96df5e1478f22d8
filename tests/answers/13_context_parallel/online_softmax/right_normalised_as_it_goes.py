"""y and lse are kept, each time as they would be without further blocks."""


def add_block(state, scores, v):
    lse = scores.logsumexp(dim=1)
    y = torch.where(lse[:, None] > -math.inf, scores.softmax(dim=1), 0.0) @ v
    if state is None:
        return y, lse
    both = torch.logaddexp(state[1], lse)
    parts = []
    for part, weight in ((state[0], state[1]), (y, lse)):
        share = torch.where(weight > -math.inf, (weight - both).exp(), 0.0)
        parts.append(share[:, None] * part)
    return parts[0] + parts[1], both


def finish(state):
    return state
