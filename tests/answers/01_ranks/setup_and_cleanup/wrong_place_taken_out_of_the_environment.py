"""Whoever asks for the meeting place after this finds none."""


def setup(rank, world_size):
    place = f"tcp://{os.environ.pop('MASTER_ADDR')}:{os.environ.pop('MASTER_PORT')}"
    dist.init_process_group("gloo", init_method=place, rank=rank, world_size=world_size)
