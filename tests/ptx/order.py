"""order.py - which writes of other blocks a block may rely on, within one launch. For memory.py.

Without atomics and volatile accesses: none. With them, as CUDA's memory model has it for the pattern that kernels use,
block by block: writes, a fence, (a barrier of the block,) an atomic; the other block's atomic at that place, a fence, reads.
A block's writes are numbered by how many barriers it has passed. What its threads do without a barrier between them is not told
apart: a barrier that is missing behind an atomic is seen only by what shared memory shows of it.
"""

import numpy as np


class Order:
    def __init__(self, blocks, used):
        self.used = used
        n = blocks if used else 0
        self.knows = np.zeros((n, n), np.int64)  # block b may rely on the writes of block w behind fewer barriers than that
        self.heard = np.zeros((n, n), np.int64)  # as soon as it has passed a fence
        self.covered = np.zeros(n, np.int64)  # own writes behind fewer barriers than that stand before a fence
        self.open = np.zeros(n, bool)  # writes have passed a barrier without a fence
        self.told = {}  # address of an atomic: what `knows` is of whoever hears it

    def proven(self, blocks, others, behind):
        """Whether each of `blocks` may rely on what `others` did behind so many barriers."""
        return self.knows[blocks, others] > behind if self.used else np.zeros(len(blocks), bool)

    def proven_of_all(self, blocks, behind):
        """The same of every other block."""
        if not self.used:
            return np.zeros(len(blocks), bool)
        knows = self.knows[blocks]
        knows[np.arange(len(blocks)), blocks] = np.iinfo(np.int64).max
        return knows.min(1) > behind

    def fence(self, block, barriers):
        self.knows[block] = np.maximum(self.knows[block], self.heard[block])
        self.covered[block], self.open[block] = barriers, False

    def barrier(self, block, barriers, unfenced):
        if self.used:
            self.open[block] |= unfenced
            if not self.open[block]:
                self.covered[block] = barriers

    def tell(self, block, address):
        told = np.maximum(self.told.get(address, 0), self.knows[block])
        told[block] = max(told[block], self.covered[block])
        self.told[address] = told

    def hear(self, block, address):
        if address in self.told:
            self.heard[block] = np.maximum(self.heard[block], self.told[address])
