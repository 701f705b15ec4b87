"""The screen and the keyboard of a machine in libvirt, with the distribution's firmware."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

sys.path.insert(0, str(Path(__file__).parent))
import guest

URI = "qemu:///system"
SCREEN = "<video><model type='vga'/></video>"
# Does steps on a domain's screen, as `agentlab console NODE --screen` does in the sandbox.
PROGRAM = """
import json, sys
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.display import Display
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import steps
uri, domain, wanted = sys.argv[1:]
try:
    with connect(uri) as connection:
        display = Display(connection, domain, "master-0")
        steps.follow(display, steps.parse(json.loads(wanted)))
        print(steps.read(display).text)
except LabError as error:
    sys.exit(str(error))
"""


def _virsh(host: namespaces.Running, *arguments: str) -> None:
    subprocess.run(
        [*namespaces.enter(host), "virsh", "-c", URI, *arguments], capture_output=True, text=True, check=True
    )


def _steps(host: namespaces.Running, domain: str, wanted: str) -> subprocess.CompletedProcess[str]:
    command = [*namespaces.enter(host), sys.executable, "-c", PROGRAM, URI, domain, wanted]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(params=[SCREEN, ""], ids=["screen", "no screen"])
def domain(request: pytest.FixtureRequest, host: namespaces.Running, base: Path) -> Iterator[str]:
    """A machine with SeaBIOS and no disk, with a screen or without; destroyed at the end."""
    name = "screen" if request.param else "blind"
    (base / "domain.xml").write_text(
        f"<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory><os><type machine='q35'>hvm</type>"
        f"<bios useserial='no'/><bootmenu enable='yes' timeout='30000'/></os><devices>"
        f"<controller type='usb' model='none'/><memballoon model='none'/>{request.param}</devices></domain>"
    )
    _virsh(host, "create", str(base / "domain.xml"))
    yield name
    _virsh(host, "destroy", name)


def test_boot_menu_of_firmware(host: namespaces.Running, domain: str, base: Path) -> None:
    shown = base / "menu.png"
    steps = '[{"wait": "Press ESC for boot menu", "timeout": 120}, {"press": "esc"}, {"wait": "Select boot device:"}]'
    if domain == "blind":
        assert "node master-0: it has no screen" in _steps(host, domain, steps).stderr
        return
    found = _steps(host, domain, steps.replace("}]", f'}}, {{"picture": "{shown}"}}]'))
    assert (found.returncode, found.stderr) == (0, "")
    assert "Select boot device:" in found.stdout
    assert shown.read_bytes().startswith(b"\x89PNG")
    late = _steps(host, domain, '[{"wait": "GRUB", "timeout": 1}]')
    assert late.returncode == 1
    assert "'GRUB' did not appear on the screen within 1 s. The screen was:" in late.stderr
    assert "Select boot device:" in late.stderr
    assert "libvirt has no domain other" in _steps(host, "other", "[]").stderr


@pytest.mark.slow
def test_steps_of_a_profile_and_module(lab: Any, base: Path, guests: None) -> None:
    """`boot` does the steps once; the module reads the same screen, and its steps fail as those of the command line."""
    steps = [
        {"wait": "No bootable device.", "timeout": 120},
        {"press": "ctrl-alt-delete"},
        {"wait": "Booting from DVD/CD"},
    ]
    master = {"screen": True, "firmware": "bios", "vcpus": 1, "memory_mib": 512, "screen_steps": steps}
    one = lab("agtest", {"topology": "sno", "stack": "ipv4", "boot": {"mode": "cdrom"}, "master": master})
    one.play("prepare")
    guest.iso(one.run_dir / "agent.x86_64.iso", "not for BIOS")
    assert one.play("boot", "--check")[0] == 2
    assert one.play("boot")[0] == 2
    assert one.play("boot")[0] == 0

    shown = _module(
        one, steps=[{"press": "enter"}, {"wait": "No bootable device."}, {"picture": str(base / "menu.png")}]
    )
    assert (shown["changed"], shown["font"]) == (True, "VGA text, 9x16"), shown
    assert "No bootable device." in shown["lines"]
    assert (base / "menu.png").read_bytes().startswith(b"\x89PNG")
    assert _module(one, steps=[])["changed"] is False
    assert _module(one, _ansible_check_mode=True) == {"changed": True}
    late = _module(one, steps=[{"wait": "GRUB"}], timeout=1)
    assert late["failed"] is True
    assert "'GRUB' did not appear on the screen within 1 s. The screen was:" in late["msg"]
    assert "No bootable device." in late["msg"]


def _module(one: Any, **options: Any) -> dict[str, Any]:
    """Run the module in the sandbox of a lab, as a task on its hypervisor does; return its result."""
    who = owner.caller(one.plan, one.run_dir).fact()
    given = {"plan": one.plan, "owner": who, "node": "master-0", "_ansible_remote_tmp": str(one.run_dir), **options}
    done = subprocess.run(
        [*one.inside(), sys.executable, "-c", "import ansible_collections.agentlab.ocp.plugins.modules.node_screen as m; m.main()"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return {name: value for name, value in json.loads(done.stdout).items() if name != "invocation"}
