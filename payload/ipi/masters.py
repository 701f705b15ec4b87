"""Masters, provisioned by a real Ironic through their BMCs, as metal3 does on a real bootstrap machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from ...plugins.module_utils.plan.machines import Node
from ...plugins.module_utils.vocabulary import RunFile
from .ironic import Ironic
from .lab import Lab

DONE = "provisioned.json"
"""Names of the masters whose disks were written."""
# As the baremetal-operator requests it for a host with `customDeploy: {method: install_coreos}`.
_STEP = {"interface": "deploy", "step": "install_coreos", "priority": 80, "args": {}}

Report = Callable[[str, str], None]


class Masters:
    """The masters of a lab, each provisioned by a thread of its own. `failure` is the first error."""

    def __init__(self, lab: Lab, config: Mapping[str, object], report: Report) -> None:
        self.failure = ""
        self._lab, self._config, self._report = lab, config, report
        self._done: list[str] = lab.kept_value(DONE, [])
        self._lock = threading.Lock()

    @property
    def unwritten(self) -> list[Node]:
        """Return those whose disks are not written yet."""
        return [node for node in self._lab.masters if node["name"] not in self._done]

    def start(self, ironic: Ironic) -> None:
        """Begin with those that are left."""
        for node in self.unwritten:
            threading.Thread(target=self._run, args=(ironic, node), daemon=True).start()

    def _run(self, ironic: Ironic, node: Node) -> None:
        name = node["name"]
        try:
            root = {"properties": {"root_device": {"name": node["root_device"]}}} if node["root_device"] else {}
            ca = self._lab.directory / RunFile.CA
            self._state(name, "registering")
            ironic.enrol(node, ca, deploy_interface="custom-agent", inspect_interface="agent", **root)
            self._state(name, "inspecting")
            ironic.provision(name, "inspect", "manageable")
            self._state(name, "available")
            ironic.provision(name, "provide", "available")
            self._state(name, "provisioning")
            drive = {"user_data": self._config, "meta_data": {"name": name}}
            more = {"configdrive": drive, "deploy_steps": [_STEP]}
            ironic.provision(name, "active", "active", more)
        except Exception as error:  # a thread's own end would be silent
            with self._lock:
                self.failure = self.failure or f"{name}: {error}"
            return
        with self._lock:
            self._done.append(name)
            self._lab.keep(DONE, self._done)
        self._state(name, "provisioned")

    def _state(self, name: str, state: str) -> None:
        """Report a state, by its name in the API of the baremetal-operator."""
        self._report("debug", f"  {name}: {state}")


def service(lab: Lab) -> Ironic:
    """Return the Ironic of a lab, which runs in the sandbox on behalf of the bootstrap machine."""
    lab.state_folder.mkdir(mode=0o700, exist_ok=True)
    http, services = lab.plan["services"]["http"], lab.plan["services"]
    return Ironic(
        address=services["address"],
        environment=Path(lab.payload["ironic"]),
        images=Path(lab.payload["ironic_images"]),
        work=lab.state_folder / "ironic",
        published=Path(http["root"]) / "ironic",
        url=f"{http['url']}/ironic",
        log=lab.directory / RunFile.IRONIC_LOG,
        bootstrap=True,
    )
