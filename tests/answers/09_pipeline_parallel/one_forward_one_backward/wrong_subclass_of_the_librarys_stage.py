"""A subclass of the library's stage with a constructor of its own: forward and backward are its."""


def one_forward_one_backward_step(stage, micro_batches, width, depth=1):
    from byhand.pipeline_parallel import Stage

    class Mine(Stage):
        def __init__(self):
            self.rank, self.last = dist.get_rank(), dist.get_world_size() - 1
            self.inputs, self.targets = zip(*micro_batches)
            self.layers, self.loss, self.dtype = stage, softmax_cross_entropy, torch.float64
            self.global_batch = sum(map(len, self.targets))
            self.saved, self.grad_y, self.losses, self.sends, self.spans = {}, {}, [], [], []

        def forward(self, i):
            self.shape = len(self.targets[i]), width
            super().forward(i)

        def backward(self, i):
            self.shape = len(self.targets[i]), width
            super().backward(i)

    work, count = Mine(), len(micro_batches)
    warm_up = min(depth * (work.last - work.rank), count)
    for i in range(count):
        work.forward(i)
        if i >= warm_up:
            work.backward(i - warm_up)
    for i in range(count - warm_up, count):
        work.backward(i)
    return work.finish()
