"""execute.py - runs a kernel of parse.py: launch(kernel, memory, parameters, grid, threads, shared_bytes) returns a Report.

The threads of several blocks are lanes of numpy vectors, and lanes at one instruction take it together: those with the lowest
program counter go first. So lanes that have parted meet again where their ways do, and what needs a whole warp (mma, shuffles)
says so when it has none. Arithmetic is instructions.py's, memory memory.py's.
"""

import numpy as np

import instructions
from memory import UNSIGNED, Bad, Report, Shared
from order import Order
from parse import bits, round_up

WARP = 32
LANES_AT_ONCE = 4096
STEPS_MAX = 2_000_000
NEEDS_WARP = ("mma", "ldmatrix", "shfl", "vote", "bar")


class Run:
    """Some blocks of a launch: their registers, where they stand, and which barriers they have passed."""

    def __init__(self, kernel, memory, report, order, launch, blocks):
        self.kernel, self.memory, self.report, self.order = kernel, memory, report, order
        self.parameters, self.grid, self.threads, shared_bytes = launch
        self.blocks = self.grid[0] * self.grid[1] * self.grid[2]
        self.granule = kernel.narrowest("global")
        count = self.threads[0] * self.threads[1] * self.threads[2]
        per_block = round_up(count, WARP)
        self.lanes = per_block * len(blocks)
        lane = np.arange(self.lanes)
        thread = lane % per_block
        self.slot, self.lane = lane // per_block, lane % WARP
        self.block = np.asarray(blocks, np.int64)[self.slot]
        self.live = thread < count
        self.waits = np.zeros(self.lanes, bool)
        self.resume = np.zeros(self.lanes, np.int64)  # behind the barrier that it waits at
        self.asks = []  # (program counter, lanes) that have looked at what another block may change: the others first
        self.unfenced = np.zeros(self.lanes, bool)  # has written to global memory behind its last fence
        self.barriers = np.zeros(self.lanes, np.int64)
        self.warp_barriers = np.zeros(self.lanes // WARP, np.int64)
        self.groups = np.zeros(self.lanes, np.int64)  # of cp.async, committed
        self.special = self.specials(thread, per_block)
        self.r = [np.zeros(self.lanes, bool if kind == "pred" else UNSIGNED[bits(kind)]) for _, kind in kernel.registers.values()]
        self.dynamic_at = round_up(kernel.shared_bytes, 16)
        size = self.dynamic_at + shared_bytes if kernel.dynamic else kernel.shared_bytes
        self.shared = Shared(len(blocks), size, kernel.narrowest("shared"))
        self.local = np.zeros((self.lanes, max(kernel.local_bytes, 1)), np.uint8)

    def specials(self, thread, per_block):
        x, y, z = self.threads
        gx, gy, _ = self.grid
        of = {
            "tid": (thread % x, thread // x % y, thread // x // y),
            "ctaid": (self.block % gx, self.block // gx % gy, self.block // gx // gy),
            "ntid": self.threads,
            "nctaid": self.grid,
        }
        found = {f"%{name}.{'xyz'[i]}": values[i] for name, values in of.items() for i in range(3)}
        found |= {"%laneid": self.lane, "%warpid": thread // WARP, "%nwarpid": per_block // WARP}
        return {name: np.broadcast_to(np.asarray(v).astype(np.uint32), (self.lanes,)) for name, v in found.items()}

    def go(self):
        at = {0: self.live.copy()}  # program counter: the lanes that stand there
        end = len(self.kernel.code)
        steps = 0
        while at or self.asks:
            if not at:
                for pc, lanes in self.asks:
                    at[pc] = at[pc] | lanes if pc in at else lanes
                self.asks = []
            pc = min(at)
            lanes = at.pop(pc)
            until = min(at, default=end)
            while pc < end:
                steps += 1
                pc = self.step(pc, lanes, at)
                if pc is None or pc >= until:
                    break
            if steps > STEPS_MAX:
                raise Bad(f"does not end: {STEPS_MAX} instructions")
            if pc is not None and pc < end:
                at[pc] = at[pc] | lanes if pc in at else lanes
            elif pc is not None:
                self.end(lanes, at)
        if self.shared.copies:
            self.report.note("ends before its cp.async are there", self.kernel.name)
        return steps

    def step(self, pc, lanes, at):
        """Where these lanes go on; None: they have parted, wait or have ended."""
        instruction, execute = self.kernel.decoded[pc]
        word = instruction.words[0]
        taken = lanes
        if instruction.guard:
            register, negated = instruction.guard
            predicate = self.r[self.kernel.registers[register][0]]
            taken = lanes & (~predicate if negated else predicate)
        if word in ("bra", "ret", "exit"):
            return self.leave(instruction, pc, lanes, taken, at)
        if word in ("bar", "barrier") and "warp" not in instruction.words:
            self.wait(pc, lanes, at, instruction)
            return None
        if word in NEEDS_WARP:
            self.whole_warps(taken, instruction)
        if word == "bar":
            self.warp_barriers[np.unique(np.nonzero(taken)[0] // WARP)] += 1
        elif taken.any():
            execute(self, taken)
            if instruction.asks:
                self.asks.append((pc + 1, lanes))
                return None
        return pc + 1

    def leave(self, instruction, pc, lanes, taken, at):
        if not taken.any():
            return pc + 1
        stay = lanes & ~taken
        if instruction.words[0] == "bra":
            target = self.kernel.labels[instruction.operands[0]]
            if not stay.any():
                return self.together(target, lanes, at)
            at[target] = at[target] | taken if target in at else taken
        else:
            self.end(taken, at)
        if stay.any():
            at[pc + 1] = at[pc + 1] | stay if pc + 1 in at else stay
        return None

    @staticmethod
    def together(target, lanes, at):
        if not at:
            return target
        at[target] = at[target] | lanes if target in at else lanes
        return None

    def end(self, lanes, at):
        self.live = self.live & ~lanes
        self.release(lanes, at)

    def wait(self, pc, lanes, at, instruction):
        self.waits |= lanes
        self.resume[lanes] = pc + 1
        self.barrier = instruction
        self.release(lanes, at)

    def release(self, lanes, at):
        """Blocks all of whose threads wait, or have ended, go on."""
        for slot in np.unique(self.slot[lanes]):
            mine = self.slot == slot
            waiting = mine & self.waits
            if not waiting.any() or (mine & self.live & ~self.waits).any():
                continue
            places = np.unique(self.resume[waiting])
            if len(places) > 1:
                self.report.note("threads of a block wait at different barriers", self.barrier)
            if waiting.sum() != self.threads[0] * self.threads[1] * self.threads[2]:
                self.report.note("a barrier that threads of the block will never reach", self.barrier)
            self.waits &= ~mine
            self.barriers[mine] += 1
            block = int(self.block[mine][0])
            self.order.barrier(block, int(self.barriers[mine][0]), bool(self.unfenced[mine].any()))
            self.unfenced[mine] = False
            for place in places:
                go = waiting & (self.resume == place)
                at[int(place)] = at[int(place)] | go if int(place) in at else go

    def whole_warps(self, lanes, instruction):
        warps = lanes.reshape(-1, WARP)
        if (warps.any(1) & ~warps.all(1)).any():
            self.report.note("lanes of a warp are missing", instruction)


def three(size):
    return tuple(size) + (1,) * (3 - len(size))


def launch(kernel, memory, parameters, grid, threads, shared_bytes=0):
    report = Report()
    grid, threads = three(grid), three(threads)
    if not hasattr(kernel, "decoded"):
        kernel.decoded = [(i, instructions.decode(kernel, i)) for i in kernel.code]
    memory.launches += 1
    blocks = grid[0] * grid[1] * grid[2]
    order = Order(blocks, kernel.talks)
    at_once = blocks if kernel.talks else max(LANES_AT_ONCE // round_up(threads[0] * threads[1] * threads[2], WARP), 1)
    report.steps = 0
    try:
        for first in range(0, blocks, at_once):
            some = range(first, min(first + at_once, blocks))
            report.steps += Run(kernel, memory, report, order, (parameters, grid, threads, shared_bytes), list(some)).go()
    except Bad as why:
        report.note("the launch ended", why)
    return report
