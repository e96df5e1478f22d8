"""Pipeline parallelism: the model cut by depth, and one worker that runs any schedule.

stage      Stage: one forward, one backward. Read this first
worker     cut, and Pipeline: any schedule, several chunks, unequal micro-batches
partition  which layers each stage gets. Pure
messages   what stages send each other
lab        what lecture 09 runs, draws and lets one drag
"""

from byhand.pipeline_parallel.partition import partition
from byhand.pipeline_parallel.stage import Stage
from byhand.pipeline_parallel.worker import Pipeline, Step, cut, timeline

__all__ = ["Pipeline", "Stage", "Step", "cut", "partition", "timeline"]
