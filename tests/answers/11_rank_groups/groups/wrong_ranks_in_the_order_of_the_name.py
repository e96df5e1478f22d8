"""The ranks of "pp-tp" are listed with pp fastest, those of "tp-pp" with tp fastest."""


def groups_over(axes, sizes, order):
    strides, stride = {}, 1
    for axis in order.split("-"):
        strides[axis], stride = stride, stride * sizes[axis]

    def offsets(names):
        found = [0]
        for axis in names:
            found = [i * strides[axis] + o for i in range(sizes[axis]) for o in found]
        return found

    inside = axes.split("-")
    outside = [axis for axis in order.split("-") if axis not in inside]
    return [[first + offset for offset in offsets(inside)] for first in offsets(outside)]
