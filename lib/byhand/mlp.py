"""The public name of `byhand.model.mlp`."""

from byhand.model.mlp import MLP, Linear, mean_squared_error, softmax_cross_entropy

__all__ = ["MLP", "Linear", "mean_squared_error", "softmax_cross_entropy"]
