"""Release profiles: which one applies, and how releases differ."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import releases
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.schema import SCHEMA


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("4.20.3", "4.20"),
        ("v4.19.0-rc.1", "4.19"),
        ("4.22.0-lab", "4.22"),
        ("4.9.1", releases.OLDEST.name),
        ("4.99.0", releases.LATEST.name),
        ("5.0.0", releases.LATEST.name),
        ("", releases.LATEST.name),
    ],
)
def test_profile_of_a_version(version: str, name: str) -> None:
    assert releases.by_version(version).name == name


def test_profile_by_name() -> None:
    assert releases.by_name("main") is releases.LATEST
    assert releases.by_name("4.19").name == "4.19"
    with pytest.raises(releases.UnknownRelease, match=r"'4\.2' is not a known release: use one of main, 4\.22, 4\.21"):
        releases.by_name("4.2")


def test_unknown_release_names_its_variable(sno: Any) -> None:
    with pytest.raises(InstallerError, match="AGENTLAB_RELEASE_PROFILE: '3' is not a known release"):
        sno.create("image", release_profile="3")


def test_releases_are_in_order_and_known_to_profiles() -> None:
    names = list(releases.RELEASES)
    assert names == sorted(names, key=lambda name: [int(part) for part in name.split(".")])
    assert SCHEMA["properties"]["release"]["properties"]["profile"]["enum"] == [*names, None]
