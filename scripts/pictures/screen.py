#!/usr/bin/env python3
"""A terminal's screen, as `tmux capture-pane -e -p` prints it, as an SVG in docs/pictures.

usage: screen.py TITLE COLUMNS SVG < screen
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

THEME = TerminalTheme(
    (250, 251, 252), (36, 41, 47),
    [(36, 41, 47), (207, 34, 46), (17, 99, 41), (150, 100, 0), (9, 105, 218), (130, 80, 223), (27, 124, 131), (110, 119, 129)],
    [(87, 96, 106), (164, 14, 38), (26, 127, 55), (150, 100, 0), (33, 139, 255), (164, 117, 249), (49, 146, 170), (140, 149, 159)],
)


def main():
    title, columns, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    lines = sys.stdin.read().rstrip().splitlines()
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    for line in lines:
        console.print(Text.from_ansi(line), no_wrap=True, crop=True)
    svg = console.export_svg(title=title, theme=THEME, unique_id=title.replace(" ", "-"))
    # The reader's own fonts: a picture fetches nothing.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.S).replace("Fira Code", "DejaVu Sans Mono")
    Path(path).write_text(re.sub(r"<!--.*?-->\n?", "", svg, flags=re.S))


main()
