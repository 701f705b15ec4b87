"""Modules that need little of a plan take that as options of their own: a file, an address, the name of a machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import _ansible, definition
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.resources import read_data_url
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import state as installer_state
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import hypervisors, partial, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.report import hypervisor_logs
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import outside, standalone
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit, RunFile
from ansible_collections.agentlab.ocp.tests.unit.installer.conftest import live_iso
from ansible_collections.agentlab.ocp.tests.unit.modules.test_own_options import NETWORKS, run

ROOT = Path(__file__).resolve().parents[3]
NEEDED: dict[str, dict[str, Any]] = {
    "cluster_definition": {"dir": "/x", "log": "/x"},
    "cluster_tests": {"run_dir": "/x"},
    "create_cluster": {"dir": "/x", "cache": "/x"},
    "hypervisor_info": {},
    "hypervisor_logs": {},
    "lab_machines": {},
    "lab_tunnels": {},
    "machine_images": {"directory": "/x"},
    "node_screen": {},
}
EXCLUSIVE: dict[str, dict[str, Any]] = {
    "cluster_definition": {"hosts": []},
    "cluster_tests": {"ssh_key": "/x"},
    "create_cluster": {"bootstrap": "192.0.2.5"},
    "hypervisor_info": {"name": "x"},
    "hypervisor_logs": {"cluster": "mine"},
    "lab_machines": {"machines": []},
    "lab_tunnels": {"tunnels": []},
    "machine_images": {"ssh_key_file": "/x"},
    "node_screen": {"domain": "x"},
}
FACT: dict[str, Any] = {"owner": {"cluster": "a", "run_dir": "/runs/a", "uid": 1, "user": "u", "host": "h", "plan": ""}}


def program(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose programs hide those of the host."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "bin"


@pytest.mark.parametrize("name", NEEDED)
def test_either_a_plan_or_own_options(name: str) -> None:
    assert "one of the following is required: plan, " in run(name, **NEEDED[name])["msg"]
    refused = run(name, plan={}, owner=FACT, **NEEDED[name], **EXCLUSIVE[name])["msg"]
    # hypervisor_logs and others have no option `owner`, which is what they refuse then.
    assert "mutually exclusive" in refused or "owner. Supported parameters include" in refused
    refused = run(name, plan={}, **NEEDED[name], **EXCLUSIVE[name])["msg"]
    assert "mutually exclusive" in refused or "missing parameter(s) required by 'plan': owner" in refused


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("lab_owner_info", {"state_dir": "/x", "owner": {}}, "missing required arguments: owner found in owner"),
        (
            "lab_state",
            {"run_dir": "/x", "host": "h", "plan": {}, "owner": {"owner": {"cluster": "a"}}},
            "missing required arguments: host, plan, run_dir, uid, user found in owner -> owner",
        ),
        (
            "sandbox",
            {"plan": {}, "owner": {**FACT, "adpot": True}},
            "owner.adpot. Supported parameters include: adopt, owner, remote",
        ),
        (
            "lab_nodes",
            {"plan": {}, "owner": {"owner": {**FACT["owner"], "uid": "x"}}},
            "argument 'uid' is of type str found in 'owner -> owner'",
        ),
        (
            "lab_destroy",
            {"owner": FACT, "created": [{"kind": "pool", "name": "x"}]},
            "missing required arguments: host found in created",
        ),
        (
            "lab_destroy",
            {"owner": FACT, "created": [{"kind": "pool", "name": "x", "host": "h", "nam": "y"}]},
            "created.nam",
        ),
        (
            "hypervisor_info",
            {"domain_type": "qemu", "first": {"qemu": "7.2"}},
            "missing required arguments: domain_type, reason found in first",
        ),
    ],
)
def test_a_wrong_field_is_named(name: str, given: dict[str, Any], message: str) -> None:
    done = run(name, **given)
    assert done["failed"] and message in done["msg"], done


def test_the_owner_is_a_fact() -> None:
    """The option has the fields of the fact, with its defaults, so that what passes it is understood."""
    assert argument(owner.Caller)["options"].keys() == owner.Caller(owner.Owner(**FACT["owner"])).fact().keys()
    inner = argument(owner.Caller)["options"]["owner"]["options"]
    assert inner["mark"] == {"type": "str", "default": ""} and inner["uid"] == {"type": "int", "required": True}


def test_who_owns_a_cluster(tmp_path: Path) -> None:
    assert run("lab_owner_info", state_dir=str(tmp_path / "lab"))["owner"] is None
    owner.claim(tmp_path / "lab", owner.Caller(owner.Owner(**FACT["owner"])))
    found = run("lab_owner_info", state_dir=str(tmp_path / "lab"))["owner"]
    assert (found["cluster"], found["user"]) == ("a", "u")
    other = {"owner": {**FACT["owner"], "uid": 2}}
    assert "belongs to u (uid 1)" in run("lab_owner_info", state_dir=str(tmp_path / "lab"), owner=other)["msg"]


def test_parts_of_the_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ansible.sys, "path", [])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", f"{tmp_path / 'none'}:{tmp_path / 'there'}")
    monkeypatch.chdir(tmp_path)
    assert _ansible.collection_path({"assets": "/given"}, "assets", _ansible.ASSETS) == Path("/given")
    with pytest.raises(
        ValueError, match=r"assets is missing: agentlab.ocp .*pass the directory roles/agent_image/files/live of it"
    ):
        _ansible.collection_path({"assets": None}, "assets", _ansible.ASSETS)
    installed = tmp_path / "there/ansible_collections/agentlab/ocp"
    installed.parent.mkdir(parents=True)
    installed.symlink_to(ROOT)
    found = _ansible.collection_path({"assets": None}, "assets", _ansible.ASSETS)
    assert found == installed / "roles/agent_image/files/live" and (found / "units").is_dir()
    assert _ansible.collection_path({"collection": ""}, "collection") == installed
    monkeypatch.setattr(_ansible, "VERSION", "0.0.1")
    with pytest.raises(ValueError, match=r"collection is missing: .*pass its root directory"):
        _ansible.collection_path({"collection": None}, "collection")


def test_cluster_tests(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER", raising=False)  # make exports it
    program(programs, "ssh", 'echo "$@"')
    (tmp_path / "console").write_text("login:\n")
    given: dict[str, Any] = {
        "run_dir": str(tmp_path),
        "kubeconfig": "/my/kubeconfig",
        "ssh_key": "/my/key",
        "hosts": [{"name": "one", "address": "192.0.2.10", "console": str(tmp_path / "console")}],
        "tests": [
            {"name": "environment", "on": "lab", "run": "echo $KUBECONFIG-$CLUSTER", "expect": {"output": "^/my/kubeconfig-$"}},
            {"name": "login", "on": "one", "run": ["id"], "expect": {"output": "-i /my/key core@192.0.2.10 timeout .* id"}},
            {"name": "console", "on": "one", "console": "login:", "timeout": 5},
            {"name": "elsewhere", "on": "host", "run": "true"},
        ],
    }  # fmt: skip
    done = run("cluster_tests", **given)
    assert done["ok"] is True and [check["name"] for check in done["checks"]] == [
        "test environment",
        "test login",
        "test console",
    ], done
    assert [check["name"] for check in run("cluster_tests", place="host", **given)["checks"]] == ["test elsewhere"]
    assert run("cluster_tests", check=True, **given)["checks"] == []


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"on": "two", "run": "true"}, "tests: 0.on is 'two': must be api, host, lab or the name of a node: one"),
        ({"on": "one"}, "tests: 0: a test has exactly one action"),
        ({"on": "one", "console": "x"}, "tests: 0.console is 'x': requires `console` of one in hosts"),
        ({"on": "lab", "run": "true", "timeout": 0}, "tests: 0.timeout is 0: must be from 1 to 86400"),
    ],
)
def test_wrong_tests(test: dict[str, Any], message: str) -> None:
    hosts = [{"name": "one", "address": "192.0.2.10"}]
    assert message in run("cluster_tests", run_dir="/x", hosts=hosts, tests=[{"name": "a", **test}])["msg"]


def test_cluster_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = [{"name": "one", "role": "master", "macs": ["52:54:00:00:00:1A"]}]
    given = {"dir": str(tmp_path), "log": str(tmp_path / "log")}
    assert run("cluster_definition", check=True, hosts=hosts, **given)["changed"] is True
    wrong = [{**hosts[0], "macs": ["x"]}]
    assert "hosts: 0.macs.0 is 'x': must be a unicast MAC" in run("cluster_definition", hosts=wrong, **given)["msg"]

    known = installer_state.WaitFor("192.0.2.10", None, "user", 1, False)
    monkeypatch.setattr(definition, "load_wait_for", lambda __: known)
    bound: list[Any] = []

    class Definition:
        def __init__(self, api: object, manifests: object, extra: object, hosts: Any, *_: object, **__: object) -> None:
            bound.extend(hosts)

        def install(self) -> dict[str, bytes]:
            return dict.fromkeys(definition.CREDENTIALS, b"secret")

    monkeypatch.setattr(definition, "Definition", Definition)
    definition.define(
        tmp_path, partial.plan_of_hosts([{"name": "one", "role": "master", "macs": hosts[0]["macs"]}]), print, seconds=1
    )
    assert bound == [definition.Host("one", "master", frozenset({"52:54:00:00:00:1a"}))]


def test_create_cluster(tmp_path: Path) -> None:
    """The logs of a failed bootstrap are those of the given machines; messages and events are in the directory."""
    directory, calls = tmp_path / "assets", tmp_path / "calls"
    directory.mkdir()
    state, bundle = directory / RunFile.INSTALLER_STATE, directory / "log-bundle-1.tar.gz"
    program(
        tmp_path,
        "openshift-install",
        f'echo "$@" >>{calls}; case $1 in gather) touch {bundle}; exit;; esac\n'
        f"echo 'level=info msg=\"  one: deploying\"' >&2; echo '{{}}' >{state}; exit {int(Exit.BOOTSTRAP)}",
    )
    given: dict[str, Any] = {
        "bootstrap": "192.0.2.5",
        "hosts": [{"name": "one", "address": "192.0.2.10"}],
        "dir": str(directory),
        "program": str(tmp_path / "openshift-install"),
        "collection": str(ROOT),
        "cache": str(tmp_path / "cache"),
        "release_image": "registry.test/release:1",
    }
    assert run("create_cluster", check=True, **given)["changed"] is True and not calls.exists()
    done = run("create_cluster", **given)
    assert done["failed"] and done["exit_code"] == Exit.BOOTSTRAP and done["log_bundle"] == str(bundle), done
    assert "--bootstrap 192.0.2.5 --master 192.0.2.10" in calls.read_text()
    assert "one: deploying" in (directory / RunFile.CREATE_LOG).read_text()
    assert '"subject":"one"' in (directory / RunFile.EVENTS).read_text()
    assert (
        "bootstrap: must be a host name or an IP address"
        in run("create_cluster", **{**given, "bootstrap": "-x-"})["msg"]
    )


def test_hypervisor_info(programs: Path) -> None:
    program(programs, "qemu-system-x86_64", "echo QEMU emulator version 7.2.1")
    facts = run("hypervisor_info", domain_type="qemu")["facts"]
    assert facts == {"qemu": "7.2", "domain_type": "qemu", "reason": "as in the profile"}
    assert run("hypervisor_info", domain_type="qemu", first=facts)["facts"] == facts
    refused = run("hypervisor_info", domain_type="qemu", name="mine", first={**facts, "qemu": "8.0"})
    assert "hypervisor mine has QEMU 7.2, and the first one 8.0" in refused["msg"]


def test_hypervisor_logs(tmp_path: Path, programs: Path) -> None:
    program(programs, "virsh", 'shift 2; case $1 in domstate) echo "shut off" ;; *) echo "<$*/>" ;; esac')
    state_dir = tmp_path / "lab"
    given = {"cluster": "mine", "state_dir": str(state_dir), "networks": NETWORKS, "nodes": [{"name": "one"}]}
    assert run("hypervisor_logs", **given)["changed"] is False
    (state_dir / "console").mkdir(parents=True)
    (state_dir / "console/mine_one.log").write_text("login:\n")
    packed = run("hypervisor_logs", **given)
    kept: dict[str, bytes] = {}
    note = hypervisor_logs.unpack(Path(packed["path"]), lambda name, content: kept.update({name: content.read()}))
    assert note.domains == {"mine_one": "shut off"}
    assert {"console/mine_one.log", "libvirt/mine0.xml", "libvirt/mine0.leases", "libvirt/mine_one.xml"} <= kept.keys()


def test_machine_images(tmp_path: Path) -> None:
    base = live_iso(tmp_path / "base.iso", "lab")
    (tmp_path / "more.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHE5J9x7p3N9dYPjLSZ4uUQvKfQgLhQ2q1v7o0ZkD8Xq me\n"
    )
    given: dict[str, Any] = {
        "machines": [{"name": "web", "files": {"/etc/motd": "hello\n"}}, {"name": "own", "image": "/srv/x.img"}],
        "ssh_key_file": str(tmp_path / "more.pub"),
        "directory": str(tmp_path / "mine"),
        "base": str(base),
    }
    assert run("machine_images", check=True, **given)["changes"] == ["web"] and not (tmp_path / "mine").exists()
    assert run("machine_images", **given)["changes"] == ["web"]
    with LiveIso(tmp_path / "mine/machines/web.iso") as iso:
        config = json.loads(iso.ignition or b"")
    [user] = config["passwd"]["users"]
    assert [key.split()[-1] for key in user["sshAuthorizedKeys"]] == ["agentlab-mine", "me"]
    files = {file["path"]: read_data_url(file["contents"]["source"]) for file in config["storage"]["files"]}
    assert files == {"/etc/hostname": b"web\n", "/etc/motd": b"hello\n"}
    assert run("machine_images", **given)["changed"] is False
    wrong = {**given, "machines": [{"name": "web", "files": {"motd": "x"}}]}
    assert "machines: 0.files" in run("machine_images", **wrong)["msg"]


@pytest.fixture
def connection() -> Iterator[Any]:
    found = pytest.importorskip("libvirt").open("test:///default")
    yield found
    found.close()


def test_lab_machines(tmp_path: Path, connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "own.img"
    image.write_bytes(bytes(510) + b"\x55\xaa" + bytes(512))
    given: dict[str, Any] = {
        "plan": None,
        "cluster": "mine",
        "state_dir": str(tmp_path / "lab"),
        "machines": [{"name": "client", "image": str(image), "memory_mib": 512}, {"name": "web"}],
    }
    made = short.plan(given)
    assert [[disk["size_gib"] for disk in one["disks"]] for one in made["machines"] or []] == [[10], []]
    who = standalone.owner_of(given, made, check=False)
    listed = json.loads((tmp_path / "lab/state.json").read_text())["created"]
    assert [item["name"] for item in listed if item["kind"] in ("pool", "domain")] == [
        "mine",
        "mine_client",
        "mine_web",
    ]
    assert Path(made["hypervisor"]["console_dir"]).is_dir()
    done = outside.apply(connection, made, who, None, "test")
    assert [change["name"] for change in done] == ["mine", "mine_client", "mine_client", "client"]
    assert connection.lookupByName("mine_client").isActive()
    assert outside.apply(connection, made, who, None, "test") == []
    wrong = run("lab_machines", cluster="mine", machines=[{"name": "client", "image": "x.img"}])
    assert "machines: 0.image is 'x.img': must be `lab`, or the path of an image" in wrong["msg"]


def test_lab_tunnels(tmp_path: Path, programs: Path) -> None:
    """Both hosts find the same VXLANs, and list theirs before they make them."""
    program(programs, "ip", "exit 1")
    given: dict[str, Any] = {"cluster": "mine", "state_dir": str(tmp_path / "lab"), "networks": NETWORKS}
    here = [{"local": "192.0.2.1", "remote": "192.0.2.2"}, {"local": "192.0.2.1", "remote": "192.0.2.3"}]
    planned = run("lab_tunnels", check=True, tunnels=here, **given)
    assert len(set(planned["changes"])) == 2 and not (tmp_path / "lab").exists(), planned
    ends = hypervisors.ends(short.plan({**given, "tunnels": here}))
    assert [(end.bridge, end.local, end.remote, end.mtu) for end in ends] == [
        ("mine0", "192.0.2.1", "192.0.2.2", 1500),
        ("mine0", "192.0.2.1", "192.0.2.3", 1500),
    ]
    there = hypervisors.ends(short.plan({**given, "tunnels": [{"local": "192.0.2.2", "remote": "192.0.2.1"}]}))
    assert [end.number for end in there] == [ends[0].number] and there[0].remote == "192.0.2.1"
    assert "ip" in run("lab_tunnels", tunnels=here, **given)["msg"]
    listed = json.loads((tmp_path / "lab/state.json").read_text())["created"]
    assert [item["name"] for item in listed if item["kind"] == "tunnel"] == planned["changes"]
    wrong = [{"local": "192.0.2.1", "remote": "x"}]
    assert "tunnels: 0.remote is 'x'" in run("lab_tunnels", tunnels=wrong, **given)["msg"]


def test_node_screen(tmp_path: Path) -> None:
    pytest.importorskip("libvirt")
    assert run("node_screen", check=True, domain="fedora")["changed"] is False
    assert run("node_screen", check=True, domain="fedora", steps=[{"press": "enter"}])["changed"] is True
    assert "required by 'plan': node" in run("node_screen", plan={}, owner=FACT)["msg"]
    assert "press" in run("node_screen", domain="fedora", media=str(tmp_path), steps=[{"press": "nokey"}])["msg"]
