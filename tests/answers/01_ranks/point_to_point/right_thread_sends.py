"""A thread sends while the rank receives; whoever is before is the only one who sends."""

import threading


def shift(rank, world_size, tensor):
    outgoing = tensor.contiguous().clone()
    if world_size == 1:
        return outgoing
    arrived = torch.zeros_like(outgoing)
    thread = threading.Thread(target=dist.send, args=(outgoing, (rank + 1) % world_size))
    thread.start()
    dist.recv(arrived)
    thread.join()
    return arrived
