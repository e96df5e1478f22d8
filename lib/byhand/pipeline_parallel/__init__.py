"""Pipeline parallelism: the model cut by depth, and one worker that runs any schedule.

worker     cut, and Pipeline: read this
partition  which layers each stage gets. Pure
messages   what stages send each other
shapes     the messages' shapes, told once
lab        what lecture 09 runs, draws and lets one drag
"""

from byhand.pipeline_parallel.partition import partition
from byhand.pipeline_parallel.worker import Pipeline, Step, cut, timeline

__all__ = ["Pipeline", "Step", "cut", "partition", "timeline"]
