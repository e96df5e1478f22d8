"""What a notebook or a terminal offers beside the lectures: %%ranks, explorers, doctor."""
