"""Every Ignition config that is written here, by the public schema of its version and by the real ignition-validate."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jsonschema
import pytest
from ansible_collections.agentlab.ocp.payload.api_server import images
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import (
    IgnitionError,
    check,
    dumps,
    read_data_url,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import credentials
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import RELEASES
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("AGENTLAB_SHARED") or ROOT.parent / "shared") / "conformance"
SCHEMAS = {path.stem.rpartition("-")[2]: path for path in sorted((SHARED / "ignition-schema").glob("*.json"))}
VALIDATOR = shutil.which("ignition-validate")

pytestmark = pytest.mark.skipif(not SCHEMAS, reason="the shared conformance cases are not here")


def module(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


INPUTS = module("installer_inputs", "tests/unit/installer/conftest.py")
RULES = module("installer_rules", "tests/unit/installer/test_validation.py")


def schema(version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMAS[version].read_text())
    return found


def assert_valid(config: dict[str, Any]) -> None:
    """By our own checker, the schema of the config's version, and Ignition itself; so must be what it merges."""
    check(config)
    version = config["ignition"]["version"]
    jsonschema.Draft4Validator(schema(version.removesuffix(".0"))).validate(config)
    if VALIDATOR:
        done = subprocess.run([VALIDATOR, "-"], input=dumps(config), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    for part in (config["ignition"].get("config") or {}).get("merge") or []:
        if part["source"].startswith("data:"):
            assert_valid(json.loads(read_data_url(part["source"], part.get("compression"))))


# --- the installer's ----------------------------------------------------------------------

HOSTS = [INPUTS.host(f"master-{number}", number, "master", static=True) for number in range(3)]
MIRRORS = [{"source": "quay.io/openshift-release-dev/ocp-release", "mirrors": ["registry.example:5000/ocp/release"]}]
PROXY = {
    "httpProxy": "http://user:p%40ss@192.0.2.1:3128",
    "httpsProxy": "http://192.0.2.1:3128",
    "noProxy": "example.com",
}
DUAL = {
    "machineNetwork": [{"cidr": "192.168.111.0/24"}, {"cidr": "fd2e:6f44:5dd8:c956::/120"}],
    "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}, {"cidr": "fd01::/48", "hostPrefix": 64}],
    "serviceNetwork": ["172.30.0.0/16", "fd02::/112"],
}
NUTANIX = {
    "prismCentral": {"endpoint": {"address": "pc.test", "port": 9440}, "username": "u", "password": "p"},
    "prismElements": [
        {"endpoint": {"address": "pe.test", "port": 9440}, "uuid": "00061f7f-44f7-19dc-72ac-7cc25586ee53"}
    ],
    "subnetUUIDs": ["a2e46975-2cde-4a49-9dda-815eb4fcd681"],
}
ARCHITECTURE = {
    arch: {
        "controlPlane": {"replicas": 1, "architecture": arch}, "compute": [{"name": "worker", "replicas": 0, "architecture": arch}]
    }
    for arch in ("arm64", "ppc64le", "s390x")
}  # fmt: skip
# Name: (change of install-config, change of agent-config, oldest release that takes it).
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "sno": ({}, {}, "4.18"),
    "compact with static networks": (RULES.COMPACT, {"hosts": HOSTS, "additionalNTPSources": ["192.168.111.1"]}, "4.18"),
    "four": ({"controlPlane": {"replicas": 4}}, {}, "4.18"),
    "five and workers": ({"controlPlane": {"replicas": 5}, "compute": [{"name": "worker", "replicas": 2}]}, {}, "4.18"),
    "BMCs": (RULES.bare(hosts=[RULES.BARE_HOST]), {}, "4.18"),
    "vsphere": (RULES.platform("vsphere", vcenters=[RULES.VCENTER], failureDomains=[RULES.DOMAIN]), {}, "4.18"),
    "nutanix": (RULES.platform("nutanix", **NUTANIX), {}, "4.19"),
    "external": ({"platform": {"none": None, "external": {"platformName": "oci", "cloudControllerManager": "External"}}}, {}, "4.18"),
    "arbiter": (RULES.merged(RULES.COMPACT, {"controlPlane": {"replicas": 2}, "arbiter": {"name": "arbiter", "replicas": 1}}), {}, "4.20"),
    "fencing": (
        RULES.credentials(RULES.CREDENTIAL, {**RULES.CREDENTIAL, "hostName": "m1", "address": "redfish+https://192.168.111.2/x"}), {}, "4.22"
    ),
    **{arch: (change, {}, "4.18") for arch, change in ARCHITECTURE.items()},
    "mirrors and proxy": ({"imageDigestSources": MIRRORS, "proxy": PROXY}, {}, "4.18"),
    "fips": ({"fips": True}, {}, "4.18"),
    "dual stack": ({"networking": DUAL}, {"rendezvousIP": "fd2e:6f44:5dd8:c956::14"}, "4.18"),
    "minimal": ({}, {"minimalISO": True, "bootArtifactsBaseURL": "http://192.0.2.1/x"}, "4.18"),
}  # fmt: skip
CASES = [
    pytest.param(profile, change, agent, id=f"{profile}-{name}")
    for name, (change, agent, oldest) in VARIANTS.items()
    for profile in RELEASES
    if profile >= oldest
]


