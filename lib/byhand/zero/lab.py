"""What lecture 06 runs and draws."""
