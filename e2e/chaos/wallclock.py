"""wallclock.py - steps the wall clock of single processes while they run.

A time namespace does not cover CLOCK_REALTIME, and a step of the machine's clock would hit everybody. But programs read
the wall clock by code that the kernel maps into each process, the vDSO: written to by somebody with the right to, it
becomes a page of that process alone. Here its functions ask the kernel and add an offset. Waits of the process
in the kernel still use the machine's clock, so the two disagree, as after a step. x86-64."""

import contextlib
import os
import signal
import struct
import time
from pathlib import Path

CLOCK_GETTIME, GETTIMEOFDAY, TIME = 228, 96, 201  # numbers of system calls
CLOCKS = b"\x83\xff\x00\x74\x05\x83\xff\x05\x75"  # cmp edi,0; je +5; cmp edi,5 (REALTIME, REALTIME_COARSE); jne


def call(number):
    return b"\xb8" + struct.pack("<I", number) + b"\x0f\x05"  # mov eax,number; syscall


def functions(seconds):
    """Name in the vDSO -> machine code that takes its place."""
    offset = b"\x48\xb9" + struct.pack("<q", seconds)  # mov rcx,seconds
    add_to = offset + b"\x48\x01"  # add [...],rcx
    return {
        # of these clocks only, and only when the call has not failed
        b"__vdso_clock_gettime": call(CLOCK_GETTIME) + CLOCKS + b"\x11\x85\xc0\x78\x0d" + add_to + b"\x0e\xc3",
        b"__vdso_gettimeofday": call(GETTIMEOFDAY) + b"\x48\x85\xff\x74\x0d" + add_to + b"\x0f\xc3",
        # the answer is in rax, and where rdi points unless it is 0
        b"__vdso_time": (b"\x57\x31\xff" + call(TIME) + b"\x5f" + offset
                         + b"\x48\x01\xc8\x48\x85\xff\x74\x03\x48\x89\x07\xc3"),
    }


def symbols(image):
    """Name -> (place, size) of the functions in the vDSO, which is an ELF file in memory."""
    (sections,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, sections + i * size) for i in range(count)]
    table = next(h for h in headers if h[1] == 11)  # SHT_DYNSYM
    names = headers[table[6]][4]
    found = {}
    for at in range(table[4], table[4] + table[5], 24):
        name, _, _, _, value, length = struct.unpack_from("<IBBHQQ", image, at)
        start = names + name
        found[image[start:image.index(b"\0", start)]] = (value, length)
    return found


def vdso_of(pid):
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith("[vdso]"):
            first, last = (int(x, 16) for x in line.split()[0].split("-"))
            return first, last - first
    raise ProcessLookupError(f"process {pid} has no vDSO")


def inside(pid, first, size):
    """Whether a (stopped) thread is in the vDSO now. The file has the program counter of a thread outside the kernel."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        words = (task / "syscall").read_text().split()
        if words[0] == "running" or (words[0] == "-1" and first <= int(words[2], 16) < first + size):
            return True
    return False


def step(pid, seconds, go_on=True):
    """Shift this process's wall clock by this much. go_on: let it run; else it stays stopped."""
    first, size = vdso_of(pid)
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    try:
        places = symbols(os.pread(memory, size, first))
        for _ in range(100):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.005)
            if not go_on or not inside(pid, first, size):
                break
            os.kill(pid, signal.SIGCONT)
        else:
            raise RuntimeError(f"process {pid} does not leave its vDSO")
        for name, code in functions(seconds).items():
            at, room = places[name]
            if len(code) > room:
                raise RuntimeError(f"{name.decode()}: {room} bytes, expected at least {len(code)}")
            os.pwrite(memory, code, first + at)
    finally:
        os.close(memory)
        if go_on:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
