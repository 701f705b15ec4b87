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
from ansible_collections.agentlab.ocp.plugins.module_utils import signals
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import decoded, read_file
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import cluster, cluster_record, ipi
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.binary import Given
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.install_config import FILENAME
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.ipi import bootstrap as bootstrap_of
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.machines import address_of
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import checked
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import RELEASES
from ansible_collections.agentlab.ocp.plugins.module_utils.report.changes import WaitEvents
from ansible_collections.agentlab.ocp.plugins.module_utils.report.secrets import of_run
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, EventLog


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
        given = module.params
        plan, directory, log_file = checked(given["plan"]), Path(given["dir"]), Path(given["log"])
        bootstrap = bootstrap_of(plan)
        if not bootstrap:
            raise ValueError("agentlab_plan.installer.bootstrap is missing: this plan is not one of `flow: ipi`")
        if not module.check_mode:
            log_file.parent.mkdir(parents=True, exist_ok=True)
        log = Log(None, emit=lambda __: None, copy=None if module.check_mode else log_file)
        path = directory / FILENAME
        if path.exists():
            profile = RELEASES[plan["release"]["profile"]]
            ipi.validate(decoded(read_file(path), name=str(path)), profile, plan["release"]["version"] or "", log)
        if module.check_mode:
            return {"changed": not cluster_record.complete(directory)}
        events = WaitEvents(EventLog(Path(given["record"]) / Path(FILE).name, of_run(directory)))

        def say(level: str, text: str) -> None:
            log(level, text)
            events.say(level, text)
            events.provisioning(text, [node["name"] for node in plan["nodes"]])

        program = Given(
            Path(given["program"] or cluster.SIMULATOR),
            directory,
            Path(given["collection"]),
            Path(given["cache"]),
            given["release_image"],
        )
        masters = tuple(address_of(node, plan["networks"]) for node in plan["nodes"] if node["role"] == "master")
        hosts = cluster.Hosts(bootstrap["addresses"][0], masters, directory / "ssh/id_ecdsa")
        with signals.raised():
            made = cluster.create(program, hosts, say, seconds=given["minutes"] * 60)
        result: dict[str, Any] = {"changed": made.changed, "exit_code": int(made.exit_code)}
        if made.bundle:
            result["log_bundle"] = made.bundle
        if made.error:
            logs = f"; the logs of the bootstrap are in {made.bundle}" if made.bundle else ""
            module.fail_json(msg=f"{made.error}{logs}", **result)
        return result

    run(module, create)


if __name__ == "__main__":
    main()
