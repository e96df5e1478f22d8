"""No Pipeline: loops of one's own, isend and recv; stages cut by layers."""


def make_step(weights, layout, num_sequences):
    groups = groups_for_this_rank(layout.groups, GROUPS)
    (chunk,) = chunks_of(weights, groups)
    optimizer = SGD(chunk.parameters(), LR, MOMENTUM)
    line = dist.get_process_group_ranks(groups["pp"])
    stage, p = line.index(dist.get_rank()), layout.pp
    m, me, each = (
        layout.num_micro_batches(num_sequences),
        dist.get_rank(groups["dp"]),
        num_sequences // layout.dp,
    )
    shape = layout.rows, POSITIONS, FEATURES

    def get(at):
        x = torch.empty(shape, dtype=torch.float64)
        dist.recv(x, line[at], group=groups["pp"])
        return x

    def step(tokens, following):
        chunk.zero_gradients()
        rows = [
            slice(me * each + i * layout.rows, me * each + (i + 1) * layout.rows) for i in range(m)
        ]
        flying, pending, total = [], [], torch.zeros((), dtype=torch.float64)

        def forward(i):
            y, saved = chunk.forward(tokens[rows[i]] if stage == 0 else get(stage - 1))
            if stage < p - 1:
                pending.append((dist.isend(y, line[stage + 1], group=groups["pp"]), y))
                flying.append((None, saved))
            else:
                loss, grad = next_token_loss(y, following[rows[i]], num_sequences)
                total.add_(loss)
                flying.append((grad, saved))

        def backward():
            grad, saved = flying.pop(0)
            if grad is None:
                grad = get(stage + 1)
            if stage == 0:
                return chunk.backward_first(grad, saved)
            x = chunk.backward(grad, saved)
            pending.append((dist.isend(x, line[stage - 1], group=groups["pp"]), x))

        ahead = min(p - stage - 1, m)
        for i in range(ahead):
            forward(i)
        for i in range(ahead, m):
            forward(i)
            backward()
        for _ in range(ahead):
            backward()
        for request, _ in pending:
            request.wait()
        for g, place in zip(chunk.gradients(), chunk.placements, strict=True):
            if place == "partial":
                dist.all_reduce(g, group=groups["tp"])
            dist.all_reduce(g, group=groups["dp"])
            if place == "tied" and "embedding" in groups:
                dist.all_reduce(g, group=groups["embedding"])
        optimizer.step(chunk.gradients())
        if dist.get_rank(groups["tp"]):
            total.zero_()
        dist.all_reduce(total)
        return total.item()

    return step
