"""Second choices are counted from nought again."""


def within_capacity(chosen, num_experts, factor):
    num_tokens, top_k = chosen.shape
    limit = math.ceil(factor * num_tokens * top_k / num_experts)
    asked = torch.nn.functional.one_hot(chosen, num_experts).cumsum(dim=0)
    places = asked.gather(2, chosen[..., None])[..., 0]
    return places <= limit
