"""Layers with explicit backward, from a linear one to a tiny GPT; optimizers and data."""
