#!/usr/bin/env python3
"""gloo.py - the measurements of collectives-bench for PyTorch's gloo, with the same sizes and ranks.

usage: gloo.py [RANKS ...]     (without any: 2 and 4; needs torch)
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

ELEMENTS = [64, 256, 1024, 4096, 16384, 65536, 93322, 262144, 669706, 1048576, 4194304, 16777216, 67108864]


def rounds_of(size):
    return 7 if size > 1 << 24 else 30 if size > 1 << 22 else 200 if size > 1 << 18 else 1000


def rank_main(rank, world):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29502")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    for n in ELEMENTS:
        x = torch.zeros(n)
        rounds = rounds_of(4 * n)
        us = []
        for i in range(-2 - rounds // 50, rounds):
            start = time.perf_counter()
            dist.all_reduce(x)
            if i >= 0:
                us.append((time.perf_counter() - start) * 1e6)
        us.sort()
        median = us[rounds // 2]
        algbw = 4 * n / median / 1e3
        if rank == 0:
            print(f"{world:6d} {'gloo':>8} {4 * n:12d} {median:12.1f} {us[rounds * 99 // 100]:12.1f} {algbw:10.2f} "
                  f"{algbw * 2 * (world - 1) / world:10.2f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


def main():
    print(f"{'ranks':>6} {'memory':>8} {'bytes':>12} {'median us':>12} {'p99 us':>12} {'algbw GB/s':>10} {'busbw GB/s':>10}",
          flush=True)
    for world in [int(a) for a in sys.argv[1:]] or [2, 4]:
        mp.spawn(rank_main, args=(world,), nprocs=world)


if __name__ == "__main__":
    main()
