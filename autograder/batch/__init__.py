"""Many at once: one queue of work, done by warm kernels here or by a job array on Slurm."""
