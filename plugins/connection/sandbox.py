# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Connection to a sandbox on this host; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sandbox
short_description: Run tasks inside a cluster's sandbox on this host
version_added: 1.0.0
description:
  - Runs commands in the network, mount and process namespaces of a cluster's sandbox, through C(nsenter).
  - Files are the host's own, except for a few directories that are private to a sandbox (libvirt's, C(/run), the resolver).
  - Users other than root use C(sudo -n).
author:
  - The agentlab authors (@agentlab)
options:
  cluster:
    description: Name of the sandbox's cluster.
    type: str
    required: true
    vars:
      - name: agentlab_sandbox
  state_dir:
    description: Where the state of the sandbox is. V(/var/lib/agentlab/<cluster>) if not given.
    type: path
    vars:
      - name: agentlab_state_dir
  pipelining:
    description: Send modules through the interpreter's standard input instead of a file.
    type: bool
    default: true
    vars:
      - name: ansible_pipelining
notes:
  - In check mode, before the sandbox exists, tasks run on the host with C(AGENTLAB_NO_SANDBOX=1) in the environment, so that
    modules report that nothing exists.
  - Otherwise the sandbox must run. The role P(agentlab.ocp.hypervisor#role) makes it, by a task on the controller.
"""

import os
import shlex
import subprocess
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure, AnsibleError, AnsibleFileNotFound
from ansible.plugins.connection.local import Connection as LocalConnection
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces


class Connection(LocalConnection):
    """The local connection, with every command inside the namespaces.

    With the options of DOCUMENTATION. Files are copied on the host itself, where the sandbox has them at the same
    paths.
    """

    transport = "agentlab.ocp.sandbox"

    def _enter(self) -> list[str]:
        cluster = self.get_option("cluster")
        state_dir = Path(self.get_option("state_dir") or namespaces.default_state_dir(cluster))
        try:
            return [*_as_root(), *namespaces.enter(namespaces.require(cluster, state_dir))]
        except LabError as error:
            if self._play_context.check_mode:
                return ["env", "AGENTLAB_NO_SANDBOX=1"]
            raise AnsibleConnectionFailure(str(error)) from error

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run `cmd` by the sandbox's `/bin/sh`.

        Raises `AnsibleConnectionFailure` when there is no sandbox; in check mode the command then runs on the host,
        with a variable by which modules know that.
        """
        return super().exec_command(shlex.join([*self._enter(), "/bin/sh", "-c", cmd]), in_data, sudoable)

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file; as root, because the directory of a task's files is root's.

        Raises `AnsibleFileNotFound` or `AnsibleError`, with the message of cp or of sudo.
        """
        if not _as_root():
            super().put_file(in_path, out_path)
            return
        self._copy(in_path, out_path)

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file that only root may read.

        out_path: made with mode 0600 before its content is there. Raises as `put_file`.
        """
        if not _as_root():
            super().fetch_file(in_path, out_path)
            return
        Path(out_path).touch(mode=0o600)
        self._copy(in_path, out_path)

    def _copy(self, source: str, target: str) -> None:
        result = subprocess.run([*_as_root(), "cp", "--", source, target], capture_output=True, text=True, check=False)
        if result.returncode:
            kind = AnsibleFileNotFound if "No such file" in result.stderr else AnsibleError
            raise kind(f"cannot copy {source} to {target}: {result.stderr.strip()}")


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["sudo", "-n"]
