"""DDP, a sampler, and a loader's workers."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int)
    steps = parser.parse_args().steps
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())  # DDP makes the replicas equal
    data = TensorDataset(torch.arange(4.0 * steps).reshape(-1, 1))
    sampler = DistributedSampler(data, shuffle=False)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    seen = []
    for (x,) in DataLoader(data, batch_size=2, sampler=sampler, num_workers=1):
        model(x).sum().backward()
        seen += x.flatten().int().tolist()
    print("saw", seen, flush=True)
    weights = [torch.empty(1, 1) for _ in range(dist.get_world_size())]
    dist.all_gather(weights, model.module.weight.grad)
    print("equal", bool((weights[0] == weights[1]).all()))


if __name__ == "__main__":
    main()
