"""Copies the release of a prepared cluster into the registry of its lab: `ci/mirrored.py CLUSTER`.

`agentlab mirror` does it, from where `release.image` is. The lab payload is served by a second registry on 127.0.0.1 of this host meanwhile.
The mirrors replace the content of the file that the plan names.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

from ansible_collections.agentlab.ocp.ci.calls import VerbFailed, Verbs
from ansible_collections.agentlab.ocp.payload import build
from ansible_collections.agentlab.ocp.payload.images import oci, registry
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.mirror import OUTPUT
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import configs, rundir, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.release import mirror_set
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox.mirror import serve_registry
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import (
    LAB_VERSION,
    PAYLOAD_REPOSITORY,
    REGISTRY,
    RELEASE_REPOSITORY,
)


def copy(verbs: Verbs) -> str:
    """Copy the release of the cluster; the directory of the verbs is private. Returns what `mirror` printed. Raises `VerbFailed` and `LabError`."""
    plan = rundir.load_plan(verbs.run_dir)
    image, installer = plan["release"]["image"], plan["installer"]
    if image:
        secret = installer["pull_secret_file"]
        text = verbs.call("mirror", image, *(["--pull-secret", secret] if secret else []))
    else:
        text = _lab_payload(verbs, secrets.with_passwords(plan, secrets.passwords_of(plan, verbs.run_dir)))
    Path(installer["mirrors_file"] or "").write_bytes((verbs.folder / OUTPUT).read_bytes())
    return text


def _lab_payload(verbs: Verbs, plan: Plan) -> str:
    release, work = plan["release"], verbs.folder
    payload = build.ensure(release["payload_overrides"], version=release["version"] or LAB_VERSION)
    registry.push(Path(payload["directory"]), work / "storage")
    services: dict[str, Any] = {**plan["services"]}
    services["registry"] = {**services["registry"], "storage": str(work / "storage")}
    (work / "registry").mkdir()
    with serve_registry(cast(Plan, {**plan, "services": services}), work / "registry") as here:
        (login,) = configs.registry_auth(plan)["auths"].values()
        mirrors = mirror_set.resource(
            [
                {"source": f"{REGISTRY}/{repository}", "mirrors": [f"{here.place}/{repository}"]}
                for repository in (RELEASE_REPOSITORY, PAYLOAD_REPOSITORY)
            ]
        )
        options: list[str] = []
        for option, text in (
            ("--mirrors", json.dumps(mirrors)),
            ("--pull-secret", json.dumps({"auths": {here.place: login}})),
            ("--trust", here.authority),
        ):
            (work / option).write_text(text)
            options += [option, str(work / option)]
        return verbs.call("mirror", payload["release"], *options)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/mirrored.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cluster")
    args = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="agentlab-mirrored-") as work:
            text = copy(Verbs(args.cluster, Path(work)))
        print("\n".join(f"ok   {line}" for line in text.splitlines() if line.startswith("verified")), flush=True)
    except (
        VerbFailed, LabError, build.BuildError, oci.ImageError, OSError, LookupError, ValueError, subprocess.SubprocessError,
    ) as error:  # fmt: skip
        print(f"FAIL {type(error).__name__}: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
