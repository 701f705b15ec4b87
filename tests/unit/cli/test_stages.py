"""The stdout callback, in a real run of ansible-playbook."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import failure

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOK = """
- name: First stage
  hosts: localhost
  gather_facts: false
  vars:
    agentlab_run_dir: {run}
    ansible_python_interpreter: "{{{{ ansible_playbook_python }}}}"
  tasks:
    - name: Take a while
      ansible.builtin.shell: |
        echo 'time="2026-01-01T00:00:00Z" level=info msg="Cluster is \\\\"ready\\\\"\\\\n    run this"' >> {run}/.openshift_install.log
        echo 'time="2026-01-01T00:00:00Z" level=debug msg=noise' >> {run}/.openshift_install.log
        echo 'time="2026-01-01T00:00:01Z" level=warning msg=careful' >> {run}/.openshift_install.log
      changed_when: true
    - name: Never
      ansible.builtin.command: "false"
      when: false
    - name: Show
      ansible.builtin.debug:
        msg: [one, two]
- name: Empty stage
  hosts: localhost
  gather_facts: false
- name: Second stage
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Break
      ansible.builtin.fail:
        msg: |-
          the whole
          message
"""


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / ".openshift_install.log").write_text('time="2025-01-01T00:00:00Z" level=info msg=old\n')
    playbook = tmp_path / "play.yml"
    playbook.write_text(PLAYBOOK.format(run=tmp_path))
    noted = tmp_path / "logs" / "failure.json"
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "AGENTLAB_FAILURE": str(noted),
        "NO_COLOR": "1",
    }
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "-c", "local", str(playbook)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    shown = re.sub(r" +\d+\.\ds", " T", done.stdout)
    assert (
        shown
        == f"""
First stage
                   Cluster is "ready"
                       run this
                   careful
  changed T  Take a while
  ok T  Show
    one
    two

Second stage
  FAILED T  Break
    the whole
    message
    task at {playbook}:28

failed after T
"""
    )
    wanted = {"stage": "Second stage", "task": "Break", "host": "localhost", "message": "the whole\nmessage"}
    assert json.loads(noted.read_text()) == wanted


LEAKS = """
- name: Stage
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Ignored
      ansible.builtin.fail:
        msg: "cannot log in with password=hunter2-ignored"
      ignore_errors: true
    - name: Items
      ansible.builtin.fail:
        msg: "refused, Authorization: Bearer hunter2-{{ item }}"
      loop: [one, two]
"""


def test_no_failure_shows_a_secret(tmp_path: Path) -> None:
    """Messages of ignored tasks and of items are others' texts, as is what the report of the failure has of them."""
    playbook, noted = tmp_path / "play.yml", tmp_path / "failure.json"
    playbook.write_text(LEAKS)
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "AGENTLAB_FAILURE": str(noted)}
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "-c", "local", str(playbook)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "cannot log in" in done.stdout and "refused" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr + noted.read_text()


COMMANDS = """
- name: Stage
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Show
      ansible.builtin.debug:
        msg: "host \\e[2Jone\\x9b"
    - name: Ignored
      ansible.builtin.fail:
        msg: "ignored \\e]0;title\\a"
      ignore_errors: true
    - name: Items
      ansible.builtin.fail:
        msg: "first\\n\\tsecond \\e[31m{{ item }}"
      loop: [one]
"""


def test_messages_are_not_commands_of_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What hosts and services call themselves is in messages of modules."""
    playbook, path = tmp_path / "play.yml", tmp_path / "logs" / "failure.json"
    playbook.write_text(COMMANDS)
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "AGENTLAB_FAILURE": str(path)}
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "-c", "local", str(playbook)]
    environment["NO_COLOR"] = environment["ANSIBLE_NOCOLOR"] = "1"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "host  [2Jone" in done.stdout and "ignored  ]0;title" in done.stdout and "\tsecond  [31mone" in done.stdout
    path.write_text(json.dumps({"stage": "s", "task": "t", "host": "h", "message": "a\x1b[2Jb\nc"}))
    failure.explain(tmp_path)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stdout + done.stderr + capsys.readouterr().err)
