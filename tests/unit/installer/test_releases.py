"""Release profiles: which one applies, and how releases differ."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import releases
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import state
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.options import ReleaseOptions
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.shapes import fields, shape


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
    assert list(shape(fields(ReleaseOptions)["profile"]).choices) == names


def env(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def image(directory: Any, release: str, **more: Any) -> dict[str, str]:
    directory.create("image", release_profile=release, **{"release_version": f"{release}.9", **more})
    found: dict[str, str] = directory.files()
    return found


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


SERVICE_ENV = "/usr/local/share/assisted-service/assisted-service.env"
RENDEZVOUS = "/etc/assisted/rendezvous-host.env"


@pytest.mark.parametrize("release", ["4.14", "4.15", "4.16"])
def test_releases_without_authentication(sno: Any, release: str) -> None:
    files = image(sno, release)
    service, host = env(files[SERVICE_ENV]), env(files[RENDEZVOUS])
    assert service["AUTH_TYPE"] == "none" and "LOG_LEVEL" not in service
    assert not {name for name in {*service, *host} if name.endswith("_TOKEN") or name == "EC_PUBLIC_KEY_PEM"}
    known = state.load_wait_for(sno.path)
    assert (known.token, known.initialize_limit) == (None, 5400.0)


def test_4_17_has_one_token(sno: Any) -> None:
    files = image(sno, "4.17")
    service, host = env(files[SERVICE_ENV]), env(files[RENDEZVOUS])
    assert service["AUTH_TYPE"] == "agent-installer-local" and service["LOG_LEVEL"] == "debug"
    token = service["AGENT_AUTH_TOKEN"]
    assert claims(token) == {"infra_env_id": service["INFRA_ENV_ID"]}
    assert host["AGENT_AUTH_TOKEN"] == host["PULL_SECRET_TOKEN"] == token
    assert "USER_AUTH_TOKEN" not in host and "WATCHER_AUTH_TOKEN" not in service
    units = "".join(unit.get("contents", "") for unit in sno.ignition()["systemd"]["units"])
    assert "--env AGENT_AUTH_TOKEN" in units and "--env USER_AUTH_TOKEN" not in units
    known = state.load_wait_for(sno.path)
    assert (known.token, known.scheme) == (token, "user")
    assert "AGENTLAB_RELEASE_PROFILE" not in service


def test_another_release_than_that_of_the_image_is_named_to_the_service(sno: Any) -> None:
    files = image(sno, "4.17", release_version="4.18.2")
    assert env(files[SERVICE_ENV])["AGENTLAB_RELEASE_PROFILE"] == "4.17"


def test_tokens_follow_the_release(sno: Any) -> None:
    image(sno, "4.17")
    files = image(sno, "4.18")
    assert claims(env(files[RENDEZVOUS])["USER_AUTH_TOKEN"]) == {"auth_scheme": "userAuth"}
    assert image(sno, "4.19")[RENDEZVOUS] == files[RENDEZVOUS]
    assert state.load_wait_for(sno.path).scheme == "watcher"


@pytest.mark.parametrize("release", releases.RELEASES)
def test_units_and_files_of_the_live_system(sno: Any, make: Any, release: str) -> None:
    sno.write("agent-config.yaml", make.agent_config(additionalNTPSources=["192.168.111.1"]))
    files = image(sno, release)
    units = {unit["name"]: unit.get("contents", "") for unit in sno.ignition()["systemd"]["units"]}
    number = int(release.split(".")[1])
    for name in ("iscsistart.service", "iscsiadm.service", "oci-eval-user-data.service"):
        assert (name in units) is (number >= 18)
    # The table is there only once the module has been loaded, so that it cannot be a condition of the unit.
    started = units.get("iscsistart.service", "modprobe iscsi_ibft")
    assert "modprobe iscsi_ibft" in started and "ConditionPathExists" not in started
    assert ("/usr/local/bin/oci-eval-user-data.sh" in files) is (number >= 18)
    assert ("/etc/chrony.conf" in files) is (number >= 17)
    mode = re.search(r"^KillMode=(.*)$", units["start-cluster-installation.service"], re.M)
    assert (mode[1] if mode else "") == ("" if number < 17 else "none" if number < 20 else "mixed")


@pytest.mark.parametrize(
    ("release", "change", "text"),
    [
        ("4.14", {"controlPlane": {"replicas": 4}}, "ControlPlane.Replicas: Invalid value: 4: ControlPlane.Replicas can only be set to 3 or 1. Found 4"),
        ("4.17", {"controlPlane": {"replicas": 5}}, "ControlPlane.Replicas can only be set to 3 or 1. Found 5"),
        ("4.18", {"controlPlane": {"replicas": 2}}, "ControlPlane.Replicas: Invalid value: 2: ControlPlane.Replicas can only be set to 5, 4, 3, or 1. Found 2"),
        ("4.19", {"controlPlane": {"replicas": 2}}, 'controlPlane.replicas: Unsupported value: 2: supported values: "3", "1", "4", "5"'),
        ("4.18", {"compute": [{"name": "worker", "replicas": 2}]},
         "Compute.Replicas: Required value: Total number of Compute.Replicas must be 0 when ControlPlane.Replicas is 1 for platform none or external. Found 2"),
        ("4.14", {"controlPlane": {"architecture": "ppc64le"}},
         'ControlPlane.Architecture: Unsupported value: "ppc64le": supported values: "amd64", "arm64"'),
        ("4.14", {"platform": {"none": None, "external": {"platformName": "mine"}}},
         'Platform.External.PlatformName: Unsupported value: "mine": supported values: "oci"'),
        ("4.18", {"platform": {"none": None, "external": {"platformName": "oci"}}},
         'Platform.External.CloudControllerManager: Invalid value: "": When using external oci platform, '
         "Platform.External.CloudControllerManager must be set to External"),
        ("4.15", {"networking": {"networkType": "OpenShiftSDN"}}, "networkType OpenShiftSDN is not supported"),
        ("4.17", {"networking": {"machineNetwork": [{"cidr": "169.254.169.0/24"}]}}, "default masquerade subnet 169.254.169.0/29"),
        ("4.18", {"networking": {"machineNetwork": [{"cidr": "169.254.100.0/24"}]}}, "default masquerade subnet 169.254.0.0/17"),
    ],
)  # fmt: skip
def test_messages_about_the_install_config(
    sno: Any, make: Any, release: str, change: dict[str, Any], text: str
) -> None:
    config = make.install_config()
    for key, value in change.items():
        merged = {**config[key], **value} if isinstance(value, dict) and isinstance(config.get(key), dict) else value
        config[key] = {k: v for k, v in merged.items() if v is not None} if key == "platform" else merged
    sno.write("install-config.yaml", config)
    with pytest.raises(InstallerError, match=re.escape(text)):
        sno.create("cluster-manifests", release_profile=release)


def test_openshift_sdn_was_there_in_4_14(sno: Any, make: Any) -> None:
    config = make.install_config(controlPlane={"name": "master", "replicas": 3})
    config["networking"] = {**config.get("networking", {}), "networkType": "OpenShiftSDN"}
    sno.write("install-config.yaml", config)
    sno.create("cluster-manifests", release_profile="4.14")


def test_vsphere_paths_of_4_18(sno: Any, make: Any) -> None:
    section = {
        "apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "vcenters": [{"server": "v.test", "user": "u", "datacenters": ["d"]}],
    }  # fmt: skip
    sno.write(
        "install-config.yaml",
        make.install_config(platform={"vsphere": section}, controlPlane={"name": "master", "replicas": 3}),
    )
    for release, path in (("4.18", "Platform.VSphere.password"), ("4.19", "platform.vsphere.vcenters[0].password")):
        with pytest.raises(
            InstallerError, match=re.escape(f"{path}: Required value: All credential fields are required")
        ):
            sno.create("cluster-manifests", release_profile=release)


@pytest.mark.parametrize(
    ("release", "texts"),
    [
        ("4.17", ["Hosts[0].Interfaces: Required value", "Hosts[0].Host: Forbidden: host role has incorrect value. Role must either be 'master' or 'worker'"]),
        ("4.18", ["hosts[0].interfaces: Required value", 'hosts[0].role: Unsupported value: "arbiter": supported values: "master", "worker"']),
        ("4.20", ["hosts[0].interfaces: Required value"]),
    ],
)  # fmt: skip
def test_messages_about_hosts(sno: Any, make: Any, release: str, texts: list[str]) -> None:
    sno.write("agent-config.yaml", make.agent_config(hosts=[{"hostname": "a", "role": "arbiter"}]))
    with pytest.raises(InstallerError) as caught:
        sno.create("cluster-manifests", release_profile=release)
    assert [text for text in texts if text not in str(caught.value)] == []
    assert ("role" in str(caught.value)) is (release != "4.20")


def test_minimal_iso_came_with_4_18(sno: Any, make: Any) -> None:
    sno.write("agent-config.yaml", make.agent_config(minimalISO=False))
    with pytest.raises(InstallerError, match='unknown field "minimalISO"'):
        sno.create("cluster-manifests", release_profile="4.17")
    sno.create("cluster-manifests", release_profile="4.18")


def test_hosts_of_the_install_config_came_with_4_15(sno: Any, make: Any) -> None:
    host = {"name": "master-0", "role": "master", "bootMACAddress": "52:54:00:aa:bb:00", "bmc": {}}
    baremetal = {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "hosts": [host]}
    config = make.install_config(platform={"baremetal": baremetal}, controlPlane={"name": "master", "replicas": 3})
    for release, used in (("4.14", False), ("4.15", True)):
        sno.write("install-config.yaml", config)
        files = image(sno, release)
        assert ("/etc/assisted/hostconfig/master-0/role" in files) is used
        assert (
            any("Platform.Baremetal.Hosts is ignored by release 4.14" in text for text in sno.reported("warning"))
            is not used
        )


def test_no_proxy_gets_the_machine_network_since_4_18(sno: Any, make: Any) -> None:
    sno.write(
        "install-config.yaml",
        make.install_config(proxy={"httpProxy": "http://192.168.111.1:3128", "noProxy": "x.test"}),
    )
    for release, there in (("4.17", False), ("4.18", True)):
        sno.create("cluster-manifests", release_profile=release)
        assert ("192.168.111.0/24" in (sno.path / "cluster-manifests/infraenv.yaml").read_text()) is there


def test_unconfigured_ignition_of_an_install_config(sno: Any, directory: Any) -> None:
    for release in ("4.14", "4.18"):
        sno.create("unconfigured-ignition", release_profile=release)
        config = json.loads((sno.path / "unconfigured-agent.ign").read_text())
        assert any(entry["path"] == "/etc/assisted/manifests/infraenv.yaml" for entry in config["storage"]["files"])
        assert not [text for text in sno.reported("warning") if "ignored" in text]
    with pytest.raises(
        InstallerError,
        match=r'generate asset "InfraEnv Config File": configuration file not found: cluster-manifests/infraenv',
    ):
        sno.create("unconfigured-ignition", release_profile="4.19")


def test_missing_infra_env_of_4_18(directory: Any) -> None:
    directory.path.mkdir()
    with pytest.raises(
        InstallerError, match='generate asset "InfraEnv Config": missing configuration or manifest file'
    ):
        directory.create("unconfigured-ignition", release_profile="4.18")


def test_what_is_reported_of_4_18(sno: Any, make: Any) -> None:
    config = make.install_config(controlPlane={"name": "master", "replicas": 1, "hyperthreading": "Disabled"})
    sno.write("install-config.yaml", config)
    sno.create("cluster-manifests", release_profile="4.18")
    assert "Configuration has 1 master replicas and 0 worker replicas" in sno.reported("info")
    assert "ControlPlane.Hyperthreading: Disabled is ignored" in sno.reported("warning")


@pytest.mark.parametrize(("release", "name"), [("4.21", "BaseIso Image"), ("4.22", "Base ISO Image")])
def test_name_of_the_base_iso(sno: Any, release: str, name: str) -> None:
    with pytest.raises(InstallerError, match=f'generate asset "{name}"'):
        sno.create("image", release_profile=release, os_image={"": "/nowhere.iso"})
