"""Minus infinity less minus infinity."""


def add_block(state, scores, v):
    largest = scores.amax(dim=1, keepdim=True)
    if state is None:
        weights = (scores - largest).exp()
        return largest, weights.sum(dim=1, keepdim=True), weights @ v
    new = torch.maximum(state[0], largest)
    rescale, weights = (state[0] - new).exp(), (scores - new).exp()
    return new, rescale * state[1] + weights.sum(1, keepdim=True), rescale * state[2] + weights @ v
