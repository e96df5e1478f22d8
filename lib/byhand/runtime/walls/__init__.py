"""Holds code that nobody has read: namespaces, limits, and the cells of a submission."""
