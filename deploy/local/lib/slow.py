"""slow.py DEVICE MS - makes a tun device and writes each packet that is routed into it back to it MS milliseconds later."""

import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
LONGEST = 65536

device, delay = sys.argv[1], float(sys.argv[2]) / 1000
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
waiting = collections.deque()
while True:
    rest = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
    if select.select([tun], [], [], rest)[0]:
        waiting.append((time.monotonic() + delay, os.read(tun, LONGEST)))
    while waiting and waiting[0][0] <= time.monotonic():
        try:
            os.write(tun, waiting.popleft()[1])
        except OSError as error:  # the device is down for now: the packet is lost, as on any link
            print(error, file=sys.stderr, flush=True)
