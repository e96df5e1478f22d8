"""State in a class, lists for the collectives, one broadcast of all parameters."""


class Sharded:
    def __init__(self, numbers, optimizer):
        self.k = -(-len(numbers) // dist.get_world_size())
        self.mine = self.pieces(numbers)[dist.get_rank()].clone()
        self.optimizer = optimizer([self.mine])

    def pieces(self, numbers):
        padded = numbers.new_zeros(dist.get_world_size() * self.k)
        padded[: len(numbers)] = numbers
        return list(padded.split(self.k))


def start(parameters, optimizer):
    numbers = torch.cat([p.reshape(-1) for p in parameters])
    dist.broadcast(numbers, src=0)
    put(parameters, numbers)
    return Sharded(numbers, optimizer)


def put(parameters, numbers):
    begin = 0
    for p in parameters:
        p[...] = numbers[begin : begin + p.numel()].reshape(p.shape)
        begin += p.numel()


def step(parameters, gradients, state):
    total = torch.empty_like(state.mine)
    dist.reduce_scatter(total, state.pieces(torch.cat([g.reshape(-1) for g in gradients])))
    state.optimizer.step([total])
    gathered = [torch.empty_like(total) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, state.mine)
    put(parameters, torch.cat(gathered))
