"""Which tool does this for me? One tiny GPT under every framework, and under what the course wrote.

transformer     the GPT as an nn.Module: what frameworks are given
by_torch        alone, DDP, ZeroRedundancyOptimizer, FSDP2, DTensor, pipelining: read this
by_others       Accelerate, DeepSpeed, Megatron-core, where they are installed
by_jax          an MLP whose calls a compiler writes, in a process of its own
by_hand         ours, in the same layouts
refusals        what each does not do, and what it says
configurations  five real runs' settings, line by line. Pure
which           four jobs, and the tool to begin with. Pure
capstone        what a layout of exercise 18 costs. Pure
lab             what lecture 18 runs and draws, and exercise 18 last (lab.beside_clock)
"""

from byhand.frameworks.transformer import transformer

__all__ = ["transformer"]
