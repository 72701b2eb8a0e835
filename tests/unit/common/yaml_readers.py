"""yaml_readers.py TEST_YAML_WRITE - PyYAML, a reader of YAML 1.1, reads what common/yaml_write.c writes as the same values."""
import json
import pathlib
import subprocess
import sys
import tempfile

import yaml

FILES = 3


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    number = isinstance(a, (int, float)) and not isinstance(a, bool)
    return a == b and (type(a) is type(b) or (number and not isinstance(b, bool)))


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder, str(FILES)], check=True)
    for i in range(FILES):
        want = json.loads(pathlib.Path(folder, f"{i}.json").read_text(encoding="utf-8"))
        text = pathlib.Path(folder, f"{i}.yaml").read_bytes()
        got = yaml.safe_load(text)
        if not same(want, got):
            for w, g in zip(want, got):
                if not same(w, g):
                    sys.exit(f"expected {w!r}\n     got {g!r}\nfile {i}.yaml")
            sys.exit(f"{i}.yaml: {len(got)} items, expected {len(want)}")
print(f"{FILES} files of 100 trees: the same values")
