"""Hopes that all ranks drew the same weights."""


def start_equal(parameters):
    return
