"""Joins as another rank than it was told."""


def setup(rank, world_size):
    dist.init_process_group("gloo", rank=world_size - 1 - rank, world_size=world_size)
