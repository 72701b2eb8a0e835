#!/usr/bin/env python3
"""Record what other tokenizers make of a text that is meant to be hard, by a small vocabulary that is trained here.

    pip install tokenizers==0.23.3 tiktoken==0.14.0 numpy
    tests/golden/text/record.py tests/golden/text

Writes vocab.json and merges.txt (GPT-2's formats), corpus.bin (UTF-8), words.bin (uint16: the lengths of its words in bytes,
by tokenizers' pre-tokenizer), tokens.bin (uint16; tokenizers and tiktoken must agree) and kinds.txt: how many of all
characters are letters, numbers and spaces to tiktoken, and the CRC-32 of all kinds, a byte each (0 other, 1 space, 2 letter,
3 number), surrogates left out.
"""
import json
import os
import random
import sys
import zlib

import numpy as np
import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
END = "<|endoftext|>"
LICENSES = "/usr/share/common-licenses"  # of Debian: text to train on

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def corpus():
    rng = random.Random(5)
    parts = [
        "I'll we've you're it's they'd I'm don't 'S 'T 'Ll ''s 'll'll 'l 'r 'v '\n's  's\t's can't've",
        "   leading\n\n\n  two  \n \t mixed \u00a0\u3000\u2003x \u1680 y\u0085z\u200b zero",
        "12345 67,890.12 \u00bd \u00b2 \u0663\u0664\u0665 \u2167 \u4e00\u4e8c\u4e09 \u09e6\u09e7\u09e8",
        "na\u00efve caf\u00e9 \u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439 \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4",
        "\U0001f600\U0001f469\u200d\U0001f467 e\u0301 a\u0300\u0301 \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea",
        END + " is text here",
        "\0\1\x1c\x1d\x1e\x1f\x7f\u0080\u009f control",
        "a" * 300 + " " + "ab" * 200 + "!" * 150 + " " * 200 + "x" + "\n" * 100,
    ]
    alphabet = [chr(c) for c in range(32, 127)] + list("\n\t  ''\u00df\u00e9\u0436\u3042\u6f22\uff11\u2163\u00a0\u2009\u3000")
    for _ in range(300):
        parts.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 60))))
    parts.append("".join(c + rng.choice(["", " ", "a", "1", "  "]) for c in rng.sample(CHARACTERS, 2000)))
    with open(os.path.join(LICENSES, "BSD"), encoding="utf-8") as f:
        parts.append(f.read())
    return "\n".join(parts) + "   "


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=1200, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  show_progress=False)
    tokenizer.train([os.path.join(LICENSES, name) for name in ("GPL-2", "Apache-2.0")], trainer)
    return tokenizer


def kinds():
    found = bytearray(len(CHARACTERS))
    place = {c: i for i, c in enumerate(CHARACTERS)}
    for kind, pattern in ((1, r"\s"), (2, r"\p{L}"), (3, r"\p{N}")):
        match = tiktoken.Encoding("kinds", pat_str=pattern, mergeable_ranks={bytes([i]): i for i in range(256)},
                                  special_tokens={})
        for c in bytes(match.encode_ordinary("".join(CHARACTERS))).decode():
            found[place[c]] = kind
    return found


def main(folder):
    tokenizer = train()
    vocab = tokenizer.get_vocab()
    vocab[END] = len(vocab)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    with open(os.path.join(folder, "vocab.json"), "w", encoding="utf-8") as f:
        json.dump(dict(sorted(vocab.items(), key=lambda item: item[1])), f)
    with open(os.path.join(folder, "merges.txt"), "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))

    text = corpus()
    raw = text.encode()
    words = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    lengths = [len(text[a:b].encode()) for _, (a, b) in words]
    assert sum(lengths) == len(raw)
    tokens = tokenizer.encode(text).ids
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [b for b in range(256) if b not in printable]
    to_byte = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    ranks = {bytes(to_byte[c] for c in k): v for k, v in vocab.items() if k != END}
    other = tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={END: vocab[END]})
    assert other.encode_ordinary(text) == tokens, "tokenizers and tiktoken disagree"

    with open(os.path.join(folder, "corpus.bin"), "wb") as f:
        f.write(raw)
    np.array(lengths, dtype="<u2").tofile(os.path.join(folder, "words.bin"))
    np.array(tokens, dtype="<u2").tofile(os.path.join(folder, "tokens.bin"))
    found = kinds()
    with open(os.path.join(folder, "kinds.txt"), "w", encoding="ascii") as f:
        f.write(f"{found.count(1)} {found.count(2)} {found.count(3)} {zlib.crc32(found):08x}\n")


main(sys.argv[1])
