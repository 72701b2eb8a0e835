#!/usr/bin/env python3
"""torch_recovery.py - mnist-cnn in PyTorch, a rank of torch.distributed.run that goes on from its last checkpoint;
recovery.py starts it and kills it.

usage: torch_recovery.py FOLDER DATA SAVE_STEPS

Rank 0 prints a line of JSON when it is about to train and one after each step, and every SAVE_STEPS steps it leaves
FOLDER/last.pt: the weights, the optimizer's state and the step. The net, the batches and the missing DataLoader are
those of torch_twin.py.
"""
import json
import os
import sys
import time

START = time.monotonic()

import torch  # noqa: E402  the import is a part of the start
from torch import nn  # noqa: E402
import torch_twin  # noqa: E402


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def save(path, net, optimizer, step):
    torch.save({"net": net.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".tmp")
    os.replace(path + ".tmp", path)


def main():
    path, folder, every = os.path.join(sys.argv[1], "last.pt"), sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group("gloo")
    met = time.monotonic() - START
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net, (inputs, targets), loss_of, optimizer = torch_twin.PRESETS["mnist-cnn"](folder)
    data = time.monotonic() - START
    step = 0
    if os.path.exists(path):
        state = torch.load(path, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    net = nn.parallel.DistributedDataParallel(net)
    if rank == 0:
        say("start", met_s=met, data_s=data)
    batches = len(inputs) // torch_twin.BATCH
    while True:
        at = (step * world + rank) % batches * torch_twin.BATCH
        optimizer.zero_grad(set_to_none=True)
        loss_of(net(inputs[at:at + torch_twin.BATCH]), targets[at:at + torch_twin.BATCH]).backward()
        optimizer.step()
        step += 1
        if rank == 0:
            say("train", global_step=step)
            if step % every == 0:
                save(path, net, optimizer, step)


if __name__ == "__main__":
    main()
