"""The operator's own node dies: the other replica leads, and a job whose pods were on both nodes trains again."""

from kube import SYSTEM, items, kubectl, wait_for
from twonodes import (LAUNCHED, NODE1, NODE2, UNHURT, as_if_nothing_had_been, at_home, counts, ended, in_training, node2,
                      pin_operator, set_operator, train)

OPERATOR = "app.kubernetes.io/name=torchkeeper,app.kubernetes.io/component=operator"


def operators():
    """Node by pod, of those that are ready."""
    return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in items("pods", SYSTEM, OPERATOR)
            if not p["metadata"].get("deletionTimestamp")
            and any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))}


def leader():
    """The node of the operator that holds the lease."""
    holder = kubectl("-n", SYSTEM, "get", "lease", "torchkeeper-operator", "-o", "jsonpath={.spec.holderIdentity}", check=False)
    return next((node for pod, node in operators().items() if holder.startswith(pod)), None)


def one_on_each_node():
    """Two replicas; the one on the second node leads."""
    apart = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": dict(p.split("=") for p in OPERATOR.split(","))}, "matchLabelKeys": ["pod-template-hash"]}
    set_operator(2, nodeSelector=None, topologySpreadConstraints=[apart])
    wait_for("an operator on each node", lambda: sorted(operators().values()) == [NODE1, NODE2])
    if wait_for("a leader", leader) == NODE1:
        (first,) = (pod for pod, node in operators().items() if node == NODE1)
        kubectl("-n", SYSTEM, "delete", "pod", first)
        wait_for("the other leader", lambda: leader() == NODE2)
        wait_for("an operator on each node", lambda: sorted(operators().values()) == [NODE1, NODE2])


def test_the_operators_node_dies(ns, data):
    one_on_each_node()
    try:
        train("hurt", data, ns, torchrun=LAUNCHED)
        at_home("hurt", ns)
        in_training("hurt", ns, data)
        node2("down")
        wait_for("the other leader", lambda: leader() == NODE1)
        end = ended("hurt", ns)
        assert counts(end) == {**UNHURT, "attempt": 1, "disruptionCount": 1}
        assert end["lastFailure"]["node"] == NODE2
        as_if_nothing_had_been("hurt", ns, data, LAUNCHED)
    finally:
        pin_operator()
