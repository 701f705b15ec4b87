"""A profile with one mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError


def problem(text: str, folder: Path) -> str:
    """Return the only problem of the profile `text`, which is written to `p.yml` in `folder` and has that name in the problem."""
    path = folder / "p.yml"
    path.write_text(text)
    with pytest.raises(ProfileError) as caught:
        profile.load(path, None, "ostest")
    found = [str(one).replace(str(path), "p.yml") for one in caught.value.problems]
    assert len(found) == 1, found
    return found[0]
