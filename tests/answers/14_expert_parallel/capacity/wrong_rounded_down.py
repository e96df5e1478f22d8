"""The capacity is rounded down."""


def within_capacity(chosen, num_experts, factor):
    num_tokens, top_k = chosen.shape
    limit = math.floor(factor * num_tokens * top_k / num_experts)
    flat = chosen.T.flatten()
    asked = torch.nn.functional.one_hot(flat, num_experts).cumsum(dim=0)
    places = asked.gather(1, flat[:, None])
    return (places <= limit).view(top_k, num_tokens).T
