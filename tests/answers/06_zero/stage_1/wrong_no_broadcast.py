"""Every rank goes on from its own parameters."""


def start(parameters, optimizer):
    shard = cut(parameters)
    return shard, optimizer([shard])
