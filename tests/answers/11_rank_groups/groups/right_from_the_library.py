"""The course's own mesh does the work."""


def groups_over(axes, sizes, order):
    from byhand.rank_groups.mesh import Mesh

    mesh = Mesh({axis: sizes[axis] for axis in order.split("-")})
    return mesh.groups(*axes.split("-")).tolist()
