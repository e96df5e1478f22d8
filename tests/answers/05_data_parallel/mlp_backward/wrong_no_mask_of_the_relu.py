"""Backward goes through the ReLU as if it were not there."""


def mlp_backward(
    weights: list[tuple[torch.Tensor, torch.Tensor]],
    x: torch.Tensor,
    labels: torch.Tensor,
    global_batch: int,
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    inputs = []
    for number, (weight, bias) in enumerate(weights):
        inputs.append(x if number == 0 else x.clamp(min=0))
        x = inputs[-1] @ weight.T + bias
    log_probabilities = x - x.logsumexp(dim=1, keepdim=True)
    rows = torch.arange(len(labels))
    loss = -log_probabilities[rows, labels].sum() / global_batch
    grad = log_probabilities.exp()
    grad[rows, labels] -= 1
    grad /= global_batch
    gradients = []
    for (weight, _), given in zip(reversed(weights), reversed(inputs), strict=True):
        gradients = [grad.T @ given, grad.sum(dim=0), *gradients]
        grad = grad @ weight
    return loss, gradients
