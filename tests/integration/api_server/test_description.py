"""schemathesis over the service with its API description, and with upstream's where it is at hand.

No 5xx, no undocumented answer, nothing accepted that the description refuses.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.api_server import auth, data

from .served import CLUSTER, PULL_SECRET, V2, Served

SHARED = Path(os.environ.get("AGENTLAB_SHARED") or Path(__file__).resolve().parents[4] / "shared")
OWN = data.FOLDER / "swagger.yaml"
UPSTREAM = SHARED / "conformance/assisted-service-swagger.yaml"
HOOKS = Path(__file__).with_name("schemathesis_checks.py")
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# Not content_type_conformance: it requires a type of answers without content, where upstream, too, gives none; answer_type is ours.
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "wrong_data_refused",
    "answer_type",
)
#: Operation -> answers that the real service gives and its description omits.
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
MISSING_STATUSES = {
    "v2UpdateHostInstallProgress": (409,),
    "v2PostStepReply": (409,),
    "BindHost": (409,),
    "v2GetHostIgnition": (409,),
    **{f"V2{verb}ClusterManifest": (422,) for verb in ("Create", "Update", "Delete")},
    "v2DownloadClusterManifest": (422,),
}
#: What a run with real ids leaves out: without its object the rest of the run is about nothing.
LEFT_OUT = {
    OWN: ("delete_cluster", "delete_infra_env", "delete_host"),
    UPSTREAM: ("v2DeregisterCluster", "DeregisterInfraEnv", "v2DeregisterHost"),
}
SEED = int(os.environ.get("AGENTLAB_SCHEMATHESIS_SEED") or 1)
PHASES = os.environ.get("AGENTLAB_SCHEMATHESIS_PHASES") or "examples,coverage,fuzzing"
EXAMPLES = int(os.environ.get("AGENTLAB_SCHEMATHESIS_EXAMPLES") or 1)
#: How long a run may take; a longer one finds more.
SECONDS = int(os.environ.get("AGENTLAB_SCHEMATHESIS_SECONDS") or 20)

pytestmark = [
    pytest.mark.parametrize(
        "path",
        [
            pytest.param(OWN, id="own"),
            *([pytest.param(UPSTREAM, id="upstream", marks=pytest.mark.slow)] if UPSTREAM.is_file() else []),
        ],
    ),
    pytest.mark.skipif(
        not SCHEMATHESIS.is_file() and not shutil.which("schemathesis"), reason="schemathesis is not installed"
    ),
]


def _nullable(node: Any) -> None:
    """An enum that may be null lists null, as the tool requires; what may be left out may be null: both ends are written in Go."""
    if isinstance(node, dict):
        if node.get("type") == "array":
            node["x-nullable"] = True
            if isinstance(node.get("items"), dict):  # Go reads null as an element without a value
                node["items"] = {
                    **({"allOf": [node["items"]]} if "$ref" in node["items"] else node["items"]),
                    "x-nullable": True,
                }
        if node.get("additionalProperties") == {"type": "object"}:  # any value, in Go
            node["additionalProperties"] = True
        if isinstance(node.get("properties"), dict):
            for name, entry in node["properties"].items():
                if isinstance(entry, dict) and name not in (node.get("required") or ()):
                    if "$ref" in entry:
                        entry = node["properties"][name] = {"allOf": [{"$ref": entry["$ref"]}]}
                    entry["x-nullable"] = True
        if node.get("x-nullable") and "enum" in node and None not in node["enum"]:
            node["enum"] = [*node["enum"], None]
        for value in node.values():
            _nullable(value)
    elif isinstance(node, list):
        for value in node:
            _nullable(value)


def _renamed(node: Any) -> None:
    """The description calls `numa-resources` what the service calls `numaresources`."""
    if isinstance(node, dict) and isinstance(node.get("enum"), list):
        node["enum"] += [
            name.replace("numa-resources", "numaresources") for name in node["enum"] if "numa-resources" in str(name)
        ]
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _renamed(value)


def _leniently(operation: dict[str, Any]) -> None:
    """Parameters as upstream takes them: any text is a boolean, -1 means no limit, one that is optional may be empty."""
    for parameter in operation.get("parameters", ()):
        if parameter.get("format") == "uuid" and not parameter.get("required"):
            parameter["pattern"] = f"^({UUID})?$"
            del parameter["format"]
        if parameter.get("type") == "boolean":
            parameter["type"] = "string"
            parameter.pop("default", None)
        if parameter.get("name") == "limit":
            parameter.pop("minimum", None)


def _completed(document: dict[str, Any], schemes: bool) -> None:
    """Add upstream's implicit rules: any request can be wrong (400), errors are JSON.

    A refusal has one of two forms: the service's own or, of what never came to it, `{code, message}`. With `schemes` any can be refused
    (401, 403), which some operations omit.
    """
    error = {"description": "Error.", "schema": {"$ref": "#/definitions/refusal"}}
    refusal = {"description": "Refused.", "schema": {"$ref": "#/definitions/infra_error"}}
    document["definitions"]["refusal"] = {
        "type": "object",
        "x-nullable": True,
        "required": ["code"],
        "properties": {"code": {}},
    }
    document["definitions"]["platform_type"]["x-nullable"] = True
    _renamed(document)
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                if status >= "400" and status not in ("401", "403"):
                    answer["schema"] = error["schema"]
            for status in (400, 404, *MISSING_STATUSES.get(operation["operationId"], ())):
                operation["responses"].setdefault(str(status), error)
            for status in (401, 403) if schemes else ():
                operation["responses"].setdefault(str(status), refusal)


def amended(path: Path, schemes: bool) -> dict[str, Any]:
    """The description as the tool reads it. Without `schemes` who may call is left out: the service runs without authentication."""
    document: dict[str, Any] = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if path == UPSTREAM:
        _completed(document, schemes)
    if not schemes:
        document.pop("security", None)
    for operations in document["paths"].values():
        for operation in operations.values():
            if not schemes:
                operation.pop("security", None)
            operation["x-produces"] = operation.get("produces")
            good = [answer for status, answer in operation["responses"].items() if status < "300"]
            if not any("schema" in answer for answer in good):
                operation["produces"] = []
            elif operation.get("produces"):
                operation["produces"] = sorted({*operation["produces"], "application/json"})
            _leniently(operation)
    _nullable(document["definitions"])
    return document


def run(
    served: Served,
    folder: Path,
    path: Path,
    parameters: dict[str, str],
    *options: str,
    tokens: dict[str, str] | None = None,
) -> str:
    """One bounded, seeded run; its report when it found nothing, else the test fails with it."""
    description = folder / "description.json"
    description.write_text(json.dumps(amended(path, tokens is not None)))
    checks = (*CHECKS, "ignored_auth") if tokens else CHECKS
    lines = [
        "[checks.negative_data_rejection]",
        "expected-statuses = [400, 404, 405, 409, 422]",
        "[parameters]",
        *(f'"path.{name}" = "{value}"' for name, value in parameters.items()),
    ]
    (folder / "schemathesis.toml").write_text("\n".join(lines) + "\n")
    command = [
        str(SCHEMATHESIS if SCHEMATHESIS.is_file() else shutil.which("schemathesis")),
        "run",
        str(description),
        f"--url={served.url}{V2.removesuffix('/v2')}",
        f"--checks={','.join(checks)}",
        f"--phases={PHASES}",
        *(f"--header={auth.HEADERS[scheme]}: {token}" for scheme, token in (tokens or {}).items()),
        f"--max-examples={EXAMPLES}",
        f"--max-time={SECONDS}",
        f"--seed={SEED}",
        "--generation-deterministic",
        "--suppress-health-check=all",
        "--continue-on-failure",
        "--warnings=off",
        "--no-color",
        *options,
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS)}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=1200 + 2 * SECONDS, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout[-100000:] + done.stderr[-2000:]
    assert served.process is not None
    assert served.process.poll() is None
    return done.stdout


def start(folder: Path) -> Served:
    served = Served(folder / "data")
    served.start()
    return served


@pytest.mark.slow
def test_unknown_ids(tmp_path: Path, path: Path) -> None:
    served = start(tmp_path)
    try:
        print(run(served, tmp_path, path, {}))
    finally:
        served.end(signal.SIGTERM)


def objects(served: Served, **headers: str) -> dict[str, str]:
    """The ids of a cluster, an infra-env and a host that are there."""
    cluster = served.call("POST", f"{V2}/clusters", CLUSTER, **headers)
    body = {"name": "e", "pull_secret": PULL_SECRET, "cluster_id": cluster["id"]}
    infra_env = served.call("POST", f"{V2}/infra-envs", body, **headers)
    host = str(uuid.uuid4())
    served.call("POST", f"{V2}/infra-envs/{infra_env['id']}/hosts", {"host_id": host}, **headers)
    return {"cluster_id": cluster["id"], "infra_env_id": infra_env["id"], "host_id": host}


def test_objects_that_are_there(tmp_path: Path, path: Path) -> None:
    served = start(tmp_path)
    try:
        ids = objects(served)
        print(run(served, tmp_path, path, ids, *(f"--exclude-operation-id={name}" for name in LEFT_OUT[path])))
        assert served.call("GET", f"{V2}/clusters/{ids['cluster_id']}")["id"] == ids["cluster_id"]
    finally:
        served.end(signal.SIGTERM)


@pytest.mark.slow
def test_tokens(tmp_path: Path, path: Path) -> None:
    """With the three tokens at hand, and each operation again without any and with wrong ones."""
    served = Served(tmp_path / "data", "--auth", "local")
    served.start()
    try:
        found = json.loads((served.data / "tokens.json").read_text())
        tokens = {scheme: found[scheme] for scheme in auth.HEADERS}
        ids = objects(served, **{auth.HEADERS[scheme].replace("-", "_"): token for scheme, token in tokens.items()})
        print(
            run(
                served,
                tmp_path,
                path,
                ids,
                *(f"--exclude-operation-id={name}" for name in LEFT_OUT[path]),
                tokens=tokens,
            )
        )
    finally:
        served.end(signal.SIGTERM)
