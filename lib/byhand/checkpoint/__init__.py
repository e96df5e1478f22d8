"""Checkpoints of sharded training: written whole or not at all, read in any other cut.

boxes     where a shard lies in its tensor, and what one box needs of another: read this
folder    Checkpoint: the files of one, how it appears at once, and how a changed byte is seen
saving    save, load, newest: read this next

    save(folder, {"weight": Shard(mine, shape=(4096, 512), starts=(1024, 0))}, extra={"step": 7})
    extra = load(newest(parent), {"weight": Shard(other, shape=(4096, 512), starts=(0, 256))})
"""

from byhand.checkpoint.boxes import Box
from byhand.checkpoint.files import CheckpointError
from byhand.checkpoint.saving import Saving, Shard, load, newest, save

__all__ = ["Box", "CheckpointError", "Saving", "Shard", "load", "newest", "save"]
