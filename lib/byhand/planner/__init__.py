"""What would a trillion parameters need? Time and memory of a step on paper, and the best layout.

step         seconds by part, bytes by kind of one layout: read this. Pure
computing    a block's products, attention, element-wise work. Pure
messages     what ranks send each other, by the level that a group reaches. Pure
memory       what the fullest rank holds. Pure
machines     GPUs, as data sheets have them. Pure
software     what a generation of software makes of them: the fitted constants. Pure
search       every layout of a machine, fastest first. Pure
explain      why the fastest wins, and what would change that. Pure
flags        a layout as Megatron-LM's and torchtitan's flags. Pure
published    steps that were run, to fit and to score. Pure
peer         another planner's seconds of the same steps, as a benchmark wrote them. Pure
models       published models by name. Pure
case, table, sizes   the question: a model's sizes, many layouts as columns. Pure
lab          what lecture 17 runs and draws
"""

from byhand.planner.machines import MACHINES, Machine
from byhand.planner.search import search
from byhand.planner.software import SOFTWARE, Software
from byhand.planner.step import Step, step

__all__ = ["MACHINES", "SOFTWARE", "Machine", "Software", "Step", "search", "step"]
