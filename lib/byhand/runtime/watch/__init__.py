"""Tells why ranks wait: supervises a team, and explains its end."""
