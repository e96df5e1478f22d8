"""The library's own function, which knows groups of p only."""


def interleaved_orders(num_stages, num_micro_batches, num_chunks, group_size):
    found = library.interleaved(num_stages, num_micro_batches, num_chunks)
    return letters(found)
