"""The statement allows byhand's two halves."""

from byhand.collectives import all_gather, reduce_scatter


def all_reduce(tensor):
    flat = tensor.flatten()
    return all_gather(reduce_scatter(flat), num_rows=flat.numel()).reshape(tensor.shape)
