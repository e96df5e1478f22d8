"""One flat all-reduce for each kind of sum."""


def summed_flat(gradients, group):
    if gradients:
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat, group=group)
        for gradient, piece in zip(
            gradients, flat.split([g.numel() for g in gradients]), strict=True
        ):
            gradient.copy_(piece.view_as(gradient))


def sum_gradients(groups, gradients, placements):
    pairs = list(zip(gradients, placements, strict=True))
    summed_flat([g for g, word in pairs if word == "tied"], groups.get("embedding"))
    summed_flat([g for g, word in pairs if word == "partial"], groups["tp"])
    summed_flat(gradients, groups["dp"])
