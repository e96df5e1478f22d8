"""From solutions/ to exercises/: rules for a source, and what is generated from it."""
