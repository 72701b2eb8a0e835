"""conftest.py - a namespace per case, a folder for its pods, an OperatorKiller for the cases that use one, and a report of a
    failed case."""

import signal
import tempfile
import uuid
from pathlib import Path

import pytest
from kube import SYSTEM, OperatorKiller, kubectl, namespace_told, wait_for

# A background job ignores SIGINT, under nohup SIGHUP too, and programs inherit that: restore the defaults, since no case
# tests this.
for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL), (signal.SIGQUIT, signal.SIG_DFL)):
    signal.signal(number, default)


def make_namespace():
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


ns = pytest.fixture(make_namespace, name="ns")


@pytest.fixture
def data(ns):
    """The folder that the pods of a case share as /data, removed after the pods have ended."""
    with tempfile.TemporaryDirectory(prefix="e2e-") as folder:
        yield Path(folder)
        kubectl("-n", ns, "delete", "ptj", "--all", "--cascade=foreground")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and report.failed:
        if "ns" in item.fixturenames:
            report.sections.append(("the namespace", namespace_told(item.funcargs["ns"])))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Cases that take longest begin first: the last ones are short. e2e/run.sh chooses by the marks."""
    for item in items:
        if getattr(item, "callspec", None) and item.callspec.params.get("weather") == "operator-killed":
            item.add_marker("killed")
    items.sort(key=lambda item: item.get_closest_marker("early") is None)


@pytest.fixture(params=["calm", "operator-killed"])
def weather(request):
    """Run each case that uses it twice; the second time the operator is killed repeatedly."""
    kubectl("-n", SYSTEM, "rollout", "status", "deployment", "torchkeeper-operator", "--timeout=600s")
    if request.param == "calm":
        yield None
        return
    killer = OperatorKiller()
    killer.start()
    yield killer
    killer.join()  # each of its waits has a bound
    assert killer.killed == killer.times, "the operator was not killed as often as planned"
    wait_for("the operator to be back", lambda: "1/1" in kubectl("-n", SYSTEM, "get", "deployment", "--no-headers"))
