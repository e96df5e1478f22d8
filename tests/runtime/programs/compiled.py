"""torch.compile, with a collective in what is compiled."""

import torch
import torch.distributed as dist


@torch.compile(fullgraph=True)
def doubled_and_summed(x):
    y = x * 2
    dist.all_reduce(y)
    return y + 1


if __name__ == "__main__":
    dist.init_process_group("gloo")
    print(doubled_and_summed(torch.ones(2)).tolist())
