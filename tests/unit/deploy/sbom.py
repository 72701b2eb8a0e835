"""sbom.py TREE CC - deploy/images/sbom.sh of a small program that is linked like the operator: the document is SPDX 2.3,
names what is in the program and nothing else, and what belongs to nobody is an error.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TREE, CC = Path(sys.argv[1]), sys.argv[2]
SBOM = TREE / "deploy" / "images" / "sbom.sh"
PROGRAM = "#include <zlib.h>\nextern int ours(void), foreign(void);\nint main(void) { return ours() + foreign() + (int)zlibCompileFlags(); }\n"


def run(*args, **more):
    return subprocess.run([str(a) for a in args], check=True, text=True, capture_output=True, **more).stdout


def archive(folder, name):
    folder.mkdir()
    (folder / f"{name}.c").write_text(f"int {name}(void);\nint {name}(void) {{ return 1; }}\n")
    run(CC, "-c", "-fPIE", folder / f"{name}.c", "-o", folder / f"{name}.o")
    run("ar", "rcs", folder / f"lib{name}.a", folder / f"{name}.o")
    return folder / f"lib{name}.a"


def build(top):
    """The program; its own part is in "mine", and another archive is somebody else's."""
    ours, foreign = archive(top / "mine", "ours"), archive(top / "theirs", "foreign")
    (top / "mine" / "main.c").write_text(PROGRAM)
    run(CC, "-c", "-fPIE", top / "mine" / "main.c", "-o", top / "mine" / "main.o")
    run(CC, "-static-pie", f"-Wl,-Map={top}/map", top / "mine" / "main.o", ours, foreign, "-l:libz.a", "-l:libyaml.a", "-o",
        top / "program")


def sbom(top, *sources, **more):
    return subprocess.run([SBOM, top / "program", "1.2.3", top / "map", top / "mine", *sources], text=True,
                          capture_output=True, **more)


def source_of(file):
    package = run("dpkg-query", "-S", Path(file).resolve()).split(":")[0]
    return tuple(run("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}\n", package).splitlines()[0].split())


def expected(top):
    files = ["libc.a", "libz.a", "crtbeginS.o"]
    return {source_of(run(CC, f"-print-file-name={f}").strip()) for f in files} | {("elsewhere", "1:2.0+deb1~x")}


def check_valid(document):
    """What the specification demands of a document, its packages and relationships."""
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    assert document["SPDXID"] == "SPDXRef-DOCUMENT" and document["name"]
    assert re.fullmatch(r"https://[^\s#]+", document["documentNamespace"])
    info = document["creationInfo"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", info["created"])
    assert info["creators"] and all(re.match(r"(Tool|Person|Organization): \S", c) for c in info["creators"])
    names = [p["SPDXID"] for p in document["packages"]]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", n) for n in names)
    for p in document["packages"]:
        assert p["name"] and p["versionInfo"] and p["downloadLocation"] == "NOASSERTION" and p["filesAnalyzed"] is False
        for ref in p.get("externalRefs", []):
            assert (ref["referenceCategory"], ref["referenceType"]) == ("PACKAGE-MANAGER", "purl")
            assert re.fullmatch(r"pkg:deb/[a-z]+/[a-z0-9.+-]+@[A-Za-z0-9.~%-]+\?arch=source", ref["referenceLocator"])
    for r in document["relationships"]:
        assert r["spdxElementId"] in [*names, "SPDXRef-DOCUMENT"] and r["relatedSpdxElement"] in names
    linked = [r["relatedSpdxElement"] for r in document["relationships"] if r["relationshipType"] == "STATIC_LINK"]
    assert sorted(linked) == sorted(n for n in names if n != "SPDXRef-Program")


def main():
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        build(top)
        refused = sbom(top)
        assert refused.returncode != 0 and "libforeign.a is linked into" in refused.stderr, refused
        (top / "sources").write_text("libforeign.a elsewhere 1:2.0+deb1~x\nlibunused.a unused 1\n")
        done = sbom(top, top / "sources")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        check_valid(document)
        program, *parts = document["packages"]
        assert (program["name"], program["versionInfo"]) == ("program", "1.2.3")
        sum_ = hashlib.sha256((top / "program").read_bytes()).hexdigest()
        assert program["checksums"] == [{"algorithm": "SHA256", "checksumValue": sum_}]
        # libyaml was offered to the linker, and nothing of it taken.
        assert {(p["name"], p["versionInfo"]) for p in parts} == expected(top)
        assert sbom(top, top / "sources").stdout == done.stdout
        (top / "map").write_text("")
        assert sbom(top, top / "sources").returncode != 0


main()
