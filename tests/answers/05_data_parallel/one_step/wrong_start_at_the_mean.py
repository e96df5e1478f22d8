"""Starts from the mean of all ranks' parameters."""


def start_equal(parameters):
    for parameter in parameters:
        dist.all_reduce(parameter)
        parameter /= dist.get_world_size()
