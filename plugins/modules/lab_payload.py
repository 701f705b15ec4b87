#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Build the lab payload; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_payload
short_description: Build the lab payload, which replaces an OpenShift release
version_added: 1.0.0
description:
  - Makes sure that the lab payload exists, that is, base ISO, component images and release image, built from packages of this
    host's distribution. It is cached by the hash of its inputs, so a second run changes nothing.
  - Needs root, C(mmdebstrap), C(mtools), C(squashfs-tools) and C(zstd). A first build takes minutes.
extends_documentation_fragment: [agentlab.ocp.module]
requirements:
  - PyYAML
options:
  source:
    description: The root directory of this collection. The one on this host by default.
    type: path
  cache:
    description: Directory with C(agentlab/payload) and C(agentlab/parts).
    type: path
    required: true
  force:
    description: Rebuild every step with current packages. Always changes.
    type: bool
    default: false
  overrides:
    description:
      - Replacements of the release's components, by component. A pullspec with a digest, C(containers-storage:IMAGE), or the absolute
        path of an OCI image layout or of a directory with the component's programs or files.
    type: dict
    default: {}
  version:
    description:
      - Version of OpenShift that the payload has, such as C(4.18.0-lab). It decides which features, thresholds and manifests a cluster gets.
      - That of the newest release by default.
    type: str
  storage:
    description: Storage directory of a registry, to which the images are written as well.
    type: path
  log_directory:
    description: Directory whose C(.openshift_install.log) gets the progress.
    type: path
  ironic:
    description:
      - Whether a real Ironic is made, too, with the images that it boots (C(flow=ipi)). Its packages are those that are locked; pip
        installs them into the cache.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Build the lab payload
  agentlab.ocp.lab_payload:
    cache: /root/.cache

- name: Build it with a custom agent, and write it to the registry
  agentlab.ocp.lab_payload:
    cache: /root/.cache
    overrides:
      agent-installer-node-agent: /src/agent/image
    storage: /var/lib/agentlab/ostest/services/registry/storage
"""

RETURN = r"""
payload:
  description:
    - The content of C(payload.json), with the full path of the ISO and the payload's directory.
    - Empty in check mode when it would be built.
  returned: success
  type: dict
  contains:
    hash: {description: Hash of its inputs., type: str}
    version: {description: Version of the release., type: str}
    release: {description: Pullspec of the release image., type: str}
    images: {description: Pullspec and digest by component., type: dict}
    iso: {description: Path of the base ISO., type: str}
    iso_sha256: {description: Digest of the base ISO., type: str}
    ironic: {description: Directory of Ironic and its libraries; with O(ironic)., type: str}
    ironic_images: {description: Directory of the images that Ironic boots; with O(ironic)., type: str}
    directory: {description: Directory of the payload., type: str}
pushed:
  description: Number of files added to the registry's storage.
  returned: when O(storage) is given
  type: int
"""

import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import collection_path, run
from ansible_collections.agentlab.ocp.plugins.module_utils.release.builder import Builder, PayloadRequest, ensure


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "path"},
            "cache": {"type": "path", "required": True},
            "force": {"type": "bool", "default": False},
            "overrides": {"type": "dict", "default": {}},
            "version": {"type": "str"},
            "storage": {"type": "path"},
            "log_directory": {"type": "path"},
            "ironic": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )

    def make() -> dict[str, Any]:
        params = module.params
        wanted = PayloadRequest(
            **{name: params[name] for name in ("overrides", "version", "force", "storage", "ironic")}
        )
        log_directory = Path(params["log_directory"]) if params["log_directory"] else None
        with tempfile.TemporaryDirectory(dir=module.tmpdir) as folder:
            builder = Builder(collection_path(params, "source"), Path(params["cache"]), Path(folder), log_directory)
            made = ensure(builder, wanted, check=module.check_mode)
        diff = {"before": f"{made.before}\n", "after": f"{made.after}\n", "after_header": "lab payload"}
        pushed = {} if made.pushed is None else {"pushed": made.pushed}
        return {"changed": made.changed, "payload": made.payload, "diff": diff, **pushed}

    run(module, make)


if __name__ == "__main__":
    main()
