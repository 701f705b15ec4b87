"""The fields of the OpenShift API's objects that this collection uses, with their types."""

from __future__ import annotations

from ..shapes import Shape

CONDITIONS: Shape = [{"type!": str, "status!": str, "reason": str, "message": str, "lastTransitionTime": str}]
_METADATA: Shape = {"name!": str, "namespace": str, "labels": {"*": str}}
_STATUS: Shape = {"conditions": CONDITIONS}
_OBJECT: Shape = {"metadata!": _METADATA, "status": _STATUS}
_EXIT: Shape = {"exitCode": int, "reason": str, "message": str}
_STATE: Shape = {"waiting": {"reason": str, "message": str}, "terminated": _EXIT}
_CONTAINERS: Shape = [{"ready": bool, "restartCount": int, "state": _STATE, "lastState": _STATE}]
_NODE: Shape = {
    "metadata!": _METADATA,
    "spec": {"taints": [{"key!": str}]},
    "status": {
        "conditions": CONDITIONS,
        "addresses": [{"type!": str, "address!": str}],
        "nodeInfo": {"architecture": str},
    },
}
_POD: Shape = {
    "metadata!": _METADATA,
    "status": {"phase": str, "conditions": CONDITIONS, "initContainerStatuses": _CONTAINERS, "containerStatuses": _CONTAINERS},
}  # fmt: skip
_REQUEST: Shape = {
    "metadata!": _METADATA,
    "spec!": {"signerName": str, "username": str, "request": str},
    "status": {"conditions": [{"type!": str}]},
}
_POOL: Shape = {"configuration": {"name": str}}
_ADDRESSES: Shape = {"apiServerInternalIPs": [str], "ingressIPs": [str]}

CONFIG_MAP: Shape = {"data": {"*": str}}
SECRET: Shape = {"data": {"*": str}}
NODES: Shape = {"items!": [_NODE]}
CERTIFICATE_REQUESTS: Shape = {"items!": [_REQUEST]}
CLUSTER_VERSION: Shape = {"status": {"conditions": CONDITIONS, "desired": {"version": str}}}
CLUSTER_OPERATORS: Shape = {"items!": [_OBJECT]}
PODS: Shape = {"items!": [_POD]}
JOB: Shape = {"status": {"succeeded": int}}
ROUTE: Shape = {
    "spec": {"tls": dict},
    "status": {"ingress": [{"host": str, "conditions": CONDITIONS}]},
}
INFRASTRUCTURE: Shape = {
    "spec": {"platformSpec": {"external": {"platformName": str}}},
    "status": {
        "platformStatus": {
            "type": str,
            "baremetal": _ADDRESSES,
            "vsphere": _ADDRESSES,
            "nutanix": _ADDRESSES,
            "openstack": _ADDRESSES,
            "external": {"cloudControllerManager": {"state": str}},
        }
    },
}
_NETWORKS: Shape = {
    "networkType": str,
    "clusterNetwork": [{"cidr": str, "hostPrefix": int}],
    "serviceNetwork": [str],
}
NETWORK: Shape = {"spec": _NETWORKS, "status": _NETWORKS}
BARE_METAL_HOSTS: Shape = {"items!": [{"metadata!": _METADATA, "spec": {"bmc": {"address": str}}}]}
POOL: Shape = {"status": _POOL, "spec": _POOL}
SSH_KEYS = "sshAuthorizedKeys"
"""Field of a user in Ignition: the keys that may log in."""
_USERS: Shape = {"users": [{SSH_KEYS: [str]}]}
MACHINE_CONFIG: Shape = {
    "metadata": {"name": str},
    "spec": {"fips": bool, "config": {"passwd": _USERS}},
}
_MIRRORS: Shape = [{"source!": str, "mirrors": [str]}]
MIRRORS: Shape = {"items": [{"spec": {"imageDigestMirrors": _MIRRORS, "repositoryDigestMirrors": _MIRRORS}}]}
RESOURCES: Shape = {"resources": [{"name!": str, "kind!": str, "namespaced!": bool}]}
INSTALL_CONFIG: Shape = {"networking": {"machineNetwork": [{"cidr": str}]}}
