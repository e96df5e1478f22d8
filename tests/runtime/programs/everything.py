"""Threads, groups that they use at once, spawned workers, pickles of __main__'s, a pool."""

import atexit
import multiprocessing
import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass
class Number:
    value: int


def increased(number):
    return number.value + 1


def main():
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK".split()
    print(sys.argv, [os.environ[name] for name in names], os.environ["MASTER_ADDR"] != "")
    print(__file__, sys.path[0], os.getcwd(), sys.stdin.read().split())
    dist.init_process_group()
    first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
    x, y = torch.ones(100), torch.ones(100)
    thread = threading.Thread(target=sum_often, args=(y, second))
    thread.start()
    sum_often(x, first)
    thread.join()
    print("sums", x[0].item(), y[0].item())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print("spawned", pool.map(increased, [pickle.loads(pickle.dumps(Number(2)))]))
    dist.destroy_process_group()
    dist.init_process_group("gloo")  # and is left
    ThreadPoolExecutor(1).submit(print, "in a pool")
    end = threading.Event()
    threading.Thread(target=lambda: (end.wait(), print("from a thread"))).start()
    atexit.register(print, "at the exit")
    end.set()


def sum_often(x, group):
    for _ in range(10):
        dist.all_reduce(x, dist.ReduceOp.AVG, group=group)


if __name__ == "__main__":
    main()
