"""schema.py - every field of the CRD's schema, in a job that is good but for one change to that field. No field is named here, except where a
valid job needs more than the schema requires."""

import copy

LONG = 100_000
UNICODE = "caf\u00e9 \u202e\u0000 \U0001f600"
WRONG = {"string": [7, True, [], {}], "integer": ["7", 1.5, True, [], {}], "boolean": ["true", 1, [], {}],
         "array": ["x", 7, {}], "object": ["x", 7, True, []]}
HUGE = [-1, 0, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 1e300, -2**63]
ANY = {"x-kubernetes-int-or-string": True}
# What a good job has to say beside the field, where the schema alone does not ask for it: else another field would be refused.
GOOD = {("tensorboardSpec",): {"logDir": {"pvc": [{"name": "p"}]}}}


class Missing:
    pass


def example(schema):
    """A small value that the schema takes."""
    if "default" in schema:
        return copy.deepcopy(schema["default"])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: example(schema["properties"][name]) for name in schema.get("required", [])}
    if kind == "array":
        return [example(schema["items"])] * max(1, schema.get("minItems", 0))
    return {"integer": schema.get("minimum", 1), "boolean": False}.get(kind, "node")


def fields(schema, path=()):
    """(path, schema) of each node below `schema`; 0 stands for the elements of an array."""
    for name, inner in schema.get("properties", {}).items():
        yield path + (name,), inner
        yield from fields(inner, path + (name,))
    if "items" in schema:
        yield path + (0,), schema["items"]
        yield from fields(schema["items"], path + (0,))


def place(root, schema, path, value):
    """Puts value at the path; what is missing on the way is made as the schema asks for it."""
    at = root
    for n, (step, after) in enumerate(zip(path, path[1:]), 1):
        schema = schema["items"] if step == 0 else schema["properties"][step]
        if step == 0:
            if not at:
                at.append(example(schema))
            at = at[0]
        else:
            if not isinstance(at.get(step), (dict, list)):
                at[step] = copy.deepcopy(GOOD[path[:n]]) if path[:n] in GOOD else example(schema) if schema.get("type") != "array" or after != 0 else []
            at = at[step]
    if value is Missing:
        if path[-1] == 0:
            at.clear()
        else:
            at.pop(path[-1], None)
    elif path[-1] == 0:
        at[:] = [value]
    else:
        at[path[-1]] = value


def strings(schema):
    yield from ("", " ", "x", UNICODE, "x" * LONG, "../..", "$(X)", "node\nnode")
    if "maxLength" in schema:
        yield "x" * schema["maxLength"]
        yield "x" * (schema["maxLength"] + 1)
    yield from schema.get("enum", [])


def numbers(schema):
    yield from HUGE
    for bound, over in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            yield schema[bound]
            yield schema[bound] + over


def arrays(schema):
    one = example(schema["items"])
    yield []
    yield [None]
    yield [one, one]
    if "maxItems" in schema:
        yield [one] * schema["maxItems"]
        yield [dict(one, type=f"t{i}") if isinstance(one, dict) and "type" in one else one for i in range(schema["maxItems"] + 1)]


def values(schema):
    """What one field is changed to."""
    kind = schema.get("type")
    yield Missing
    yield None
    yield from WRONG.get(kind, [1.5, True, [], {}])
    if kind == "string" or kind is None:
        yield from strings(schema)
    if kind == "integer" or kind is None:
        yield from numbers(schema)
    if kind == "array":
        yield from arrays(schema)
    if kind == "object":
        yield {}
        yield {"noSuchField": 1}
        yield {UNICODE: UNICODE}
    if kind == "boolean":
        yield from (True, False)


def shown(path):
    text = ""
    for step in path:
        text += "[0]" if step == 0 else f".{step}"
    return text.lstrip(".")


def mutations(schema, base):
    """(what, path, job's spec) for every field and value, each once."""
    for path, inner in fields(schema):
        seen = []
        for value in values(inner):
            key = (type(value), value if value is not Missing else None)
            if key in seen:
                continue
            seen.append(key)
            spec = copy.deepcopy(base)
            place(spec, schema, path, value)
            what = "missing" if value is Missing else repr(value)
            yield f"{shown(path)} = {what if len(what) < 60 else what[:57] + '...'}", path, spec
