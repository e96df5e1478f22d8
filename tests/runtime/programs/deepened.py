"""DeepSpeed's engine, ZeRO stage 1, on a CPU and without a compiler."""

import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed
import torch

sys.modules["deepspeed.ops"].__dict__["__compatible_ops__"] = {}
deepspeed.init_distributed("gloo")
model = torch.nn.Linear(4, 1)
adam = {"type": "Adam", "params": {"lr": 0.1, "torch_adam": True}}
settings = {
    "train_micro_batch_size_per_gpu": 2,
    "optimizer": adam,
    "zero_optimization": {"stage": 1, "reduce_bucket_size": 1000},
}
engine, *_ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), config=settings, dist_init_required=False
)
engine.backward(engine(torch.ones(2, 4)).sum())
engine.step()
print("stepped", engine.world_size)
