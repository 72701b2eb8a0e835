"""jobs.py - small jobs whose pods are a shell script in the trainer image."""

from kube import GROUP, IMAGE


def container(script, command=None, **more):
    # ATTEMPT comes from the label that the operator gives each pod.
    attempt = {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{GROUP}/attempt']"}}}
    return {
        "name": "pytorch", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
        "env": [attempt], "command": command or ["sh", "-c", script],
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}, **more,
    }


def replica(script, type_="node", replicas=1, policy="ExitCode", **more):
    return {
        "type": type_, "replicas": replicas, "restartPolicy": policy,
        "template": {"spec": {"containers": [container(script, **more)], "terminationGracePeriodSeconds": 5}},
    }


def beside(replica, script, name="uploader"):
    """Return the replica with one more container."""
    replica["template"]["spec"]["containers"].append(container(script, name=name))
    return replica


def job(name, *replicas, **spec):
    return {
        "apiVersion": f"{GROUP}/v1beta1", "kind": "PyTorchTrainingJob", "metadata": {"name": name},
        "spec": {"replicaSpecs": list(replicas), **spec},
    }


def until(file):
    """A script that ends when the test makes this file; for a job that is `mounted`."""
    return f"until [ -e /data/{file} ]; do sleep 0.2; done"


def mounted(data, job):
    """Return the job with a folder of this machine mounted as /data, writable for every user."""
    data.chmod(0o777)
    for replica in job["spec"]["replicaSpecs"]:
        pod = replica["template"]["spec"]
        pod["volumes"] = [{"name": "data", "hostPath": {"path": str(data), "type": "Directory"}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return job


def pod(name, script):
    """A pod that belongs to no job."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container(script, env=[])], "terminationGracePeriodSeconds": 1},
    }
