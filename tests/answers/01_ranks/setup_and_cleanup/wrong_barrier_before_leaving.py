"""One more communication call than the task allows."""


def cleanup():
    dist.barrier()
    dist.destroy_process_group()
