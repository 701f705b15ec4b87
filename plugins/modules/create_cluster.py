#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create a cluster on installer-provisioned infrastructure; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: create_cluster
short_description: Create a cluster on installer-provisioned infrastructure
version_added: 1.0.0
description:
  - Checks C(install-config.yaml) of a directory by the rules of C(openshift-install create cluster), runs that program there, and waits
    until the cluster is complete. Its messages are appended to O(log), so that they can be followed meanwhile.
  - A second run of a complete cluster changes nothing. One that was interrupted after the program had begun to create machines continues
    with C(wait-for bootstrap-complete), C(destroy bootstrap) and C(wait-for install-complete).
  - After a bootstrap that failed the logs of its machines are gathered by C(gather bootstrap), unless the program did it itself.
  - In check mode the file is checked, and nothing is run.
extends_documentation_fragment: [agentlab.ocp.module.no_diff]
requirements:
  - bcrypt
  - cryptography
  - Jinja2
  - kubernetes
  - PyYAML
  - requests
  - zstandard
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan), of a profile with C(flow=ipi).
    type: dict
    required: true
  dir:
    description: Directory of the assets, which has C(install-config.yaml), and the key of the machines in C(ssh).
    type: path
    required: true
  program:
    description: The C(openshift-install) to run. By default the simulator of the lab payload.
    type: path
  release_image:
    description: Pullspec of the release image, for C(OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE). The one of O(program) by default.
    type: str
    default: ""
  collection:
    description: The root directory of this collection, from which O(program) gets the C(oc) that it calls.
    type: path
    required: true
  cache:
    description: Directory for what O(program) downloads.
    type: path
    required: true
  log:
    description: File that the messages are appended to, with time stamps.
    type: path
    required: true
  record:
    description: Directory for C(events.jsonl), the events of the run.
    type: path
    required: true
  minutes:
    description: The longest time.
    type: float
    default: 240
"""

EXAMPLES = r"""
- name: Create the cluster
  agentlab.ocp.create_cluster:
    plan: "{{ agentlab_plan }}"
    dir: "{{ agentlab_run_dir }}"
    program: /usr/local/bin/openshift-install
    collection: "{{ role_path }}/../.."
    cache: /root/.cache/agentlab/openshift-install
    log: "{{ agentlab_run_dir }}/logs/create-cluster.log"
    record: "{{ agentlab_run_dir }}/logs"
"""

RETURN = r"""
exit_code:
  description: What the program ended with.
  returned: when it was run
  type: int
log_bundle:
  description: Path of the logs of a bootstrap that failed.
  returned: when there are any
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils import provisioning
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.binary import Given
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.cluster import SIMULATOR
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import checked


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict", "required": True},
            "dir": {"type": "path", "required": True},
            "program": {"type": "path"},
            "release_image": {"type": "str", "default": ""},
            "collection": {"type": "path", "required": True},
            "cache": {"type": "path", "required": True},
            "log": {"type": "path", "required": True},
            "record": {"type": "path", "required": True},
            "minutes": {"type": "float", "default": 240},
        },
        supports_check_mode=True,
    )

    def create() -> dict[str, Any]:
        params = module.params
        plan, directory = checked(params["plan"]), Path(params["dir"])
        if module.check_mode:
            return {"changed": provisioning.missing(plan, directory)}
        made = provisioning.create(
            plan,
            Given(
                Path(params["program"] or SIMULATOR),
                directory,
                Path(params["collection"]),
                Path(params["cache"]),
                params["release_image"],
            ),
            copy=Path(params["log"]),
            folder=Path(params["record"]),
            seconds=params["minutes"] * 60,
        )
        result: dict[str, Any] = {"changed": made.changed, "exit_code": int(made.exit_code)}
        result |= {"log_bundle": made.bundle} if made.bundle else {}
        if made.error:
            module.fail_json(msg=made.error, **result)
        return result

    run(module, create)


if __name__ == "__main__":
    main()
