"""Token by token: an early token's second choice comes before a late one's first."""


def within_capacity(chosen, num_experts, factor):
    num_tokens, top_k = chosen.shape
    limit = math.ceil(factor * num_tokens * top_k / num_experts)
    flat = chosen.flatten()
    asked = torch.nn.functional.one_hot(flat, num_experts).cumsum(dim=0)
    places = asked.gather(1, flat[:, None])
    return (places <= limit).view(num_tokens, top_k)
