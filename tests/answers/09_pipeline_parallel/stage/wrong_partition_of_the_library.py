"""The library's partition does the work."""


def partition(num_layers, num_stages):
    from byhand.pipeline_parallel import partition as ready_made

    return ready_made(num_layers, num_stages)
