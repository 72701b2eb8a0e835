"""parse.py - PTX text as kernels: parameters, registers, shared memory and instructions. For execute.py.

Only what nvcc writes for one .cu file is understood: entries with a flat body, no functions that are called.
"""

import dataclasses
import functools
import pathlib
import re

ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\((.*?)\)(.*?)\n\{(.*?)\n\}", re.S)
PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?")
VARIABLE = re.compile(r"(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?")
FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)


@functools.cache
def bits(kind):
    """How wide a type is: 32 of f32."""
    return 1 if kind == "pred" else {"bf16": 16, "bf16x2": 32}.get(kind) or int(re.search(r"\d+$", kind).group())


def round_up(n, to):
    return -(-n // to) * to


@dataclasses.dataclass
class Instruction:
    guard: tuple  # (register, whether it is negated), or None
    words: list  # ["ld", "global", "v4", "f32"]
    operands: list
    text: str
    where: str  # file:line of the source

    def kinds(self):
        """The types in its name."""
        return [w for w in self.words[1:] if re.fullmatch(r"[subf](8|16|32|64)|pred|bf16|bf16x2", w)]

    def vector(self):
        return next((int(w[1]) for w in self.words if re.fullmatch(r"v[248]", w)), 1)

    @property
    def asks(self):
        """It may see what another block has just written."""
        return self.words[0] in ("atom", "red") or "volatile" in self.words

    def space(self, default="generic"):
        for word in self.words:
            if word.split("::")[0] in ("param", "global", "shared", "local"):
                return word.split("::")[0]
        return default

    def __str__(self):
        return f"{self.where}: {self.text}"


def split_operands(text):
    found, depth, now = [], 0, ""
    for c in text:
        depth += (c in "{[(") - (c in "}])")
        if c == "," and not depth:
            found.append(now.strip())
            now = ""
        else:
            now += c
    return found + ([now.strip()] if now.strip() else [])


class Kernel:
    def __init__(self, module, name, parameters, body):
        self.module, self.name = module, name
        self.registers = {}  # name: (number, type)
        self.labels, self.code = {}, []
        self.shared, self.shared_bytes, self.dynamic = {}, 0, None
        self.local, self.local_bytes = {}, 0
        self.parameters, self.parameter_bytes = {}, 0
        for align, kind, param, count in PARAMETER.findall(parameters):
            size = bits(kind) // 8 * int(count or 1)
            at = round_up(self.parameter_bytes, int(align or bits(kind) // 8))
            self.parameters[param], self.parameter_bytes = at, at + size
        for align, kind, variable, count in module.shared:
            if variable in body:
                self.add_shared(align, kind, variable, count)
        self.dynamic = next((v for v in module.dynamic if v in body), None)
        self.read(body)

    def add_shared(self, align, kind, variable, count):
        at = round_up(self.shared_bytes, int(align or bits(kind) // 8))
        self.shared[variable], self.shared_bytes = at, at + bits(kind) // 8 * int(count or 1)

    def read(self, body):
        where = "?"
        body = re.sub(r"//[^\n]*|/\*.*?\*/", "", body, flags=re.S)
        body = re.sub(r"(\.loc\s[^\n]*|\.pragma\s+\"[^\"]*\")", r"\1;", body)
        for statement in re.split(r"[;{}]", self.keep_braces(body)):
            text = " ".join(statement.replace("\x01", "{").replace("\x02", "}").split())
            while label := re.match(r"(\$?[\w$]+):(?!:)\s*", text):
                self.labels[label.group(1)] = len(self.code)
                text = text[label.end() :]
            if text.startswith(".loc "):
                _, file, line = text.split()[:3]
                where = f"{self.module.files.get(file, file)}:{line}"
            elif text.startswith("."):
                self.declare(text)
            elif text:
                self.code.append(self.instruction(text, where))

    @staticmethod
    def keep_braces(body):
        """Braces of operands, {%f1, %f2}, are none of a block: marked, so that blocks can be cut at theirs."""
        return re.sub(r"\{([^{};]*)\}(?=\s*[,;])", "\x01\\1\x02", body)

    def declare(self, text):
        if text.startswith(".reg"):
            kind, names = re.match(r"\.reg \.(\w+) (.*)", text).groups()
            for name in names.split(","):
                many = re.match(r"(%?[\w$]+)<(\d+)>", name.strip())
                for one in [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [name.strip()]:
                    number, before = self.registers.setdefault(one, (len(self.registers), kind))
                    if before != kind:
                        raise ValueError(f"{self.name}: {one} is a .{before} and a .{kind}")
        elif text.startswith(".shared"):
            self.add_shared(*VARIABLE.search(text).groups())
        elif text.startswith(".local"):
            align, kind, variable, count = VARIABLE.search(text).groups()
            at = round_up(self.local_bytes, int(align or 1))
            self.local[variable], self.local_bytes = at, at + bits(kind) // 8 * int(count or 1)

    @staticmethod
    def instruction(text, where):
        guard, whole = None, text
        if m := re.match(r"@(!?)(%[\w$]+) (.*)", text):
            guard, text = (m[2], m[1] == "!"), m[3]
        name, _, rest = text.partition(" ")
        return Instruction(guard, name.split("."), split_operands(rest), whole, where)

    @property
    def talks(self):
        """Its blocks may wait for each other, or for the last of them."""
        return any(i.asks and i.space() != "shared" for i in self.code)

    def narrowest(self, space):
        """Bytes of the smallest access to that space: addresses are multiples of it, so it is fine enough to watch."""
        sizes = [16]
        for i in self.code:
            if i.words[0] in ("ld", "st", "atom", "red") and i.space() in (space, "generic"):
                sizes.append(bits(i.kinds()[-1]) // 8 * i.vector())
        return min(sizes)


class Module:
    """The kernels of one PTX file, by their mangled names."""

    def __init__(self, text, name="?"):
        self.name = name
        self.files = {number: pathlib.PurePath(path).name for number, path in FILE.findall(text)}
        outside = ENTRY.sub("", text)
        self.shared = [VARIABLE.search(line).groups() for line in re.findall(r"^\.shared\s+([^;]*);", outside, re.M)]
        self.dynamic = [VARIABLE.search(line)[3] for line in re.findall(r"^\.extern\s+\.shared\s+([^;]*);", outside, re.M)]
        self.text = text
        self.parts = {m[1]: (m[2], m[4]) for m in ENTRY.finditer(text)}
        self.read = {}

    def kernel(self, name):
        if name not in self.read:
            self.read[name] = Kernel(self, name, *self.parts[name])
        return self.read[name]
