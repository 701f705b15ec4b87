"""`customize`: what ends up in the live system's config."""

from __future__ import annotations

import base64
import gzip
import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.customize import Customization, customize
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError

FEATURES = {"installer-config": True, "installer-config-directives": {"console": True}, "live-initrd-network": True}
CONFIG = {"ignition": {"version": "3.2.0"}}


@pytest.fixture
def file(tmp_path: Path):
    def write(name: str, content: Any) -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def unpack(resource: dict[str, str]) -> bytes:
    return gzip.decompress(base64.b64decode(resource["source"].removeprefix("data:;base64,")))


def files_of(config: dict[str, Any]) -> dict[str, tuple[bytes, int]]:
    return {f["path"]: (unpack(f["contents"]), f["mode"]) for f in config["storage"]["files"]}


def test_nothing_makes_no_config() -> None:
    assert customize(Customization(), FEATURES) == {}


def test_everything(file) -> None:
    notices: list[str] = []
    found = customize(
        Customization(
            dest_ignition=[file("d1.ign", CONFIG), file("d2.ign", CONFIG)],
            dest_device="/dev/vda",
            dest_console=["ttyS0,115200"],
            dest_karg_append=["a=b"],
            network_keyfile=[file("eth0.nmconnection", "[connection]\n")],
            network_nmstate=[file("state.yaml", {"interfaces": [{"name": "eth1", "type": "ethernet"}]})],
            ignition_ca=[file("ca.pem", "PEM")],
            pre_install=[file("hook", "#!/bin/sh\n")],
            installer_config=[file("mine.yaml", "append-karg: [c=d]\n")],
            live_ignition=[file("l1.ign", CONFIG)],
        ),
        FEATURES,
        notices.append,
    )
    assert notices == ["Boot media will automatically install to /dev/vda without confirmation."]
    assert sorted(found) == [
        "config.ign",
        "etc/coreos-firstboot-network/eth0.nmconnection",
        "etc/coreos-firstboot-network/eth1.nmconnection",
    ]
    config = json.loads(found["config.ign"])
    files = files_of(config)
    assert config["ignition"]["version"] == "3.3.0"
    assert [json.loads(unpack(r)) for r in config["ignition"]["config"]["merge"]] == [CONFIG]
    assert [unpack(r) for r in config["ignition"]["security"]["tls"]["certificateAuthorities"]] == [b"PEM"]
    assert files["/usr/local/bin/pre-install-hook"] == (b"#!/bin/sh\n", 0o700)
    assert files["/etc/coreos/installer.d/0000-mine.yaml"][0] == b"append-karg: [c=d]\n"
    text, mode = files["/etc/coreos/installer.d/0001-customize.yaml"]
    assert mode == stat.S_IRUSR | stat.S_IWUSR
    assert yaml.safe_load(text) == {
        "console": ["ttyS0,115200n8"],
        "append-karg": ["a=b"],
        "ignition-file": "/etc/coreos/dest.ign",
        "dest-device": "/dev/vda",
        "copy-network": True,
    }
    dest = json.loads(files["/etc/coreos/dest.ign"][0])
    assert len(dest["ignition"]["config"]["merge"]) == 2 and dest["ignition"]["security"]
    (unit,) = config["systemd"]["units"]
    assert unit["name"] == "pre-install-hook.service" and "RequiredBy=coreos-installer.service" in unit["contents"]


def test_a_single_config_for_the_disk_is_not_wrapped(file) -> None:
    found = customize(Customization(dest_ignition=[file("d.ign", CONFIG)]), FEATURES)
    assert json.loads(files_of(json.loads(found["config.ign"]))["/etc/coreos/dest.ign"][0]) == CONFIG


@pytest.mark.parametrize(
    ("given", "features", "message"),
    [
        ({"network_keyfile": ["x"]}, {}, "does not support customizing network settings"),
        ({"dest_device": "/dev/vda"}, {}, "does not support customizing installer configuration"),
        (
            {"dest_console": ["ttyS0"]},
            {"installer-config": True},
            "does not support customizing the destination console",
        ),
        ({"dest_console": ["console=ttyS0"]}, FEATURES, 'should not start with "console="'),
        ({"dest_console": ["lp0"]}, FEATURES, "invalid or unsupported console argument"),
        ({"live_ignition": ["/none"]}, FEATURES, "reading /none: No such file or directory"),
    ],
)
def test_refused(given: dict[str, Any], features: dict[str, Any], message: str) -> None:
    with pytest.raises(CoreosError, match=message):
        customize(Customization(**given), features)


@pytest.mark.parametrize(
    "content",
    ["", "[", "[]", "{}", '{"ignition": {"version": "2.2.0"}}', '{"ignition": {"version": 3}}', "[connection]"],
)
def test_not_an_ignition_config(file, content: str) -> None:
    with pytest.raises(CoreosError, match="parsing Ignition config"):
        customize(Customization(live_ignition=[file("bad.ign", content)]), FEATURES)


@pytest.mark.parametrize("content", ["[connection]\nid=x", "- a", "what: ever"])
def test_not_an_installer_config(file, content: str) -> None:
    with pytest.raises(CoreosError, match="parsing installer config"):
        customize(Customization(installer_config=[file("bad.yaml", content)]), FEATURES)


def test_two_of_one_name(file) -> None:
    hook, keyfile = file("hook", "x"), file("eth1.nmconnection", "x")
    state = file("s.yaml", {"interfaces": [{"name": "eth1", "type": "ethernet"}]})
    with pytest.raises(CoreosError, match="already specifies path"):
        customize(Customization(pre_install=[hook, hook]), FEATURES)
    with pytest.raises(CoreosError, match="already specifies keyfile"):
        customize(Customization(network_keyfile=[keyfile], network_nmstate=[state]), FEATURES)


def test_hint_about_the_console() -> None:
    notices: list[str] = []
    customize(Customization(dest_karg_append=["console=ttyS0"]), FEATURES, notices.append)
    assert '--dest-console ttyS0" instead of "--dest-karg-append console=ttyS0"' in notices[0]
