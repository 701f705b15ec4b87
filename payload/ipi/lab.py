"""What the simulator knows of its lab: the plan next to install-config.yaml, and the lab payload that `image` has recorded there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ...plugins.module_utils.documents import load_json, read_file
from ...plugins.module_utils.plan import ipi, rundir, secrets
from ...plugins.module_utils.plan.installer_inputs import Bootstrap
from ...plugins.module_utils.plan.machines import Node
from ...plugins.module_utils.plan.model import Plan
from ...plugins.module_utils.state import write_atomic
from ...plugins.module_utils.vocabulary import RunFile

PAYLOAD = RunFile.LAB_PAYLOAD
"""Content of `payload.json` with `ironic` and `ironic_images`, in the run directory."""
FOLDER = "ipi"
"""Of the simulator, in the run directory and in the cluster's state directory. Both are its user's alone."""


@dataclass(frozen=True)
class Lab:
    """directory: the run directory; plan: with the passwords of the BMCs; payload: of `PAYLOAD`."""

    directory: Path
    plan: Plan
    payload: dict[str, Any]

    @property
    def bootstrap(self) -> Bootstrap:
        """Return the bootstrap machine; `load` refuses a plan without one."""
        return cast(Bootstrap, ipi.bootstrap(self.plan))

    @property
    def masters(self) -> list[Node]:
        """Return the machines that Ironic provisions."""
        return [node for node in self.plan["nodes"] if node["role"] == "master"]

    @property
    def folder(self) -> Path:
        """Return the directory of what is kept between runs."""
        return self.directory / FOLDER

    @property
    def state_folder(self) -> Path:
        """Return the directory of what Ironic writes; it is removed with the cluster."""
        return Path(self.plan["hypervisor"]["state_dir"]) / FOLDER

    def keep(self, name: str, value: object) -> None:
        """Keep a value as a JSON file of `folder`, 0600."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        write_atomic(self.folder / name, json.dumps(value), 0o600)

    def kept_value(self, name: str, default: Any = None) -> Any:
        """Return a value that was kept, or the default."""
        path = self.folder / name
        return load_json(read_file(path), name=str(path)) if path.exists() else default


def load(directory: Path) -> Lab:
    """Return the lab of a run directory. Raises `ValueError` and `OSError`, which name the file, for another one."""
    plan = rundir.load_plan(directory)
    if not ipi.bootstrap(plan):
        raise ValueError(
            f"{directory / rundir.PLAN}: installer.bootstrap is missing: the plan is not one of `flow: ipi`"
        )
    path = directory / PAYLOAD
    if not path.exists():
        raise ValueError(f"{path} is missing: run the stage image first")
    return Lab(
        directory,
        secrets.with_passwords(plan, secrets.passwords_of(plan, directory)),
        load_json(read_file(path), name=str(path)),
    )
