"""Small trainings under this project's torchrun, for the benches beside this file."""

import pathlib
import struct

REPO = pathlib.Path(__file__).parents[2]
BIN = REPO / "build/release/bin"
MODEL = """name: tiny
model:
  input: {rows: 8, cols: 8, channels: 1}
  layers:
    - flatten
    - {type: linear, name: a, out: 10}
loss: cross_entropy
optimizer: {type: adam, lr: 0.001}
data: {format: idx, train_items: 64, val_items: 0}
defaults: {epochs: 100000, batch_size: 4, log_interval: 4}
"""


def write_data(folder):
    for part in "train", "t10k":
        for kind, dims in ("images-idx3", (64, 8, 8)), ("labels-idx1", (64,)):
            head = bytes([0, 0, 8, len(dims)]) + b"".join(struct.pack(">I", n) for n in dims)
            size = dims[0] * (64 if len(dims) > 1 else 1)
            (folder / f"{part}-{kind}-ubyte").write_bytes(head + bytes(i * 7 % 10 for i in range(size)))
    (folder / "tiny.yaml").write_text(MODEL)


def trainer(folder, before=""):
    """The program of a rank of this project's trainer: it runs for ever, with its pid in FOLDER/pid.RANK and its output in
    FOLDER/out.RANK. `before` is what its shell does first."""
    write_data(folder)
    return ["sh", "-c", f"{before}echo $$ >{folder}/pid.$RANK; exec {BIN}/trainer {folder}/tiny.yaml --data {folder} --threads 1 "
            f"--save_path {folder}/w.safetensors --timeout 600 --log_format json >{folder}/out.$RANK 2>&1"]


def trains(folder):
    """Whether rank 0 of the trainer has made a step."""
    out = folder / "out.0"
    return out.exists() and '"event":"train"' in out.read_text()
