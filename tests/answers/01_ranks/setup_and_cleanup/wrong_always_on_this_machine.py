"""Reads the port and takes the host for granted: MASTER_ADDR is ignored."""


def setup(rank, world_size):
    place = f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}"
    dist.init_process_group("gloo", init_method=place, rank=rank, world_size=world_size)
