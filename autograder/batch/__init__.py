"""Many at once: one queue of work, done by warm processes here or by a job array on Slurm."""
