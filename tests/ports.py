"""ports.py - TCP ports for tests in Python that must know a port before anybody listens at it, as tests/unit/ports.h has them for
those in C: a process claims a block until it ends, by a socket of the abstract namespace, so tests that run side by side never
meet at a port, and no outgoing connection takes one: the blocks lie below the range that the system gives out."""

import itertools
import socket

FIRST, EACH, BLOCKS = 10000, 200, 100  # as in ports.h
blocks = []  # of this process: one at most, the claim and its ports


def claim():
    for i in range(BLOCKS):
        held = socket.socket(socket.AF_UNIX)
        try:
            held.bind(f"\0torchkeeper-test-ports-{i}")
        except OSError:
            held.close()
            continue
        return held, itertools.cycle(range(FIRST + i * EACH, FIRST + (i + 1) * EACH, 2))
    raise OSError("all blocks of test ports are claimed")


def take():
    """A port where nobody listens; port + 1 is not given to anybody either."""
    if not blocks:
        blocks.append(claim())
    for port in itertools.islice(blocks[0][1], EACH // 2):
        try:
            for one in (port, port + 1):
                socket.create_server(("", one)).close()
        except OSError:
            continue
        return port
    raise OSError("no free port in the block")
