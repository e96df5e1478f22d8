"""The weighted values are rescaled, the sum is not."""


def add_block(state, scores, v):
    if state is None:
        state = (
            scores.new_full((len(scores), 1), -1e30),
            scores.new_zeros(len(scores), 1),
            scores.new_zeros(len(scores), v.shape[1]),
        )
    new = torch.maximum(state[0], scores.amax(dim=1, keepdim=True))
    rescale, weights = (state[0] - new).exp(), (scores - new).exp()
    return new, state[1] + weights.sum(dim=1, keepdim=True), rescale * state[2] + weights @ v
