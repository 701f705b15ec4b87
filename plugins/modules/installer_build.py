#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Build openshift-install from a git repository; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: installer_build
short_description: Build openshift-install from a git repository
version_added: 1.0.0
description:
  - Fetches a branch, tag or commit of openshift/installer, and builds it with C(hack/build.sh) and this host's Go
    toolchain. The host needs git and Go.
  - Builds are kept by commit and version, so a second run with the same ones changes nothing.
  - In check mode the commit is fetched, but nothing is built.
extends_documentation_fragment: [agentlab.ocp.module.no_diff]
requirements:
  - git
  - Go
options:
  repository:
    description: URL of the repository, or its path on this host. Uncommitted changes there are not built.
    type: str
    required: true
  ref:
    description: Branch, tag or commit.
    type: str
    default: HEAD
  cache:
    description: Directory for sources and builds.
    type: path
    required: true
  link:
    description: Path that becomes a link to the built program.
    type: path
    required: true
  version:
    description:
      - Version of the release that it is for, C(BUILD_VERSION) of the script unless the environment has that. The program hands it
        to the assisted service, which refuses the commit that a build without it names.
    type: str
  log_directory:
    description: Directory whose C(.openshift_install.log) gets the progress.
    type: path
"""

EXAMPLES = r"""
- name: Build a branch
  agentlab.ocp.installer_build:
    repository: https://github.com/openshift/installer
    ref: release-4.22
    cache: "{{ ansible_facts.env.HOME }}/.cache/agentlab/openshift-install"
    link: "{{ agentlab_run_dir }}/openshift-install"
    version: 4.22.0
"""

RETURN = r"""
commit:
  description: The commit that was built.
  returned: success
  type: str
program:
  description: Path of the built program.
  returned: success
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils import signals
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import source
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "repository": {"type": "str", "required": True},
            "ref": {"type": "str", "default": "HEAD"},
            "cache": {"type": "path", "required": True},
            "link": {"type": "path", "required": True},
            "version": {"type": "str"},
            "log_directory": {"type": "path"},
        },
        supports_check_mode=True,
    )

    def ensure() -> dict[str, Any]:
        given = module.params
        log = Log(Path(given["log_directory"]) if given["log_directory"] else None, emit=lambda _line: None)
        with signals.raise_terminated():
            made = source.ensure(
                given["repository"],
                given["ref"],
                Path(given["cache"]),
                Path(given["link"]),
                log.info,
                version=given["version"] or "",
                check=module.check_mode,
            )
        return {"changed": made.changed, "commit": made.commit, "program": str(made.program)}

    run(module, ensure)


if __name__ == "__main__":
    main()
