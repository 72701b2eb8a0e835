"""Every option of the installed PyTorch's torchrun, one a line: its names, then VALUE, or its choices. Compared with what
is recorded beside this file; --record writes it again."""

import pathlib
import sys

from torch.distributed.run import get_args_parser

RECORDED = pathlib.Path(__file__).with_suffix(".txt")


def line(action):
    if action.nargs == 0:
        values = []
    else:
        values = sorted(action.choices) if action.choices else ["VALUE"]
    return " ".join([*action.option_strings, *values])


def main():
    lines = sorted(line(action) for action in get_args_parser()._actions if action.option_strings)
    text = "".join(f"{each}\n" for each in lines)
    if "--record" in sys.argv:
        RECORDED.write_text(text)
    elif text != RECORDED.read_text():
        sys.exit(f"PyTorch's torchrun has other options than {RECORDED.name}:\n{text}")


main()
