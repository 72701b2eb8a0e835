#!/usr/bin/env python3
"""Opens what big_files wrote, beyond 4 GiB, with PyTorch and safetensors: check.py pt|safetensors|checkpoint PATH"""
import json
import pathlib
import sys
import zlib

import torch
from safetensors import safe_open

FLOATS = 2**30 + 16384
MARKS = {0: 1.5, 1: -2.0, 2**29: 3.25, 2**30 - 1: 4.0, 2**30: 5.0, FLOATS - 1: 6.5}
FAR = [7.0, 8.0, 9.0, 10.0]


def check_state(big, far):
    assert big.shape == (2, FLOATS // 2) and big.dtype == torch.float32, (big.shape, big.dtype)
    flat = big.reshape(-1)
    for place, value in MARKS.items():
        assert flat[place].item() == value, (place, flat[place].item())
    assert torch.count_nonzero(flat).item() == len(MARKS)
    assert far.tolist() == FAR, far


def check_pt(path):
    for mapped in (True, False):  # offsets computed from the layout, and the archive read record by record
        state = torch.load(path, weights_only=True, mmap=mapped)
        assert list(state) == ["big", "far"]
        check_state(state["big"], state["far"])


def check_safetensors(path):
    with safe_open(path, "pt") as file:
        assert sorted(file.keys()) == ["big", "far"]
        check_state(file.get_tensor("big"), file.get_tensor("far"))


def check_checkpoint(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [f["name"] for f in manifest["files"]] == ["model.safetensors"]
    for entry in manifest["files"]:
        crc = 0
        with open(folder / entry["name"], "rb") as file:
            while chunk := file.read(1 << 24):
                crc = zlib.crc32(chunk, crc)
            assert file.tell() == entry["bytes"] > 2**32, entry
        assert crc == entry["crc32"], entry
    check_safetensors(folder / "model.safetensors")


CHECKS = {"pt": check_pt, "safetensors": check_safetensors, "checkpoint": check_checkpoint}
CHECKS[sys.argv[1]](pathlib.Path(sys.argv[2]))
