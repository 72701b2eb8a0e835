"""conftest.py - a namespace per case, the operator under fire where a case asks for it, and what a failed case saw."""

import uuid

import pytest
from kube import SYSTEM, OperatorKiller, kubectl, namespace_told, wait_for


@pytest.fixture
def ns():
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and report.failed and "ns" in getattr(item, "funcargs", {}):
        report.sections.append(("the namespace", namespace_told(item.funcargs["ns"])))
    return report


@pytest.fixture(params=["calm", "operator-killed"])
def weather(request):
    """Each case that uses it runs twice; the second time the operator is killed again and again meanwhile."""
    kubectl("-n", SYSTEM, "rollout", "status", "deployment", "torchkeeper-operator", "--timeout=60s")
    if request.param == "calm":
        yield None
        return
    killer = OperatorKiller()
    killer.start()
    yield killer
    killer.join(timeout=120)
    assert killer.killed == killer.times, "the operator was not killed as often as planned"
    wait_for("the operator to be back", lambda: "1/1" in kubectl("-n", SYSTEM, "get", "deployment", "--no-headers"), 60)
