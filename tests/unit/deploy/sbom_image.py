"""sbom_image.py TREE - deploy/images/sbom-image.sh on this machine: the document is SPDX 2.3 and holds every package that is
installed, what pip put into a folder, wheels of the list by name, and our own files with their sums; nothing that is missing
is passed over.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TREE = Path(sys.argv[1])
SBOM = TREE / "deploy" / "images" / "sbom-image.sh"
WHEELS = TREE / "cmake" / "cuda-wheels.txt"
PURL = r"pkg:(deb/[a-z]+/[A-Za-z0-9.%-]+@[A-Za-z0-9.~%-]+\?arch=[a-z0-9]+|pypi/[a-z0-9._-]+@[A-Za-z0-9.%-]+)"


def sbom(*args):
    return subprocess.run([SBOM, "thing", "1.2.3", *map(str, args)], text=True, capture_output=True)


def installed():
    text = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n"], check=True, text=True,
                          capture_output=True).stdout
    return sorted(tuple(line.split()[1:]) for line in text.splitlines() if line.startswith("installed "))


def check_valid(document):
    """What the specification demands of a document, its packages and relationships."""
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    assert document["SPDXID"] == "SPDXRef-DOCUMENT" and document["name"] == "thing-1.2.3"
    assert re.fullmatch(r"https://[^\s#]+", document["documentNamespace"])
    assert document["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
    names = [p["SPDXID"] for p in document["packages"]]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", n) for n in names)
    for p in document["packages"]:
        assert p["name"] and p["versionInfo"] and p["downloadLocation"] == "NOASSERTION" and p["filesAnalyzed"] is False
        for ref in p.get("externalRefs", []):
            assert (ref["referenceCategory"], ref["referenceType"]) == ("PACKAGE-MANAGER", "purl")
            assert re.fullmatch(PURL, ref["referenceLocator"]), ref
    inside = [r["relatedSpdxElement"] for r in document["relationships"] if r["relationshipType"] == "CONTAINS"]
    assert sorted(inside) == sorted(n for n in names if n != "SPDXRef-Image")


def add_dist(folder, name, metadata):
    (folder / f"{name}.dist-info").mkdir(parents=True)
    (folder / f"{name}.dist-info" / "METADATA").write_text(metadata)


def main():
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        add_dist(top / "dists", "Some_Thing-2.0+x", "Metadata-Version: 2.1\nName: Some_Thing\nVersion: 2.0+x\n\nName: not this\n")
        (top / "program").write_bytes(b"ours")
        args = ["--file", top / "program", "--dists", top / "dists", "--wheels", WHEELS, "nvidia-cublas"]
        done = sbom(*args)
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        check_valid(document)
        by_type = {"deb": [], "pypi": [], "file": []}
        for p in document["packages"][1:]:
            by_type[p["SPDXID"].split("-")[1]].append(p)
        assert sorted((p["name"], p["versionInfo"]) for p in by_type["deb"]) == installed()
        assert [p["checksums"][0]["checksumValue"] for p in by_type["file"]] == [hashlib.sha256(b"ours").hexdigest()]
        row = next(line.split() for line in WHEELS.read_text().splitlines() if line.startswith("nvidia-cublas "))
        assert [(p["name"], p["versionInfo"]) for p in by_type["pypi"]] == [(row[0], row[1]), ("some_thing", "2.0+x")]
        assert by_type["pypi"][0]["checksums"][0]["checksumValue"] == row[4]
        assert sbom(*args).stdout == done.stdout
        add_dist(top / "nameless", "a-1", "Version: 1\n\n")
        (top / "empty").mkdir()
        for wrong in (["--file", top / "absent"], ["--dists", top / "empty"], ["--dists", top / "nameless"],
                      ["--wheels", WHEELS, "absent"], ["--what"]):
            refused = sbom(*wrong)
            assert refused.returncode != 0 and not refused.stdout, (wrong, refused)


main()
