"""The blocks are gone, but what was made of each is kept, and merged in the end."""


def add_block(state, scores, v):
    largest = scores.amax(dim=1, keepdim=True).clamp(min=-1e30)
    weights = (scores - largest).exp()
    return [*(state or []), (largest, weights.sum(dim=1, keepdim=True), weights @ v)]


def finish(state):
    largest = torch.stack([one for one, _, _ in state]).amax(dim=0)
    total = sum((one - largest).exp() * part for one, part, _ in state)
    weighted = sum((one - largest).exp() * part for one, _, part in state)
    return weighted / total, (largest + total.log())[:, 0]
