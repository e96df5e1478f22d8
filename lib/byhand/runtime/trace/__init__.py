"""Records what ranks do: every communication call, its wait, its line."""
