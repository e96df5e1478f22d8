"""What communication costs: seconds = alpha · rounds + beta · bytes.

model      alpha, beta, and the cost of every algorithm: read this. Pure
timing     how a call is timed properly
fit        alpha and beta from measurements. Pure
rounds     every collective as rounds of messages. Pure
networks   the same rounds on links that are shared. Pure
hardware   what kinds of links carry. Pure
lab        what lecture 04 runs, draws and lets one drag
"""

from byhand.communication_cost.model import (
    ALGORITHMS,
    ALL_REDUCES,
    COLLECTIVES,
    AlphaBeta,
    Cost,
    bus_bandwidth,
    bus_factor,
    cost,
    crossover,
    literature_formula,
)

__all__ = [
    "ALGORITHMS",
    "ALL_REDUCES",
    "COLLECTIVES",
    "AlphaBeta",
    "Cost",
    "bus_bandwidth",
    "bus_factor",
    "cost",
    "crossover",
    "literature_formula",
]
