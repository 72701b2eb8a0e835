"""conftest.py - a namespace per case, a folder for its pods on both nodes, and both nodes well again after each case."""

import tempfile
import uuid
from pathlib import Path

import pytest
from kube import kubectl, namespace_told
from twonodes import bring_back, pin_operator


@pytest.fixture(scope="session", autouse=True)
def operator_on_the_first_node():
    """The faults are the second node's; the operator's own are a case of their own."""
    pin_operator()


@pytest.fixture
def ns():
    name = f"nodes-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def data(ns):
    """The folder that the pods of a case share as /data, removed after they have ended: those of a lost node when it is back."""
    with tempfile.TemporaryDirectory(prefix="e2e-") as folder:
        yield Path(folder)
        bring_back()
        kubectl("-n", ns, "delete", "ptj", "--all", "--cascade=foreground")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and report.failed and "ns" in item.fixturenames:
        report.sections.append(("the namespace", namespace_told(item.funcargs["ns"])))
    return report
