"""accelerate's loop."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
for x in data:
    accelerator.backward(model(x).sum())
    optimizer.step()
print("steps", len(data), accelerator.num_processes)
accelerator.wait_for_everyone()
