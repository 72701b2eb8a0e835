"""A file system with one file, FOLDER/mount/data, served through /dev/fuse: `file_server.py FOLDER`, as root. Its pid is in
FOLDER/server once it serves. Who reads from it while it is stopped is in uninterruptible sleep, as with a file server that is gone.
Its end, by any signal, ends the reads; the mount is undone by `umount -l`."""

import ctypes
import os
import struct
import sys

BYTES = 1 << 20
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 18, 26, 36, 42
ENOENT, ENOSYS = 2, 38
ROOT, DATA = 1, 2  # inodes
ASYNC_READ = 1     # reads ahead: the reader waits for the page, not for the request, which a signal would interrupt


def attributes(inode):
    mode, size = (0o40755, 0) if inode == ROOT else (0o100444, BYTES)
    return struct.pack("<6Q10I", inode, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(code, inode, body):
    """The reply's bytes, or the number of an error."""
    if code == INIT:
        return struct.pack("<4I2H2I2H", 7, 31, 1 << 17, ASYNC_READ, 0, 0, 1 << 17, 1, 32, 0) + bytes(32)
    if code == LOOKUP and inode == ROOT and body.rstrip(b"\0") == b"data":
        return struct.pack("<4Q2I", DATA, 0, 60, 60, 0, 0) + attributes(DATA)
    if code == GETATTR:
        return struct.pack("<QII", 60, 0, 0) + attributes(inode)
    if code == OPEN:
        return bytes(16)
    if code == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(max(0, min(size, BYTES - offset)))
    if code == RELEASE:
        return b""
    return ENOENT if code == LOOKUP else ENOSYS


def serve(device):
    while True:
        request = os.read(device, (1 << 17) + 4096)
        _, code, unique, inode = struct.unpack_from("<IIQQ", request)
        if code in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        reply = answer(code, inode, request[40:])
        error, bytes_ = (-reply, b"") if isinstance(reply, int) else (0, reply)
        os.write(device, struct.pack("<IiQ", 16 + len(bytes_), error, unique) + bytes_)


def main():
    folder = sys.argv[1]
    os.mkdir(f"{folder}/mount")
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"file_server", f"{folder}/mount".encode(), b"fuse", ctypes.c_ulong(0), options) < 0:
        sys.exit(f"{folder}/mount: cannot mount a file system of /dev/fuse: {os.strerror(ctypes.get_errno())}: run as root")
    with open(f"{folder}/server", "w") as f:
        f.write(str(os.getpid()))
    serve(device)


main()
