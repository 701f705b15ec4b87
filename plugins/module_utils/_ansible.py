"""The one place where the libraries meet Ansible: options that several modules share, and how a module ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ._deps import MissingLibrary, missing
from .errors import AgentlabError
from .files import usual_umask

Options = dict[str, dict[str, Any]]

SECRETS: dict[str, Any] = {"type": "str", "no_log": True}
PLAN: Options = {"plan": {"type": "dict", "required": True}}
"""Of a module that needs the plan of a cluster."""
OWNER: Options = {"owner": {"type": "dict", "required": True}}
"""Of a module that only the owner of a cluster may use."""
STANDALONE: Options = {
    "plan": {"type": "dict"},
    "owner": {"type": "dict"},
    "cluster": {"type": "str"},
    "state_dir": {"type": "path"},
}
"""Of a module that enters, changes or removes what a cluster has on a hypervisor, by its plan or by options of its own."""
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


def changed(changes: Sequence[Mapping[str, object]]) -> dict[str, Any]:
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
