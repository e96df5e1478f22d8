"""Starts ranks: the fork server, its client, and what a rank does from birth to reply."""
