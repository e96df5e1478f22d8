"""Sixteen replicas, none of which fits."""


def my_layout():
    return Layout(dp=16)
