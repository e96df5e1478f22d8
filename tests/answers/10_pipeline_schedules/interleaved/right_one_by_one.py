"""Counts forwards and backwards one by one; gives the library's Action, a tuple too."""


def interleaved_orders(num_stages, num_micro_batches, num_chunks, group_size):
    total = num_micro_batches * num_chunks

    def which(k):
        number, inside = divmod(k, group_size * num_chunks)
        size = min(group_size, num_micro_batches - number * group_size)
        return number * group_size + inside % size, inside // size

    def order(stage):
        ahead = 2 * (num_stages - 1 - stage) + (num_chunks - 1) * group_size
        forward = backward = 0
        while backward < total:
            if forward < total and forward <= backward + ahead:
                yield Action("F", *which(forward))
                forward += 1
                if forward <= ahead:
                    continue
            if backward + ahead < forward or forward == total:
                i, chunk = which(backward)
                yield Action("B", i, num_chunks - 1 - chunk)
                backward += 1

    return [list(order(stage)) for stage in range(num_stages)]
