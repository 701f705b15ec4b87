"""The one place where the libraries meet Ansible: results become exit_json, what goes wrong becomes fail_json."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ._deps import MissingLibrary, missing


def run(module: AnsibleModule, function: Callable[[], dict[str, Any]], *errors: type[Exception]) -> None:
    """Leave the module with what `function` returns.

    A library's own error (`ValueError`, `OSError`, and the given `errors`) ends it with that text alone: such texts
    name what is wrong and what would be right. Anything else is a defect, and Ansible shows its traceback.
    """
    expected: tuple[type[Exception], ...] = (ValueError, OSError, *errors)
    try:
        result = function()
    except MissingLibrary as error:
        # All at once, instead of another one at each try.
        names = sorted({error.distribution, *missing()}, key=str.lower)
        text = missing_required_lib(", ".join(names))
        module.fail_json(msg=f"{text} They are installed by `agentlab setup`, or by: pip install {' '.join(names)}", exception=error.trace)
    except expected as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)
