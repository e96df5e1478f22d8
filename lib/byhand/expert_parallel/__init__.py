"""Expert parallelism: each rank holds some experts, and tokens travel to theirs and back.

router      scores, the k best experts of a token, their weights; loads and two ways to even them
exchange    which rows go where, and how many come; capacity
dispatch    the uneven all-to-all there and back, forward and backward: read this
layer       the layer of all these, on one device and over ranks
hosts       two levels: a token crosses the slow link once, however many experts it has there
placement   which rank holds which expert, what that costs, and what evens it
migration   experts change their rank, or are copied, between two steps
training    a tiny GPT whose MLPs are experts
lab         what lecture 14 runs, draws, and lets one drag
"""

from byhand.expert_parallel.dispatch import combine, combine_backward, dispatch, dispatch_backward
from byhand.expert_parallel.exchange import Exchange, capacity, make_exchange
from byhand.expert_parallel.hosts import HostExperts
from byhand.expert_parallel.layer import ExpertParallelMLP, Experts, MixtureOfExperts
from byhand.expert_parallel.router import Router

__all__ = [
    "Exchange",
    "ExpertParallelMLP",
    "Experts",
    "HostExperts",
    "MixtureOfExperts",
    "Router",
    "capacity",
    "combine",
    "combine_backward",
    "dispatch",
    "dispatch_backward",
    "make_exchange",
]
