"""Each rank has the next one compute: torch.distributed.rpc, which calls no process group."""

import os

import torch.distributed.rpc as rpc

rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world_size)
print(rpc.rpc_sync(f"worker{(rank + 1) % world_size}", pow, (2, 10)))
rpc.shutdown()
