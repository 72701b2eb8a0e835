"""The operator's own node dies: the other replica leads, and a job whose pods were on both nodes trains again."""

from kube import SYSTEM, items, kubectl, wait_for
from twonodes import NODE1, NODE2, begun, node2, pin_operator, set_operator, was_hurt_once

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


def second_leads():
    """Takes the lease from the other one; its successor may be quicker than the second node's."""
    now = leader()
    if now == NODE1:
        kubectl("-n", SYSTEM, "delete", "pod", *(pod for pod, node in operators().items() if node == NODE1))
    return now == NODE2


def one_on_each_node():
    """Two replicas; the one on the second node leads."""
    apart = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": dict(p.split("=") for p in OPERATOR.split(","))},
             "matchLabelKeys": ["pod-template-hash"]}
    set_operator(2, nodeSelector=None, topologySpreadConstraints=[apart])
    wait_for("the leader on the second node", second_leads)
    wait_for("an operator on each node", lambda: sorted(operators().values()) == [NODE1, NODE2])


def test_the_operators_node_dies(ns, data):
    one_on_each_node()
    try:
        begun(ns, data)
        node2("down")
        wait_for("the other leader", lambda: leader() == NODE1)
        was_hurt_once("hurt", ns, data, "DeletionByTaintManager")
    finally:
        pin_operator()
