#!/usr/bin/env python3
"""Write tools/text/unicode_ranges.c: which characters Unicode calls letters and numbers.

Needs the package unicodedata2 of the version below: the data of that version of Unicode, whatever Python's own is.
    python3 scripts/unicode-ranges.py > tools/text/unicode_ranges.c
"""
import sys

import unicodedata2

VERSION = "16.0.0"
WIDTH = 110


def ranges(category):
    found = []
    for code in range(0x110000):
        if unicodedata2.category(chr(code))[0] != category:
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(name, category):
    print(f"\nconst struct unicode_range UNICODE_{name}[] = {{")
    line = "   "
    all_ranges = ranges(category)
    for first, last in all_ranges:
        item = f" {{0x{first:x}, 0x{last:x}}},"
        if len(line) + len(item) > WIDTH:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};")
    print(f"const size_t UNICODE_{name}_LEN = {len(all_ranges)};")


if unicodedata2.unidata_version != VERSION:
    sys.exit(f"unicodedata2: {unicodedata2.unidata_version}, expected {VERSION}")
print(f"/* unicode_ranges.c - general categories L and N of Unicode {VERSION}, made by scripts/unicode-ranges.py. */")
print("/* clang-format off */")
print('#include "tools/text/unicode.h"')
table("LETTERS", "L")
table("NUMBERS", "N")
