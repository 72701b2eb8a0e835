"""values.py - the values of the shapes, as raw JSON, since a library would clean them. One that depends on the size that its row asks
for is a function of it."""

import json

from mutations import POD_FIELDS
from plane import GROUP

# In a body these stand for the value, the object's name, and the name and UID of a job of the same tenant that runs.
RAW, NAME, OWNER, OWNER_UID = "@raw@", "@name@", "@owner@", "@uid@"
SMALL, LARGE, MOST = 30_000, 600_000, 1_350_000  # the operator makes pods of SMALL ones; etcd takes 1.5 MB


def text(unit):
    """A string that repeats the unit up to the size that the row asks for."""
    return lambda size: b'"' + unit * (size // len(unit)) + b'"'


TEXTS = {
    "plain": text(b"x"), "less-than": text(b"<"), "greater-than": text(b">"), "ampersand": text(b"&"), "blank": text(b" "),
    "line-separator": text("\u2028".encode()), "paragraph-separator": text("\u2029".encode()), "bidi": text("\u202e".encode()),
    "emoji": text("\U0001f600".encode()), "accents": text("e\u0301".encode()), "delete": text(b"\x7f"), "quotes": text(rb'\"'),
    "backslashes": text(rb"\\"), "newlines": text(rb"\n"), "controls": text(rb"\u0001"), "escaped-ascii": text(rb"\u0078"),
    "nul": b'"a\\u0000b"', "nuls": text(rb"\u0000"), "high-surrogates": text(rb"\ud800"), "low-surrogates": text(rb"\udc00"),
    "reversed-pairs": text(rb"\udc00\ud800"), "escaped-pairs": text(rb"\ud83d\ude00"), "half-pair-at-end": b'"x\\ud83d"',
    "not-utf8": text(b"\xff"), "overlong": text(b"\xc0\x80"), "utf8-surrogates": text(b"\xed\xa0\x80"), "raw-controls": text(b"\x01"),
    "bad-escape": rb'"\x41"', "half-escape": rb'"\u12"',
}
KEYS = {name: TEXTS[name] for name in ("plain", "less-than", "line-separator", "quotes", "backslashes", "controls", "nul", "high-surrogates",
                                       "escaped-pairs", "not-utf8")}
ESCAPED = {name: TEXTS[name] for name in ("plain", "less-than", "ampersand", "line-separator", "quotes", "controls", "nul")}
WIDE = {name: TEXTS[name] for name in ("plain", "less-than", "line-separator", "nul")}
KEY_WITH_NUL = {
    "service-account": b'"serviceAccountName\\u0000x"', "containers": b'"containers\\u0000"', "node": b'"nodeName\\u0000x"',
    "host-network": b'"hostNetwork\\u0000"', "first": b'"\\u0000"', "status": b'"status\\u0000x"',
}

DEPTHS = (10, 20, 60, 63, 64, 65, 70, 100, 500, 1000, 5000, 9980, 10001, 100_000)
def nested(left, right):
    return {n: left * n + b"1" + right * n for n in DEPTHS}


MAPS = {f"maps-{n}": value for n, value in nested(b'{"a":', b"}").items()}
LISTS = {f"lists-{n}": value for n, value in nested(b"[", b"]").items()}
NESTED = {**MAPS, **LISTS, "both-100": b'[{"a":' * 50 + b"}]" * 50, "both-64": b'[{"a":' * 32 + b"1" + b"}]" * 32, "unclosed-70": b"[" * 70,
          "unclosed-100000": b"[" * 100_000}

NUMBERS = {word.decode(): word for word in (
    b"0", b"-0", b"-1", b"0.1", b"1.5", b"1e2", b"1E+2", b"2147483647", b"2147483648", b"4294967296", b"9007199254740991", b"9007199254740992",
    b"9007199254740993", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616",
    b"123456789012345678901234567890", b"1e308", b"1.7976931348623157e308", b"1e309", b"-1e400", b"1e99999", b"5e-324", b"1e-400",
    b"1.00000000000000000000000000000000001", b"NaN", b"Infinity", b"01", b"+1", b".5", b"1.", b"0x10")}
NUMBERS["digits-10000"] = b"7" * 10_000
LIMITS = {word: NUMBERS[word] for word in ("0", "-1", "1.5", "1e2", "2147483647", "2147483648", "9007199254740993", "9223372036854775807",
                                           "9223372036854775808", "1e308", "1e309")}


def many(unit, join=b","):
    """A list of the unit, up to the size; %d in it becomes the element's number."""
    def value(size):
        each = unit % 1234567 if b"%d" in unit else unit
        n = size // (len(each) + 1)
        return b"[" + join.join(unit % i if b"%d" in unit else unit for i in range(n)) + b"]"
    return value


def members(unit):
    return lambda size: b"{" + many(unit)(size)[1:-1] + b"}"


MANY = {
    "numbers": many(b"1"), "objects": many(b"{}"), "lists": many(b"[]"), "nulls": many(b"null"), "empty-strings": many(b'""'),
    "keys": members(b'"%d":1'), "fractions": many(b"0.1"), "pairs": many(b'{"a":1}'), "blanks": many(b"1", b",      "),
}
MANY_TYPED = {  # place: (path in the container, the pod or the metadata, value)
    "env": many(b'{"name":"E%d","value":"1"}'), "args": many(b'"x"'), "ports": many(b'{"containerPort":1,"name":"p%d"}'),
    "volumes": many(b'{"name":"v%d","emptyDir":{}}'), "tolerations": many(b'{"key":"k%d","operator":"Exists"}'),
    "limits": members(b'"a.b/l%d":1'), "requests": members(b'"a.b/r%d":"1"'),
    "pull-secrets": many(b'{"name":"s%d"}'), "node-selector": members(b'"k%d":"v"'), "gates": many(b'{"name":"a.b/g%d"}'),
    "finalizers": many(b'"a.b/f%d"'), "pod-labels": members(b'"l%d":"v"'), "labels": members(b'"l%d":"v"'),
    "annotations": members(b'"a%d":"<"'), "pod-annotations": members(b'"a%d":"<"'),
    "owners": many(b'{"apiVersion":"v1","kind":"Pod","name":"o%d","uid":"u%d"}'.replace(b'"u%d"', b'"u"')),
    "managed-fields": many(b'{"manager":"m%d","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}'),
}

NAMES = {f"{len(name)}-{what}": json.dumps(name).encode() for what, name in [
    *(("letters", "a" * n) for n in (1, 2, 40, 55, 56, 57, 58, 59, 62, 63, 64, 100, 200, 240, 253, 254, 1000, 100_000)),
    ("digits", "7" * 9), ("dots", "a.b.c"), ("many-dots", ".".join("a" * 100)), ("upper", "Upper"), ("blank", "a b"), ("empty", ""),
    ("slash", "a/b"), ("up", ".."), ("escape", "a<b"), ("accent", "caf\u00e9"), ("nul", "a\0b"), ("ends-in-index", "a-node-0"),
    ("rdzv", "a-rdzv"), ("tensorboard", "a-tensorboard"), ("like-a-flag", "--help"), ("double-dash", "a--b"), ("percent", "a%2fb")]}

REFUSED = {f"{number}-{field}": (field, value) for number, (field, value) in enumerate(POD_FIELDS)}

MINE = {"apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "name": OWNER, "uid": OWNER_UID, "controller": True}


def refs(*owners):
    return json.dumps(owners).encode()


OWNERS = {
    "none": b"[]", "null": b"null", "mine": refs(MINE), "not-controller": refs({**MINE, "controller": False}),
    "wrong-uid": refs({**MINE, "uid": "00000000-0000-0000-0000-000000000000"}), "empty-uid": refs({**MINE, "uid": ""}),
    "uid-of-100-bytes": refs({**MINE, "uid": "u" * 100}), "uid-of-650-kb": refs({**MINE, "uid": "u" * 650_000}),
    "uid-of-1300-kb": refs({**MINE, "uid": "u" * 1_300_000}), "uid-of-escapes": refs({**MINE, "uid": "<" * 650_000}),
    "uid-with-nul": refs({**MINE, "uid": "a\0b"}), "uid-of-a-surrogate": refs({**MINE, "uid": "\ud800"}), "uid-like-a-path": refs({**MINE, "uid": "../.."}),
    "two-long-uids": refs({**MINE, "uid": "u" * 650_000}, {**MINE, "uid": "v" * 650_000, "controller": False}),
    "long-name": refs({**MINE, "name": "n" * 650_000}), "other-name": refs({**MINE, "name": "somebody-else"}),
    "other-kind": refs({**MINE, "kind": "Job"}), "other-group": refs({**MINE, "apiVersion": "batch/v1"}),
    "long-kind": refs({**MINE, "kind": "K" * 650_000}), "no-version": refs({**MINE, "apiVersion": ""}), "two-controllers": refs(MINE, MINE),
    "thousands": refs(*({**MINE, "uid": f"u{i}", "controller": i == 0} for i in range(5000))),
    "many-small": refs(*({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"} for _ in range(25_000))),
}
LABELS = {f"{key}={value}"[:60]: json.dumps({f"{GROUP}/job": OWNER, f"{GROUP}/{key}": value}).encode() for key, value in [
    *(("attempt", v) for v in ("", "-1", "0", "x", "99999999999", "2147483648", "9" * 63, "1.5", "00")),
    *(("replica-index", v) for v in ("", "-1", "x", "0", "1", "1024", "2147483648", "9" * 63)),
    *(("replica-type", v) for v in ("", "node", "x" * 63, "UPPER", "a.b")),
    *(("restart", v) for v in ("", "-1", "7", "2147483647", "99999999999")), *(("template-hash", v) for v in ("", "0" * 63)),
    *(("job", v) for v in ("", "nobody", "x" * 63, "victim"))]}

# (what stands in the body, what is put in its place): for shapes that no tree has.
EDITS = {
    "kind-twice": (b'"kind":', b'"kind":"Pod","kind":'), "name-twice": (b'"name": "@name@"', b'"name":"first","name":"@name@"'),
    "metadata-twice": (b'"metadata":', b'"metadata":{"name":"first"},"metadata":'),
    "metadata-of-numbers": (b'"metadata":', b'"metadata":{"uid":7,"labels":[],"annotations":{"a":7}},"metadata":'),
    "spec-twice": (b'"spec": {"replicaSpecs"', b'"spec":{"replicaSpecs":[]},"spec":{"replicaSpecs"'),
    "Spec": (b'"spec": {"replicaSpecs"', b'"Spec":{"replicaSpecs":[]},"spec":{"replicaSpecs"'),
    "template-twice": (b'"template":', b'"template":{"spec":{"containers":[{"name":"a","image":"none"}]}},"template":'),
    "account-twice": (b'"containers":', b'"serviceAccountName":"powerful","serviceAccountName":"default","containers":'),
    "account-by-case": (b'"containers":', b'"ServiceAccountName":"powerful","containers":'),
    "account-by-escape": (b'"containers":', b'"serviceAccount\\u004eame":"default","containers":'),
    "uid-given": (b'"name": "@name@"', b'"name":"@name@","uid":"00000000-0000-0000-0000-000000000000"'),
    "version-given": (b'"name": "@name@"', b'"name":"@name@","resourceVersion":"18446744073709551616"'),
    "generation-given": (b'"name": "@name@"', b'"name":"@name@","generation":9223372036854775807'),
    "deleted-given": (b'"name": "@name@"', b'"name":"@name@","deletionTimestamp":"2020-01-01T00:00:00Z"'),
    "created-given": (b'"name": "@name@"', b'"name":"@name@","creationTimestamp":"9999-12-31T23:59:59Z"'),
    "name-generated": (b'"name": "@name@"', b'"generateName":"' + b"g" * 240 + b'"'),
    "namespace-of-another": (b'"name": "@name@"', b'"name":"@name@","namespace":"kube-system"'),
    "comment": (b'"spec":', b'/* */"spec":'), "byte-order-mark": (b'{"apiVersion"', b'\xef\xbb\xbf{"apiVersion"'),
    "two-objects": (b'{"apiVersion"', b'{}{"apiVersion"'), "a-list-of-jobs": (b'"kind": "PyTorchTrainingJob"', b'"kind":"PyTorchTrainingJobList","items":[]'),
    "blanks": (b'"spec":', b" " * 2_000_000 + b'"spec":'), "too-much": (b'"spec":', b" " * 3_200_000 + b'"spec":'),
}

REPLICAS = {f"{n}-{kind}": spec for kind, spec_of in {
    "of-one-type": lambda n: {"replicas": n}, "suspended": lambda n: {"replicas": n, "suspend": True},
    "of-16-types": lambda n: {"replicas": n // 16, "types": 16}, "of-20-kb": lambda n: {"replicas": n, "ballast": 20_000}}.items()
    for n, spec in ((1024, spec_of(1024)), (1040, spec_of(1040)))}
