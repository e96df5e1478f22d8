"""torch's pipelining, 1F1B, a stage a rank."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def loss(y, target):
    return (y - target).square().mean()


dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(torch.nn.Linear(4, 4), rank, world_size, torch.device("cpu"))
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=loss)
losses = []
if rank == 0:
    schedule.step(torch.ones(8, 4))
else:
    schedule.step(target=torch.zeros(8, 4), losses=losses)
print("losses", len(losses))
dist.destroy_process_group()
