"""Pipeline parallelism: the model cut by depth, and one worker that runs any schedule.

worker     partition, cut, and Pipeline: read this
messages   what stages send each other
shapes     the messages' shapes, told once
lab        what lecture 09 runs and draws
"""

from byhand.pipeline_parallel.worker import Pipeline, Step, cut, partition, timeline

__all__ = ["Pipeline", "Step", "cut", "partition", "timeline"]
