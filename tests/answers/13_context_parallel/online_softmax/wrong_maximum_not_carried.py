"""Each block takes off its own largest score."""


def add_block(state, scores, v):
    largest = scores.amax(dim=1, keepdim=True).clamp(min=-1e30)
    weights = (scores - largest).exp()
    total, weighted = weights.sum(dim=1, keepdim=True), weights @ v
    if state is None:
        return largest, total, weighted
    return torch.maximum(state[0], largest), state[1] + total, state[2] + weighted
