"""The swarm as an Indexed Job of a Kubernetes cluster: each pod runs one part of the swarm.

The manifests carry the program itself (`bundle`), so that any image with Python 3.11, aiohttp, PyYAML and cryptography
runs it. A pod needs no storage and no access to the API: it prints its report, which `swarm merge` reads from its log.
"""

from __future__ import annotations

import argparse
import base64
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....plugins.module_utils._deps import optional
from .bundle import write
from .settings import Settings, SwarmError

if TYPE_CHECKING:
    import yaml
else:
    yaml = optional("yaml")

Object = dict[str, Any]

MOUNT = "/swarm"
FILES = ("cacert", "kubeconfig", "template", "pull_secret_file")
"""Options whose files the Secret carries."""
TOKENS = ("PULL_SECRET_TOKEN", "USER_AUTH_TOKEN")
OURS = ("kubernetes", "image", "part", "report")
"""Options that a pod does not take from the command line of the user."""
NAMES = {"thresholds": "threshold"}
"""Options that are called differently than their value."""
MOST_BYTES = 1_000_000
"""Less than the 1 MiB that a ConfigMap or Secret may have (`MaxSecretSize` of Kubernetes)."""
GRACE_SECONDS = 300
"""For deleting the registered clusters when the Job is deleted."""
RESOURCES = {"requests": {"cpu": "1", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}
"""A pod is one process, which uses at most one core."""


def arguments(options: argparse.Namespace, defaults: argparse.Namespace) -> list[str]:
    """Return the options of a pod: those of a local run that are not their defaults, with files where a pod has them."""
    words = []
    for name, value in vars(options).items():
        if name in OURS or value == getattr(defaults, name):
            continue
        flag = f"--{NAMES.get(name, name).replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is False:
            words.append(f"--no-{name}")
        else:
            words.append(f"{flag}={f'{MOUNT}/files/{name}' if name in FILES else value}")
    # Kubernetes expands $(NAME) in arguments, and takes $$ for $.
    return [word.replace("$(", "$$(") for word in [*words, f"--part=index/{options.kubernetes}", "--report=-"]]


def manifests(options: argparse.Namespace, defaults: argparse.Namespace, settings: Settings) -> list[Object]:
    """Return Namespace, ConfigMap, Secret and Job. SwarmError: an option that does not fit, or files that are too large.

    settings: the validated options.
    """
    pods, name = options.kubernetes, settings.name
    most = 100_000 if settings.discover else settings.clusters
    if not 1 <= pods <= most:
        raise SwarmError(f"--kubernetes {pods}: must be between 1 and the number of clusters, {most}")
    if not options.image:
        raise SwarmError(
            "--kubernetes: requires --image, an image with Python 3.11 or newer, aiohttp, PyYAML and cryptography"
        )
    if options.report or settings.part != (1, 1):
        raise SwarmError("--kubernetes: cannot be used with --report or --part; pods print their reports to their logs")
    if settings.agent:
        raise SwarmError("--kubernetes: cannot be used with --agent, which a pod does not have")
    if settings.bmc:
        raise SwarmError("--kubernetes: cannot be used with --bmc: no Service leads to the BMCs of a pod")
    files = {key: Path(getattr(options, key)) for key in FILES if getattr(options, key)}
    tokens = {key: os.environ[key] for key in TOKENS if os.environ.get(key)}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "swarm")
        program = (Path(folder) / "swarm").read_bytes()
    secret = {key: value.encode() for key, value in tokens.items()}
    secret |= {key: content(key, path) for key, path in files.items()}
    if sum(map(len, secret.values())) > MOST_BYTES:
        raise SwarmError(f"--kubernetes: the files of the options are longer than {MOST_BYTES} bytes in all")
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ConfigMap", **metadata(name), "binaryData": {"swarm": encode_base64(program)}},
        {"apiVersion": "v1", "kind": "Secret", **metadata(name), "type": "Opaque",
         "data": {key: encode_base64(value) for key, value in secret.items()}},
        {"apiVersion": "batch/v1", "kind": "Job", **metadata(name), "spec": {
            "completions": pods,
            "parallelism": pods,
            "completionMode": "Indexed",
            # A part runs once, and one that fails does not end the others.
            "backoffLimitPerIndex": 0,
            "template": {"metadata": {"labels": {"app.kubernetes.io/name": name}},
                         "spec": pod(name, arguments(options, defaults), options.image, list(tokens), list(files))},
        }},
    ]  # fmt: skip


def pod(name: str, words: list[str], image: str, tokens: list[str], files: list[str]) -> Object:
    """Return the pod's specification, which meets the `restricted` pod security standard."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
             "labelSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}
        ],
        "containers": [{
            "name": "swarm",
            "image": image,
            "command": ["python3", f"{MOUNT}/program/swarm"],
            "args": words,
            "env": [
                {"name": token, "valueFrom": {"secretKeyRef": {"name": name, "key": token}}}
                for token in tokens
            ],
            "resources": RESOURCES,
            "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [
                {"name": "program", "mountPath": f"{MOUNT}/program", "readOnly": True},
                {"name": "files", "mountPath": f"{MOUNT}/files", "readOnly": True},
            ],
        }],
        "volumes": [
            {"name": "program", "configMap": {"name": name}},
            {"name": "files", "secret": {"secretName": name, "items": [{"key": key, "path": key} for key in files]}}
            if files
            else {"name": "files", "emptyDir": {}},
        ],
    }  # fmt: skip


def content(name: str, path: Path) -> bytes:
    """Return the content of an option's file. SwarmError: it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SwarmError(f"--{name.replace('_', '-')} {path}: {error.strerror}") from None


def metadata(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": name}}


def encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def text(objects: list[Object], name: str, pods: int) -> str:
    """Return the manifests as YAML, after a comment with the commands that run them and merge the reports."""
    return (
        "# Holds the tokens and files of the options: keep it private.\n"
        "# Run:     kubectl apply -f FILE\n"
        f"# Wait:    until kubectl -n {name} get pods -l batch.kubernetes.io/job-name={name} shows no pod that is pending or running\n"
        f"# Collect: for i in $(seq 0 {pods - 1}); do kubectl -n {name} logs --tail=-1"
        f" -l batch.kubernetes.io/job-name={name},batch.kubernetes.io/job-completion-index=$i > $i.log; done\n"
        f"# Merge:   agentlab swarm merge {' '.join(f'{at}.log' for at in range(min(pods, 2)))}{' ...' * (pods > 2)} --report DIR\n"
        f"# Remove:  kubectl delete namespace {name}\n"
    ) + str(yaml.safe_dump_all(objects, sort_keys=False, width=1 << 30))
