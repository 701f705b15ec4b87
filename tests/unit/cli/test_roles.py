"""Roles that work without the plan of a lab, in a real run of ansible-playbook."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  vars:
    agentlab_run_dir: {directory}
    ansible_python_interpreter: "{{{{ ansible_playbook_python }}}}"
  roles:
    - agentlab.ocp.wait_for
"""


def test_wait_for_takes_a_directory_without_a_plan(tmp_path: Path) -> None:
    """It gets as far as the state file, which this directory lacks."""
    playbook, directory = tmp_path / "play.yml", tmp_path / "assets"
    directory.mkdir()
    playbook.write_text(PLAYBOOK.format(directory=directory))
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "-c", "local", str(playbook)]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "NO_COLOR": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "missing required arguments" not in done.stdout
    assert "both AgentConfig and NMStateConfig are empty" in done.stdout.replace("\n", " "), done.stdout
    assert 'level=fatal msg="both AgentConfig and NMStateConfig are empty' in (directory / "logs/wait-for.log").read_text()