@pytest.fixture(scope="module", autouse=True)
def _keys_once() -> Iterator[None]:
    """RSA keys take their time, and no test here looks at them."""
    made = {name: credentials.signer(name) for name in credentials.SIGNERS}
    client = credentials.admin_client(made["admin-kubeconfig-signer"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "signer", made.__getitem__)
        patch.setattr(credentials, "admin_client", lambda _ca: client)
        yield


@pytest.fixture(scope="module")
def base_iso(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = INPUTS.base_iso.__wrapped__(tmp_path_factory)
    return made


@pytest.mark.parametrize(("profile", "change", "agent"), CASES)
def test_images(tmp_path: Path, base_iso: Path, profile: str, change: dict[str, Any], agent: dict[str, Any]) -> None:
    directory = INPUTS.Directory(tmp_path, base_iso)
    directory.write("install-config.yaml", RULES.merged(INPUTS.install_config(), change))
    directory.write("agent-config.yaml", INPUTS.agent_config(**agent))
    directory.write("openshift/extra.yaml", "kind: ConfigMap\napiVersion: v1\n---\nkind: InternalReleaseImage\n")
    directory.create("image", "config-image", release_profile=profile, release_version=f"{profile}.0")
    for path in tmp_path.glob("*.iso"):
        with LiveIso(path) as iso:
            assert iso.ignition
            assert_valid(json.loads(iso.ignition))
    assert len(list(tmp_path.glob("*.iso"))) == 2


@pytest.mark.parametrize("profile", RELEASES)
def test_unconfigured(tmp_path: Path, base_iso: Path, profile: str) -> None:
    directory = INPUTS.Directory(tmp_path, base_iso)
    secret = {"kind": "Secret", "stringData": {".dockerconfigjson": '{"auths": {"q": {"auth": "eA=="}}}'}}
    directory.write("cluster-manifests/pull-secret.yaml", secret)
    directory.write("cluster-manifests/infraenv.yaml", {"kind": "InfraEnv", "spec": {"cpuArchitecture": "amd64"}})
    for interactive in (False, True) if RELEASES[profile].interactive_flag else (False,):
        directory.create(
            "unconfigured-ignition", release_profile=profile, release_version=f"{profile}.0", interactive=interactive
        )
        assert_valid(json.loads((tmp_path / "unconfigured-agent.ign").read_text()))


# --- of the service and its cluster ---------------------------------------------------------


@pytest.fixture
def tls_dir(tmp_path: Path) -> Path:
    for name in credentials.SIGNERS:
        for kind, text in credentials.signer(name).items():
            (tmp_path / f"{name}.{kind}").write_text(text)
    return tmp_path


@pytest.mark.parametrize("hosts", [1, 4])
def test_installation(tls_dir: Path, hosts: int) -> None:
    lab = module("cluster_render", "tests/unit/cluster/test_render.py")
    configs = lab.rendered(tls_dir, lab.HA[:hosts], **lab.VIPS)
    for name, config in configs.items():
        assert_valid(config)
        assert name.endswith(".ign")
    for (kind, __), item in lab.seeds(configs).items():
        if kind == "MachineConfig":
            assert_valid(lab.served_ignition(item))


@pytest.mark.parametrize("kind", ["full-iso", "minimal-iso"])
def test_discovery(kind: str) -> None:
    state = {
        "interfaces": [{"name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": True, "dhcp": True}}]
    }
    infra_env = {
        "id": "ie", "additional_ntp_sources": "192.0.2.1,ntp.example", "ssh_authorized_key": "ssh-rsa A\nssh-rsa B",
        "additional_trust_bundle": "PEM", "proxy": {"http_proxy": "http://192.0.2.1:3128"}, "_pull_secret": "{}",
        "static_network_config": json.dumps(
            [{"network_yaml": json.dumps(state), "mac_interface_map": [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}]}]
        ),
    }  # fmt: skip
    settings = {
        "AGENT_DOCKER_IMAGE": "quay.io/x/agent:1",
        "SERVICE_BASE_URL": "http://192.0.2.2:8090",
        "PULL_SECRET_TOKEN": "t",
    }
    assert_valid(images.discovery(SimpleNamespace(config=settings), infra_env, kind))


