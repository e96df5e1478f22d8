"""Writes its arguments into the environment, from where torch reads them; leaves by the group."""


def setup(rank, world_size):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(world_size)
    os.environ.setdefault("MASTER_PORT", "29500")
    if not dist.is_initialized():
        dist.init_process_group("gloo")


def cleanup():
    dist.destroy_process_group(dist.group.WORLD)
