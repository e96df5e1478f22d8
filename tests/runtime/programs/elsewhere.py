"""Meets at a port that it names itself, as programs for torch.multiprocessing.spawn do."""

import os
import sys

import torch
import torch.distributed as dist

how, port = sys.argv[1:]
method = f"tcp://127.0.0.1:{port}" if how == "tcp" else None
if how == "env":
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", port
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=method, rank=rank, world_size=world_size)
total = torch.ones(1)
dist.all_reduce(total)
print(total.item())
dist.destroy_process_group()
