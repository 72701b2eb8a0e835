#!/usr/bin/env python3
"""cuda-kit.py - fetch the pinned CUDA toolkit from NVIDIA's wheels; nothing is installed on the machine.

  scripts/cuda-kit.py compiler  FOLDER   nvcc, runtime, headers (130 MB): all that compiling needs
  scripts/cuda-kit.py libraries FOLDER   cuBLAS, NVRTC (which cuBLAS loads) and NCCL (810 MB): what a program on a GPU loads
  scripts/cuda-kit.py sanitizer FOLDER   compute-sanitizer (18 MB), for make gpu-test

FOLDER appears whole or not at all, and is made again only when cmake/cuda-wheels.txt changes. Wheels come from the
index that pip is configured for and are checked against the hashes in that file. The compiler needs only a few headers
of cuBLAS and NCCL: they are read out of the wheels by HTTP ranges, or from the whole wheels if the index has no ranges.
"""

import fcntl
import hashlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

REPO = pathlib.Path(__file__).resolve().parent.parent
PINS = REPO / "cmake" / "cuda-wheels.txt"
PLATFORM = ["--only-binary", ":all:", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
PARTS = ("compiler", "libraries", "sanitizer")
NETWORK_S = 60
MEMBERS_MAX = 20000
UNPACKED_MAX = 4 << 30
HEADERS_MAX = 64 << 20
BLOCK = 1 << 18


class Failed(Exception):
    pass


class Pin:
    def __init__(self, name, version, megabytes, part, sha256):
        self.name, self.version, self.part, self.sha256 = name, version, part, sha256
        self.bytes_max = int(megabytes) << 20
        self.headers = None

    @property
    def requirement(self):
        return f"{self.name}=={self.version}"


def read_pins():
    pins = {}
    for number, line in enumerate(PINS.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if len(words) == 3 and words[0] == "headers" and words[1] in pins:
            pins[words[1]].headers = words[2]
        elif len(words) == 5 and words[3] in PARTS:
            pins[words[0]] = Pin(*words)
        elif words:
            raise Failed(f"{PINS}:{number}: expected name, version, MB, part and sha256, or headers, name and sha256")
    return list(pins.values())


def run(arguments, what):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        last = ((done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"])[-1]
        raise Failed(f"{what}: {last}")


class Pip:
    """This Python's own pip, or, where the distribution packages pip separately, one in a temporary environment."""

    def __init__(self, scratch):
        self.python = sys.executable
        if not importlib.util.find_spec("pip"):
            run([sys.executable, "-m", "venv", str(scratch / "venv")], "neither pip nor venv in this Python")
            self.python = str(scratch / "venv" / "bin" / "python")

    def __call__(self, arguments, what):
        run([self.python, "-m", "pip", *arguments], what)


def file_digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def header_digest(root):
    """One hash over names and contents of the headers, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()):
        content = hashlib.sha256((root / path).read_bytes()).hexdigest()
        digest.update(f"{content}  {path}\n".encode())
    return digest.hexdigest()


def unpack(archive, target, wanted):
    """Members below nvidia/; the two trees in which NVIDIA ships them become one."""
    members = [m for m in archive.infolist() if not m.is_dir() and wanted(m.filename)]
    if len(members) > MEMBERS_MAX or sum(m.file_size for m in members) > UNPACKED_MAX:
        raise Failed(f"{len(members)} members: expected a smaller wheel")
    for member in members:
        parts = pathlib.PurePosixPath(member.filename).parts
        if ".." in parts or len(parts) < 4 or parts[0] != "nvidia":
            raise Failed(f"{member.filename}: expected nvidia/FOLDER/KIND/FILE")
        path = target.joinpath(*parts[2:])
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, open(path, "wb") as file:
            shutil.copyfileobj(source, file, BLOCK)
        path.chmod(0o755 if member.external_attr >> 16 & 0o100 else 0o644)


def is_part(name):
    return name.startswith("nvidia/")


def is_header(name):
    return name.startswith(("nvidia/cu13/include/", "nvidia/nccl/include/"))


class Ranges(io.RawIOBase):
    """A file at an address, read block by block as zipfile requests it."""

    def __init__(self, url):
        super().__init__()
        self.url, self.at, self.blocks = url, 0, {}
        with self.get("bytes=0-0") as answer:
            self.size = int(answer.headers["Content-Range"].rpartition("/")[2])

    def get(self, span):
        request = urllib.request.Request(self.url, headers={"Range": span, "Accept-Encoding": "identity"})
        answer = urllib.request.urlopen(request, timeout=NETWORK_S)
        if answer.status != 206:
            raise Failed("the index gives no ranges")
        return answer

    def block(self, index):
        if index not in self.blocks:
            if len(self.blocks) * BLOCK > HEADERS_MAX:
                raise Failed("the headers are too far from each other")
            with self.get(f"bytes={index * BLOCK}-{min((index + 1) * BLOCK, self.size) - 1}") as answer:
                self.blocks[index] = answer.read(BLOCK)
        return self.blocks[index]

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def readinto(self, buffer):
        index, skip = divmod(self.at, BLOCK)
        part = self.block(index)[skip : skip + len(buffer)] if self.at < self.size else b""
        buffer[: len(part)] = part
        self.at += len(part)
        return len(part)


def addresses(pip, pins, scratch):
    """Where pip would fetch each wheel from, without fetching it."""
    report = scratch / "report.json"
    pip(["install", "--dry-run", "--ignore-installed", "--target", str(scratch / "none"), *PLATFORM, "--report", str(report),
         *(p.requirement for p in pins)], "finding the wheels")  # fmt: skip
    found = {}
    for entry in json.loads(report.read_text())["install"]:
        info = entry["download_info"]
        found[entry["metadata"]["name"].lower().replace("_", "-")] = info["url"]
    return found


def fetch_headers(pip, pins, scratch, target):
    try:
        url = addresses(pip, pins, scratch)
        for pin in pins:
            headers = scratch / "headers" / pin.name
            with zipfile.ZipFile(io.BufferedReader(Ranges(url[pin.name]), BLOCK)) as archive:
                unpack(archive, headers, is_header)
            take_headers(pin, headers, target)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, Failed) as why:
        print(f"cuda-kit: headers by themselves: {why}; fetching the whole wheels", file=sys.stderr)
        for pin in pins:
            headers = scratch / "again" / pin.name
            with zipfile.ZipFile(fetch_wheel(pip, pin, scratch)) as archive:
                unpack(archive, headers, is_header)
            take_headers(pin, headers, target)


def take_headers(pin, headers, target):
    digest = header_digest(headers)
    if digest != pin.headers:
        raise Failed(f"{pin.requirement}: headers have sha256 {digest}, expected {pin.headers}")
    shutil.copytree(headers, target, dirs_exist_ok=True)


def fetch_wheel(pip, pin, scratch):
    """One wheel, checked by pip and once more here."""
    folder = scratch / "wheels" / pin.name
    listing = scratch / f"{pin.name}.txt"
    listing.write_text(f"{pin.requirement} --hash=sha256:{pin.sha256}\n")
    pip(["download", *PLATFORM, "--require-hashes", "--dest", str(folder), "--requirement", str(listing)], pin.requirement)
    (wheel,) = folder.glob("*.whl")
    if wheel.stat().st_size > pin.bytes_max or file_digest(wheel) != pin.sha256:
        raise Failed(f"{pin.requirement}: expected at most {pin.bytes_max} bytes with sha256 {pin.sha256}")
    return wheel


def fetch_whole(pip, pins, scratch, target):
    for pin in pins:
        wheel = fetch_wheel(pip, pin, scratch)
        with zipfile.ZipFile(wheel) as archive:
            unpack(archive, target, is_part)
        wheel.unlink()


def make(part, target, stamp):
    pins = read_pins()
    with tempfile.TemporaryDirectory(prefix=".cuda-", dir=target.parent) as folder:
        scratch = pathlib.Path(folder)
        fresh = scratch / "kit"
        fresh.mkdir()
        pip = Pip(scratch)
        fetch_whole(pip, [p for p in pins if p.part == part], scratch, fresh)
        if part == "compiler":
            fetch_headers(pip, [p for p in pins if p.headers], scratch, fresh)
        (fresh / ".pins").write_text(stamp)
        if target.exists():
            os.rename(target, scratch / "old")
        os.rename(fresh, target)


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in PARTS:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    part, target = arguments[0], pathlib.Path(arguments[1]).resolve()
    stamp = f"{part} {file_digest(PINS)}\n"
    if target.exists() and not (target / ".pins").exists():
        raise Failed(f"{target}: not a folder of ours; expected none, or one that this script has made")
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f".{target.name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists() or (target / ".pins").read_text() != stamp:
            make(part, target, stamp)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Failed, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"cuda-kit: {error}", file=sys.stderr)
        sys.exit(1)
