"""Opens a checkpoint's folder with transformers and compares its logits with ours: transformers_logits.py FOLDER VOCAB TIME

FOLDER/../tokens are int64, FOLDER/../logits float32, of sequences of TIME tokens.
"""
import pathlib
import sys

import numpy as np
import torch
from transformers import GPT2LMHeadModel

folder, vocab, time = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
model, told = GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
assert not any(told.values()), told
assert model.lm_head.weight is model.transformer.wte.weight
tokens = torch.from_numpy(np.fromfile(folder.parent / "tokens", dtype=np.int64)).view(-1, time)
want = torch.from_numpy(np.fromfile(folder.parent / "logits", dtype=np.float32)).view(-1, time, vocab)
with torch.no_grad():
    got = model.eval()(tokens).logits
off = (got - want).abs().max().item()
print(f"{vocab} tokens, {time} at a time: off by {off:.2g} of {want.abs().max().item():.2g}")
assert want.abs().max() > 0.5 and off <= 1e-5, off
