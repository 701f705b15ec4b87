"""The one place where the libraries meet Ansible: options that several modules share, and how a module ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ._deps import MissingLibrary, missing
from .errors import AgentlabError
from .files import usual_umask
from .version import VERSION

Options = dict[str, dict[str, Any]]

SECRETS: dict[str, Any] = {"type": "str", "no_log": True}
PLAN: Options = {"plan": {"type": "dict"}}
"""Of a module that takes the plan of a cluster, or options of its own."""
INSTALLER: Options = {
    "directory": {"type": "path", "required": True},
    "release_image": {"type": "str"},
    "release_version": {"type": "str"},
    "release_profile": {"type": "str"},
    "cache": {"type": "path"},
    "consume": {"type": "bool", "default": False},
}
"""Of a module that does the installer's work."""
LIVE_ISO: Options = {
    "path": {"type": "path", "required": True},
    "dest": {"type": "path"},
    "mode": {"type": "str", "default": "0600"},
}
"""Of a module that changes a live ISO."""
ASSETS = "roles/agent_image/files/live"
"""Units and scripts of the live system, in the collection."""
_COLLECTION = "ansible_collections/agentlab/ocp"
_INSTALLED = ("collections", "~/.ansible/collections", "/usr/share/ansible/collections")


def run(module: AnsibleModule, function: Callable[[], dict[str, Any]]) -> None:
    """Leave the module with what `function` returns; each of the texts in its `warnings` becomes a warning.

    A library's own error (`AgentlabError`, `ValueError`, `OSError`) ends it with that text alone: such texts name what is
    wrong and what would be right. Anything else is a defect, and Ansible shows its traceback.
    """
    usual_umask()
    try:
        result = function()
    except MissingLibrary as error:
        # All at once, instead of one per attempt.
        names = sorted({error.distribution, *missing()}, key=str.lower)
        text = missing_required_lib(", ".join(names))
        module.fail_json(
            msg=f"{text} Install them with `agentlab setup`, or: pip install {' '.join(names)}", exception=error.trace
        )
    except (AgentlabError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    for text in result.pop("warnings", ()):
        module.warn(text)
    module.exit_json(**result)


def collection_path(given: Mapping[str, Any], option: str, part: str = "") -> Path:
    """Return the path of an option; unless it was given, `part` of this collection on this host, or its root directory.

    A module is sent without the collection. That is looked for where Ansible looks by default, and in its environment; another
    version does not count. Raises `ValueError` if there is none.
    """
    if given[option]:
        return Path(given[option])
    for parent in (*os.environ.get("ANSIBLE_COLLECTIONS_PATH", "").split(":"), *_INSTALLED, *sys.path):
        found = Path(parent or ".").expanduser().absolute() / _COLLECTION
        try:
            version = (found / "plugins/module_utils/version.py").read_text(encoding="utf-8")
        except OSError:
            continue
        if f'VERSION = "{VERSION}"' in version:
            return found / part
    where = f"the directory {part} of it" if part else "its root directory"
    raise ValueError(
        f"{option} is missing: agentlab.ocp {VERSION} is not in ANSIBLE_COLLECTIONS_PATH, {', '.join(_INSTALLED)}: pass {where}"
    )


def change_result(changes: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Return a module's result for changes of the form `{"name", "before", "after"}`.

    Without changes `changed` is False; texts of `before` and `after` are what `--diff` compares.
    """
    return {
        "changed": bool(changes),
        "changes": [change["name"] for change in changes],
        "diff": [
            {
                "before_header": change["name"],
                "after_header": change["name"],
                "before": change["before"],
                "after": change["after"],
            }
            for change in changes
        ],
    }
