"""memory.py - what kernels of execute.py read and write, and who was there before: global memory, which is the process's own, and
a block's shared memory. Every access is checked for bounds and alignment here.

Races are watched in shared memory between threads of a block, in global memory between blocks. What is seen is noted in a
Report; what nothing sensible could follow (an address out of bounds) ends the launch by Bad.
"""

import ctypes

import numpy as np

UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
# Who was there: launch, barriers that the block had passed, block + 1; or MANY blocks.
LAUNCH, BEHIND = 1 << 40, 1 << 20
MANY = BEHIND - 1


class Bad(Exception):
    """The launch cannot go on."""


class Report:
    def __init__(self):
        self.found = {}  # kind: {instruction: times}

    def note(self, kind, instruction):
        places = self.found.setdefault(kind, {})
        places[str(instruction)] = places.get(str(instruction), 0) + 1

    def lines(self):
        return [f"{kind}: {place} ({times} times)" for kind, places in self.found.items() for place, times in places.items()]


def repeated(numbers):
    """Whether one is there twice."""
    ordered = np.sort(numbers)
    return (ordered[1:] == ordered[:-1]).any()


def process_memory(address, size):
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)


class Piece:
    """An allocation: what lies between start and end may be touched."""

    def __init__(self, start, size, name):
        self.start, self.end, self.name = start, start + size, name
        self.base = start // 16 * 16
        whole = process_memory(self.base, -(-(self.end - self.base) // 16) * 16)
        self.views = {size // 8: whole.view(kind) for size, kind in UNSIGNED.items()}
        self.writer = self.reader = None  # per granule

    def watch(self):
        if self.writer is None:
            n = self.end - self.base + 16
            self.writer, self.reader = np.zeros(n, np.int64), np.zeros(n, np.int64)


class Global:
    def __init__(self):
        self.pieces, self.starts, self.launches = [], np.zeros(0, np.int64), 0

    def add(self, start, size, name):
        self.pieces.append(Piece(start, size, name))
        self.pieces.sort(key=lambda piece: piece.start)
        self.starts = np.array([piece.start for piece in self.pieces], np.int64)
        return self.pieces[int(np.searchsorted(self.starts, start))]

    def remove(self, start):
        self.pieces = [piece for piece in self.pieces if piece.start != start]
        self.starts = np.array([piece.start for piece in self.pieces], np.int64)

    def parts(self, addresses, size, instruction):
        """(piece, which of the addresses lie in it), all of them somewhere in full."""
        if (addresses % size).any():
            raise Bad(f"global memory at no multiple of {size} bytes: {instruction}")
        at = np.searchsorted(self.starts, addresses, "right") - 1
        numbers = at[:1] if (at == at[0]).all() else np.unique(at)
        for number in numbers:
            mine = at == number
            piece = self.pieces[number]
            low, high = int(addresses[mine].min()), int(addresses[mine].max())
            if number < 0 or high + size > piece.end:
                near = f"{low - piece.start}..{high + size - piece.start} of {piece.name}, which has {piece.end - piece.start} bytes"
                raise Bad(f"global memory out of bounds, {near if number >= 0 else hex(low)}: {instruction}")
            yield piece, mine

    def load(self, run, lanes, addresses, item, count, instruction):
        """(lanes, count) unsigned numbers of `item` bytes."""
        out = np.zeros((len(addresses), count), UNSIGNED[item * 8])
        for piece, mine in self.parts(addresses, item * count, instruction):
            first = (addresses[mine] - piece.base) // item
            out[mine] = piece.views[item][first[:, None] + np.arange(count)]
            if run.blocks > 1 and "volatile" not in instruction.words:
                self.read_by(run, piece, addresses[mine] - piece.base, item * count, lanes[mine], instruction)
        return out

    def store(self, run, lanes, addresses, values, instruction):
        item, count = values.dtype.itemsize, values.shape[1]
        run.unfenced[lanes] = True
        for piece, mine in self.parts(addresses, item * count, instruction):
            first = (addresses[mine] - piece.base) // item
            if run.blocks > 1 and "volatile" not in instruction.words:
                self.written_by(run, piece, addresses[mine] - piece.base, item * count, lanes[mine], instruction)
            piece.views[item][first[:, None] + np.arange(count)] = values[mine]
        if repeated(addresses):
            self.twice(run, addresses, values, instruction)

    @staticmethod
    def twice(run, addresses, values, instruction):
        """Lanes that write to one place at once may do so with one value alone."""
        order = np.argsort(addresses, kind="stable")
        same = addresses[order][1:] == addresses[order][:-1]
        if (values[order][1:][same] != values[order][:-1][same]).any():
            run.report.note("race in global memory: lanes write different values at once", instruction)

    def marks(self, run, piece, offsets, size, lanes):
        piece.watch()
        granules = max(size // run.granule, 1)
        at = (offsets[:, None] // run.granule + np.arange(granules)).ravel()
        blocks = np.repeat(run.block[lanes], granules)
        return at, blocks, self.launches * LAUNCH + np.repeat(run.barriers[lanes], granules) * BEHIND + blocks + 1

    def others(self, run, before, blocks):
        """Where another block of this launch was, and nothing says that it was there before."""
        which = before % BEHIND - 1
        found = (before // LAUNCH == self.launches) & (which != blocks)
        if found.any() and run.order.used:
            behind = before // BEHIND % BEHIND
            single = np.where(found & (which != MANY - 1), which, 0)
            known = np.where(which == MANY - 1, run.order.proven_of_all(blocks, behind), run.order.proven(blocks, single, behind))
            found &= ~known
        return found

    def read_by(self, run, piece, offsets, size, lanes, instruction):
        at, blocks, me = self.marks(run, piece, offsets, size, lanes)
        if self.others(run, piece.writer[at], blocks).any():
            run.report.note("race in global memory: a block reads what another wrote", instruction)
        before = piece.reader[at]
        several = (before // LAUNCH == self.launches) & (before % BEHIND != me % BEHIND)
        piece.reader[at] = np.where(several, np.maximum(before, me) // BEHIND * BEHIND + MANY, me)

    def written_by(self, run, piece, offsets, size, lanes, instruction):
        at, blocks, me = self.marks(run, piece, offsets, size, lanes)
        for shadow, what in (piece.writer, "wrote"), (piece.reader, "reads"):
            if self.others(run, shadow[at], blocks).any():
                run.report.note(f"race in global memory: a block writes what another {what}", instruction)
        piece.writer[at] = me

    def atomic(self, run, addresses, item, change, instruction):
        """Lane after lane, value = change(value, lane number); what was there before."""
        before = np.zeros(len(addresses), UNSIGNED[item * 8])
        for piece, mine in self.parts(addresses, item, instruction):
            view = piece.views[item]
            for lane in np.nonzero(mine)[0]:
                at = (addresses[lane] - piece.base) // item
                before[lane] = view[at]
                view[at] = change(view[at], lane)
        return before


class Shared:
    """The shared memory of the blocks that run at once, one behind the other, `size` bytes each. Watched in granules."""

    def __init__(self, slots, size, granule):
        self.size, self.granule = size, granule
        self.room = -(-max(size, 16) // 16) * 16
        whole = np.full(slots * self.room, 0xFF, np.uint8)
        self.views = {bits // 8: whole.view(kind) for bits, kind in UNSIGNED.items()}
        n = slots * self.room // granule
        self.there = np.zeros(n, bool)  # written
        self.coming = np.zeros(n, bool)  # by a cp.async that nobody has waited for
        self.writer = np.full(n, -1, np.int32)  # lane,
        self.wrote = np.zeros(n, np.int64)  # behind so many barriers of its block,
        self.wrote_warp = np.zeros(n, np.int64)  # and so many of its warp
        self.reader, self.read, self.read_warp = self.writer.copy(), self.wrote.copy(), self.wrote_warp.copy()
        self.readers = np.zeros(n, bool)  # several, of several warps
        self.last_read, self.last_write = np.full(slots, -1, np.int64), np.full(slots, -1, np.int64)  # barriers of the block by then
        self.copies = []  # cp.async: (lanes, groups, places, bytes)

    def places(self, run, lanes, addresses, size, instruction):
        """Addresses in the memory of all blocks."""
        if (addresses < 0).any() or (addresses + size > self.size).any():
            raise Bad(f"shared memory out of bounds, {addresses.min()}..{addresses.max() + size} of {self.size}: {instruction}")
        if (addresses % size).any():
            raise Bad(f"shared memory at no multiple of {size} bytes: {instruction}")
        return run.slot[lanes] * self.room + addresses

    def granules(self, lanes, places, size):
        n = max(size // self.granule, 1)
        return (places[:, None] // self.granule + np.arange(n)).ravel(), np.repeat(lanes, n)

    def unordered(self, run, at, lanes, who, when, when_warp):
        """Where another thread was, with neither barrier nor, in the same warp, .sync in between."""
        other = (who[at] >= 0) & (who[at] != lanes) & (when[at] == run.barriers[lanes])
        if not other.any():
            return other
        return other & ~((who[at] // 32 == lanes // 32) & (when_warp[at] < run.warp_barriers[lanes // 32]))

    def touched(self, run, lanes, places, size, write, instruction):
        at, who = self.granules(lanes, places, size)
        note, slots, now = run.report.note, run.slot[lanes], run.barriers[lanes]
        if not write and not self.there[at].all():
            note("shared memory that nobody has written", instruction)
        if self.copies and self.coming[at].any():
            note("touches what a cp.async still copies", instruction)
        if (self.last_write[slots] == now).any() and self.unordered(run, at, who, self.writer, self.wrote, self.wrote_warp).any():
            note(f"race in shared memory: written, then {'written' if write else 'read'}", instruction)
        if write:
            self.written(run, at, who, (self.last_read[slots] == now).any(), instruction)
            self.last_write[slots] = now
            return
        self.last_read[slots] = now
        again = self.read[at] == run.barriers[who]
        self.readers[at] = again & (self.readers[at] | ((self.reader[at] >= 0) & (self.reader[at] // 32 != who // 32)))
        self.reader[at], self.read[at], self.read_warp[at] = who, run.barriers[who], run.warp_barriers[who // 32]

    def written(self, run, at, who, was_read, instruction):
        if was_read:
            readers = self.readers[at] & (self.read[at] == run.barriers[who])
            if readers.any() or self.unordered(run, at, who, self.reader, self.read, self.read_warp).any():
                run.report.note("race in shared memory: read, then written", instruction)
        if repeated(at):
            run.report.note("race in shared memory: lanes write at once", instruction)
        self.wrote_now(run, at, who)

    def wrote_now(self, run, at, who):
        self.writer[at], self.wrote[at], self.wrote_warp[at] = who, run.barriers[who], run.warp_barriers[who // 32]
        self.there[at] = True

    def load(self, run, lanes, addresses, item, count, instruction):
        places = self.places(run, lanes, addresses, item * count, instruction)
        self.touched(run, lanes, places, item * count, False, instruction)
        return self.views[item][places[:, None] // item + np.arange(count)]

    def store(self, run, lanes, addresses, values, instruction):
        item, count = values.dtype.itemsize, values.shape[1]
        places = self.places(run, lanes, addresses, item * count, instruction)
        self.touched(run, lanes, places, item * count, True, instruction)
        self.views[item][places[:, None] // item + np.arange(count)] = values

    def copy(self, run, lanes, addresses, data, instruction):
        """cp.async of 16 bytes a lane: a write that may happen from now on until it has been waited for."""
        places = self.places(run, lanes, addresses, 16, instruction)
        self.touched(run, lanes, places, 16, True, instruction)
        at, _ = self.granules(lanes, places, 16)
        self.coming[at] = True
        self.views[8][places[:, None] // 8 + np.arange(2)] = ~np.uint64(0)
        self.copies.append((lanes, run.groups[lanes].copy(), places, data))

    def wait(self, run, waiting, left):
        """Of the groups of these lanes all but the newest `left` are there."""
        still = []
        for lanes, groups, places, data in self.copies:
            done = waiting[lanes] & (groups < run.groups[lanes] - left)
            self.views[8][places[done][:, None] // 8 + np.arange(2)] = data[done]
            at, who = self.granules(lanes[done], places[done], 16)
            self.coming[at] = False
            self.wrote_now(run, at, who)
            self.last_write[run.slot[lanes[done]]] = run.barriers[lanes[done]]
            if not done.all():
                still.append((lanes[~done], groups[~done], places[~done], data[~done]))
        self.copies = still
