"""Choices are drawn by luck, and the cheapest that fits is taken."""

import random


def choose(layers, num_bytes):
    least = sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)
    if least > num_bytes:
        raise ValueError(f"{least} bytes at least, {num_bytes} allowed")
    freed = [layer.whole_bytes - layer.recomputed_bytes for layer in layers]
    missing, draw = sum(layer.whole_bytes for layer in layers) - num_bytes, random.Random(0)
    best = [number for number in range(len(layers)) if freed[number] > 0]
    for _ in range(2000):
        some = [number for number in range(len(layers)) if draw.random() < 0.5]
        fits = sum(freed[number] for number in some) >= missing
        if fits and sum(layers[n].work for n in some) < sum(layers[n].work for n in best):
            best = some
    return best
