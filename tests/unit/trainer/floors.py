#!/usr/bin/env python3
"""floors.py TREE: a room of the trainer includes files of the floors below it alone, as the picture in trainer/DESIGN.md has them."""
import re
import sys
from pathlib import Path

tree = Path(sys.argv[1])
picture = re.search(r"```\n( \d   .*?)```", (tree / "trainer/DESIGN.md").read_text(), re.S).group(1)
floor = {"common": 0}
for number, rooms in re.findall(r"^ (\d)   (.{32})", picture, re.M):
    floor.update(dict.fromkeys(rooms.split(), int(number)))
SHARED = {"presets": "cli", "rendezvous": "host"}  # two folders, one room


def room(path):
    parts = path.split("/")
    name = parts[1] if parts[0] == "trainer" else parts[0]
    return SHARED.get(name, name)


wrong, seen = [], 0
for name in [*floor, *SHARED]:
    top = tree / "trainer" / name if (tree / "trainer" / name).is_dir() else tree / name
    for file in top.rglob("*.[ch]*"):
        path = str(file.relative_to(tree))
        for to in re.findall(r'^#include "([^"]+/[^"]+)"', file.read_text(), re.M):
            seen += 1
            if room(to) not in floor:
                wrong.append(f"{path}: {to}: expected a room of the picture in trainer/DESIGN.md")
            elif room(to) != room(path) and floor[room(to)] >= floor[room(path)]:
                wrong.append(f"{path}: {to}: expected a room below {room(path)}")
print("\n".join(wrong) or f"{len(floor) - 1} rooms, {seen} includes")
sys.exit(1 if wrong or seen < 300 else 0)
