"""The last block is kept as it is, and taken in when the next one comes: its memory is reused."""


def take_in(state, scores, v):
    largest, total, weighted = state
    new = torch.maximum(largest, scores.amax(dim=1, keepdim=True))
    rescale, weights = (largest - new).exp(), (scores - new).exp()
    return new, rescale * total + weights.sum(dim=1, keepdim=True), rescale * weighted + weights @ v


def add_block(state, scores, v):
    if state is None:
        nothing = scores.new_zeros(len(scores), 1), scores.new_zeros(len(scores), v.shape[1])
        return (scores.new_full((len(scores), 1), -1e30), *nothing), scores, v
    return take_in(*state), scores, v


def finish(state):
    largest, total, weighted = take_in(*state)
    return weighted / total, (largest + total.log())[:, 0]