# --- coreos-installer's ---------------------------------------------------------------------


def test_customized(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Live and destination configs, certificate authority, hooks and keyfiles: all that customize wraps."""
    from ansible_collections.agentlab.ocp.plugins.module_utils.cli.coreos import iso as verb

    folder = SHARED / "coreos-iso/customize"
    coreos = module("coreos_fixtures", "tests/unit/coreos/conftest.py")
    path = coreos.build(tmp_path / "live.iso", area=1 << 18)
    hook = tmp_path / "hook"
    hook.write_text("#!/bin/sh\n")
    words = ["customize", "--dest-device", "/dev/vda", "--ignition-ca", str(folder / "cert.pem"), "--pre-install", str(hook),
             "--post-install", str(hook), "--network-keyfile", str(folder / "installer-test.nmconnection"),
             "--dest-karg-append", "a"]  # fmt: skip
    for kind in ("live", "dest"):
        for name in (f"{kind}.ign", f"{kind}-2.ign"):
            words += [f"--{kind}-ignition", str(folder / name)]
    assert verb.main([*words, str(path)]) == 0, capsys.readouterr().err
    with LiveIso(path) as iso:
        assert iso.ignition
        config = json.loads(iso.ignition)
    assert config["ignition"]["config"]["merge"]
    assert_valid(config)


# --- the checker itself -----------------------------------------------------------------------


def _documents(
    document: dict[str, Any], node: dict[str, Any], path: tuple[str, ...], found: list[tuple[tuple[str, ...], str]]
) -> None:
    """Every field of a schema: its path, where [] is an entry of a list, and its JSON type."""
    if "$ref" in node:
        target: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return _documents(document, target, path, found)
    for part in node.get("allOf", []):
        _documents(document, part, path, found)
    kinds = node.get("type", "object")
    kind = next(k for k in ([kinds] if isinstance(kinds, str) else kinds) if k != "null")
    found.append((path, kind))
    for name, inner in node.get("properties", {}).items():
        _documents(document, inner, (*path, name), found)
    if "items" in node:
        _documents(document, node["items"], (*path, "[]"), found)
    return None


_VALUES: dict[str, Any] = {"string": "https://x", "integer": 1, "boolean": True, "array": [], "object": {}}


def _sample(path: tuple[str, ...], value: Any, version: str) -> dict[str, Any]:
    """A config of that version with `value` at `path`, and with what its surroundings must have."""
    for part in reversed(path):
        value = [value] if part == "[]" else {part: value}
    config: dict[str, Any] = {"ignition": {"version": f"{version}.0"}}
    return _joined(config, value, ())


_NAMES = {
    ("passwd", "users"): {"name": "u"}, ("passwd", "groups"): {"name": "g"}, ("storage", "files"): {"path": "/f"},
    ("storage", "directories"): {"path": "/d"}, ("storage", "links"): {"path": "/l", "target": "/t"}, ("storage", "disks"): {"device": "/dev/a"},
    ("storage", "raid"): {"name": "r", "level": "raid1", "devices": []}, ("storage", "filesystems"): {"device": "/dev/a"},
    ("storage", "luks"): {"name": "l"}, ("systemd", "units"): {"name": "a.service"}, ("systemd", "units", "dropins"): {"name": "a.conf"},
}  # fmt: skip


def _joined(config: Any, value: Any, path: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_joined({}, item, path) for item in value]
    if not isinstance(value, dict):
        return value
    merged = {**(config if isinstance(config, dict) else {}), **_NAMES.get(path, {})}
    if path[-1:] == ("httpHeaders",):
        merged["name"] = "h"
    if path[-1:] in (("merge",), ("replace",), ("certificateAuthorities",)):
        merged["source"] = "https://example"
    if path[-1:] == ("custom",):
        merged |= {"pin": "p", "config": "c"}
    for key, item in value.items():
        if not (key in ("name", "path", "source", "version", "device") and key in merged):
            merged[key] = _joined(merged.get(key), item, (*path, key))
    return merged


FIELDS: list[tuple[str, tuple[str, ...], str]] = []
for _version in SCHEMAS:
    _found: list[tuple[tuple[str, ...], str]] = []
    _documents(schema(_version), schema(_version), (), _found)
    FIELDS += [(_version, path, kind) for path, kind in _found if path not in ((), ("ignition",))]


def test_the_checker_knows_every_field_of_every_version_and_its_type() -> None:
    """What the schema of a version has is taken, with another type it is not, and by no older version than has it."""
    first: dict[tuple[str, ...], str] = {}
    for version, path, kind in FIELDS:
        first.setdefault(path, version)
        sample = _sample(path, _VALUES[kind], version)
        jsonschema.Draft4Validator(schema(version)).validate(sample)
        check(sample)
        if path[-1] in ("name", "path", "source", "version", "device"):
            continue
        wrong = _sample(path, 1 if kind == "string" else "x", version)
        with pytest.raises(IgnitionError, match=r"expected|null"):
            check(wrong)
    for path, version in first.items():
        minor = int(version.partition(".")[2])
        if minor and path[-1] not in ("name", "source"):
            kind = next(kind for known, place, kind in FIELDS if (known, place) == (version, path))
            with pytest.raises(IgnitionError, match="is not known before version"):
                check(_sample(path, _VALUES[kind], f"3.{minor - 1}"))


@pytest.mark.parametrize("version", SCHEMAS)
def test_what_the_checker_takes_the_schema_takes(version: str) -> None:
    """Random configs out of the fields of any version."""
    validator = jsonschema.Draft4Validator(schema(version))
    odd = st.one_of(
        st.none(), st.booleans(), st.integers(-1, 2**40), st.text(max_size=4), st.just([]), st.just({}), st.just([None])
    )

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(FIELDS), st.one_of(st.none(), odd)), max_size=4))
    def run(picks: list[tuple[tuple[str, tuple[str, ...], str], Any]]) -> None:
        config: dict[str, Any] = {"ignition": {"version": f"{version}.0"}}
        for (__, path, kind), value in picks:
            extra = _sample(path, copy.deepcopy(_VALUES[kind]) if value is None else value, version)
            config = {**config, **extra, "ignition": {**config["ignition"], **extra["ignition"]}}
        try:
            check(config)
        except IgnitionError:
            return
        validator.validate(config)

    run()
