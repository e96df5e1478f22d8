"""Many at once: warm workers here, or a job array."""
