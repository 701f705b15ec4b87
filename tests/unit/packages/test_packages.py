from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import packages

ROOT = Path(__file__).resolve().parents[3]
TABLE = yaml.safe_load((ROOT / "roles/setup/vars/main.yml").read_text())["agentlab_setup_packages"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "debian"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', "ubuntu"),
        ("ID=fedora\nVERSION_ID=42\n", "fedora"),
        ('ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="10"\n', "centos"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.5"\n', "rhel"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "ubuntu"),
    ],
)
def test_each_distribution_finds_its_list(text: str, key: str) -> None:
    assert packages.distribution(TABLE, text) == key


def test_a_version_of_its_own_goes_first() -> None:
    table = {"debian": [], "debian-13": [], "ubuntu-24.04": []}
    assert packages.distribution(table, "ID=debian\nVERSION_ID=13\n") == "debian-13"
    assert packages.distribution(table, "ID=ubuntu\nVERSION_ID=24.04\n") == "ubuntu-24.04"


def test_an_unknown_distribution_is_named() -> None:
    with pytest.raises(packages.PackageError, match="Plan 9 is not in the table of packages, which has centos, debian"):
        packages.distribution(TABLE, 'ID=plan9\nPRETTY_NAME="Plan 9"\n')


def test_lists_are_sorted_and_without_doubles() -> None:
    for names in TABLE.values():
        assert names == sorted(set(names))


def test_missing() -> None:
    if not Path("/usr/bin/dpkg-query").exists():
        pytest.skip("needs dpkg")
    assert packages.missing(["dpkg", "no-such-package"]) == ["no-such-package"]
    assert packages.missing(["no-such-package | dpkg", "no-such-package | nor-this"]) == ["no-such-package"]


def test_bindep_names_what_the_table_has() -> None:
    known = {name for names in TABLE.values() for name in names}
    for line in (ROOT / "bindep.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            assert re.split(r"\s", line)[0] in known, line
