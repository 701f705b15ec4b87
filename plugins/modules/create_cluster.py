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
  - Without a plan, for any O(dir) and O(program); the machines need not be those of a lab.
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
  bootstrap:
    description:
      - Without O(plan), name in DNS or address of the bootstrap machine, whose logs are gathered when the bootstrap fails.
    type: str
  hosts:
    description: Without O(plan), the control plane, whose logs are gathered as well. None by default.
    type: list
    elements: dict
    suboptions:
      name:
        description: Its host name, as in C(install-config.yaml).
        type: str
        required: true
      address:
        description: Its name in DNS, or its address.
        type: str
        required: true
  release_version:
    description: Without O(plan), the version of the release, such as C(4.20.1), by whose rules the file is checked. The newest by default.
    type: str
    default: ""
  dir:
    description: Directory of the assets, which has C(install-config.yaml), and the key of the machines, C(ssh/id_ecdsa).
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
    description: The root directory of this collection, from which O(program) gets the C(oc) that it calls. The one on this host by default.
    type: path
  cache:
    description: Directory for what O(program) downloads.
    type: path
    required: true
  log:
    description: File that the messages are appended to, with time stamps. C(logs/create-cluster.log) in O(dir) by default.
    type: path
  record:
    description: Directory for C(events.jsonl), the events of the run. C(logs) in O(dir) by default.
    type: path
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
    cache: /root/.cache/agentlab/openshift-install

- name: Create a cluster of machines that are not in a lab
  agentlab.ocp.create_cluster:
    bootstrap: 192.0.2.5
    hosts:
      - {name: master-0, address: 192.0.2.10}
      - {name: master-1, address: 192.0.2.11}
      - {name: master-2, address: 192.0.2.12}
    release_version: 4.20.1
    dir: /srv/assets
    program: /usr/local/bin/openshift-install
    cache: /root/.cache/agentlab/openshift-install
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
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import collection_path, run
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.binary import InstallerBuild
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.cluster import SIMULATOR
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import partial, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict"},
            "bootstrap": {"type": "str"},
            "hosts": argument(list[short.ShortHost]),
            "release_version": {"type": "str", "default": ""},
            "dir": {"type": "path", "required": True},
            "program": {"type": "path"},
            "release_image": {"type": "str", "default": ""},
            "collection": {"type": "path"},
            "cache": {"type": "path", "required": True},
            "log": {"type": "path"},
            "record": {"type": "path"},
            "minutes": {"type": "float", "default": 240},
        },
        required_one_of=[("plan", "bootstrap")],
        mutually_exclusive=[("plan", "bootstrap"), ("plan", "hosts")],
        supports_check_mode=True,
    )

    def create() -> dict[str, Any]:
        params = module.params
        directory = Path(params["dir"])
        if params["plan"] is not None:
            plan = check_plan(params["plan"])
        else:
            plan = partial.plan_of_bootstrap(params["bootstrap"], params["hosts"] or [], params["release_version"])
        if module.check_mode:
            return {"changed": provisioning.missing(plan, directory)}
        made = provisioning.create(
            plan,
            InstallerBuild(
                Path(params["program"] or SIMULATOR),
                directory,
                collection_path(params, "collection"),
                Path(params["cache"]),
                params["release_image"],
            ),
            copy=Path(params["log"] or directory / RunFile.CREATE_LOG),
            folder=Path(params["record"] or (directory / RunFile.EVENTS).parent),
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
