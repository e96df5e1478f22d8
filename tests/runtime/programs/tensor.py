"""DTensor's tensor parallelism; the mesh makes the process group."""

import os

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
whole = model(torch.ones(2, 8)).sum()
parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
y = model(torch.ones(2, 8)).sum()
y.backward()
print("equal", bool(torch.allclose(y, whole)))
