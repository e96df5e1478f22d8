"""A port of one's own, in the init_method."""


def setup(rank, world_size):
    url = "tcp://127.0.0.1:29517"
    dist.init_process_group("gloo", init_method=url, rank=rank, world_size=world_size)
