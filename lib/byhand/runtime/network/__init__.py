"""Slow links between hosts, on one machine."""
