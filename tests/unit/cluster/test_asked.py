"""What install-config asks for: that `validate` notices a cluster without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import asked, shapes
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import validate as module
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.client import ClusterError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.shapes import check
from ansible_collections.agentlab.ocp.tests.unit.cluster.test_render import HA, VIPS, rendered, seeds
from ansible_collections.agentlab.ocp.tests.unit.cluster.test_validate import PROFILES, Kube, failed


def planned(name: str, monkeypatch: pytest.MonkeyPatch, **installer: Any) -> Any:
    monkeypatch.setattr(module, "_access", lambda plan: [])
    given: Any = profile.load(name, PROFILES, "one")
    given["installer"] |= installer
    return build.build(given, "one")


def subjects(plan: Any, kube: Kube) -> set[str]:
    return {check.name for check in module.validate(plan, Path("none"), lambda path: kube)}


PODS, SERVICES = (
    "pods 10.128.0.0/14 with /23 for each node, fd01::/48 with /64 for each node",
    "services 172.30.0.0/16, fd02::/112",
)


@pytest.mark.parametrize(
    ("field", "other", "found"),
    [
        ("networkType", "Calico", f"Calico; {PODS}; {SERVICES}"),
        (
            "clusterNetwork",
            [{"cidr": "10.128.0.0/14", "hostPrefix": 24}],
            f"OVNKubernetes; pods 10.128.0.0/14 with /24 for each node; {SERVICES}",
        ),
        ("clusterNetwork", [], f"OVNKubernetes; pods none; {SERVICES}"),
        (
            "serviceNetwork",
            ["fd02::/112", "172.30.0.0/16"],
            f"OVNKubernetes; {PODS}; services fd02::/112, 172.30.0.0/16",
        ),
    ],
)
def test_other_networks(field: str, other: Any, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("ha_dualstack", monkeypatch)
    kube = Kube(plan)
    assert not failed(plan, kube) and "pod and service networks" in subjects(plan, kube)
    kube.networks["serviceNetwork"][1] = "fd02:0::/112"  # the same
    assert not failed(plan, kube)
    kube.networks[field] = other
    [(name, text)] = failed(plan, kube).items()
    assert (name, text.split("; planned: ")[0]) == ("pod and service networks", found)


def test_what_is_laid_over_install_config_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    laid = {"networking": {"serviceNetwork": ["172.31.0.0/16"]}, "fips": True}
    plan = planned("compact_ipv4", monkeypatch, install_config=laid)
    kube = Kube(plan)
    assert failed(plan, kube).keys() == {"pod and service networks", "FIPS mode of pool master"}
    kube.networks["serviceNetwork"], kube.fips = ["172.31.0.0/16"], {"master": True}
    assert not failed(plan, kube)


def test_fips_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("ha_dualstack", monkeypatch, fips=True)
    kube = Kube(plan)
    assert not failed(plan, kube)
    kube.fips["worker"] = False
    assert failed(plan, kube) == {"FIPS mode of pool worker": "off; planned: on"}
    without = planned("ha_dualstack", monkeypatch)
    assert not any("FIPS" in subject for subject in subjects(without, Kube(without)))


@pytest.mark.parametrize("name", ["compact_disks", "compact_ipi"])
def test_the_bmcs_of_bare_metal_hosts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(name, monkeypatch)
    kube = Kube(plan)
    assert not failed(plan, kube) and "BMCs of BareMetalHosts" in subjects(plan, kube)
    first, second, third = kube.bmcs
    kube.bmcs[first] = {"bmc": {"address": "redfish://192.0.2.1/redfish/v1/Systems/1"}}
    kube.bmcs[second] = {}
    del kube.bmcs[third]
    kube.bmcs["stranger"] = {}
    [(subject, found)] = failed(plan, kube).items()
    assert subject == "BMCs of BareMetalHosts"
    assert found.startswith(
        f"{first} redfish://192.0.2.1/redfish/v1/Systems/1, {second} none, {third} is missing, stranger none; planned: {first} redfish-v"
    )


def test_bmcs_that_install_config_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("compact_ipv4", monkeypatch)
    assert "BMCs of BareMetalHosts" not in subjects(plan, Kube(plan))
    laid = {"platform": {"baremetal": {"hosts": [{"name": "mine"}]}}}
    plan = planned("compact_disks", monkeypatch, install_config=laid)
    assert "BMCs of BareMetalHosts" not in subjects(plan, Kube(plan))


@pytest.mark.parametrize(
    ("name", "other", "found"),
    [
        ("ha_dualstack", ["192.168.111.0/24"], "192.168.111.0/24; planned: 192.168.111.0/24, fd2e:6f44:5dd8:c956::/120"),
        ("ha_dualstack", ["192.168.0.0/16", "fd2e:6f44:5dd8:c956::/120"],
         "192.168.0.0/16, fd2e:6f44:5dd8:c956::/120; planned: 192.168.111.0/24, fd2e:6f44:5dd8:c956::/120"),
        ("compact_balancer_static", ["192.168.111.0/24"], "192.168.111.0/24; planned: 192.168.111.0/24, 192.168.112.0/24"),
        ("compact_ipv4", [], "none; planned: 192.168.111.0/24"),
    ],
)  # fmt: skip
def test_other_machine_networks(name: str, other: list[str], found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(name, monkeypatch)
    plan["services"].pop("balancer", None)
    kube = Kube(plan)
    assert "machine networks" not in failed(plan, kube) and "machine networks" in subjects(plan, kube)
    kube.install_config["networking"]["machineNetwork"] = [{"cidr": cidr} for cidr in other]
    assert failed(plan, kube)["machine networks"] == found


def test_machine_networks_that_install_config_has(monkeypatch: pytest.MonkeyPatch) -> None:
    laid = {"networking": {"machineNetwork": [{"cidr": "192.168.96.0/19"}]}}
    plan = planned("compact_ipv4", monkeypatch, install_config=laid)
    kube = Kube(plan)
    assert failed(plan, kube) == {"machine networks": "192.168.111.0/24; planned: 192.168.96.0/19"}
    kube.install_config["networking"] = laid["networking"]
    assert not failed(plan, kube)


def test_machine_networks_of_the_rendezvous_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the platforms `none` and `external` the assisted service takes them from there, whatever install-config has."""
    plan = planned("sno_ipv4", monkeypatch)
    assert "machine networks" not in subjects(plan, Kube(plan))


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (["b.example.com/x"], "q.example.com/x at b.example.com/x"),
        (["b.example.com/x", "a.example.com/x"], "q.example.com/x at b.example.com/x, a.example.com/x"),
        ([], "q.example.com/x at none"),
        (None, "q.example.com/x at none"),
    ],
)
def test_other_mirrors(there: list[str] | None, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [{"source": "q.example.com/x", "mirrors": ["a.example.com/x", "b.example.com/x"]}]
    plan = planned("ha_dualstack", monkeypatch, image_digest_sources=sources)
    kube = Kube(plan)
    kube.mirrors[0]["mirrors"].append("c.example.com/x")
    kube.mirrors.insert(0, {"source": "other.example.com/y", "mirrors": ["d.example.com/y"]})
    assert not failed(plan, kube)
    kube.mirrors = [] if there is None else [{"source": "q.example.com/x", "mirrors": there}]
    assert failed(plan, kube) == {
        "mirrors of images": f"{found}; planned: q.example.com/x at a.example.com/x, b.example.com/x"
    }


def test_mirrors_of_the_lab_of_a_file_and_of_install_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "idms.yaml"
    file.write_text(
        "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: a}\n"
        "spec: {imageDigestMirrors: [{source: q.example.com/x, mirrors: [a.example.com/x]}]}\n"
    )
    plan = planned("ha_dualstack", monkeypatch, mirrors_file=str(file))
    kube = Kube(plan)
    assert failed(plan, kube)["mirrors of images"].count("q.example.com/x at none")
    kube.mirrors.append({"source": "q.example.com/x", "mirrors": ["a.example.com/x"]})
    assert not failed(plan, kube)
    file.unlink()  # as on another host
    kube.mirrors.pop()
    assert not failed(plan, kube)
    del kube.mirrors[0]
    assert "mirrors of images" in failed(plan, kube)
    plan = planned("ha_dualstack", monkeypatch, install_config={"imageDigestSources": []})
    kube = Kube(plan)
    kube.mirrors = []
    assert not failed(plan, kube)


def test_a_pull_secret_without_a_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "pull-secret.json"
    plan = planned("ha_dualstack", monkeypatch, pull_secret_file=str(file))
    kube = Kube(plan)
    assert "registries of the pull secret" not in subjects(plan, kube), "it is on another host"
    file.write_text('{"auths": {"registry.example.com": {"auth": "eDp5"}, "quay.example.com": {"auth": "eDp5"}}}')
    both = "quay.example.com, registry.example.com"
    assert failed(plan, kube) == {"registries of the pull secret": f"registry.example.com; planned: {both}"}
    kube.auths["quay.example.com"] = {}
    assert not failed(plan, kube)
    kube.auths = {}
    assert failed(plan, kube) == {"registries of the pull secret": f"none; planned: {both}"}


@pytest.mark.parametrize("text", ["x", "[]", '{"auths": []}', '{"auths": {"a": 1}}'])
def test_a_pull_secret_of_another_form(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "pull-secret.json"
    file.write_text('{"auths": {"registry.example.com": {}}}')
    plan = planned("ha_dualstack", monkeypatch, pull_secret_file=str(file))
    kube = Kube(plan)
    kube.secret = text
    assert [*failed(plan, kube)] == ["registries of the pull secret"]


def test_keys_that_do_not_log_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "team.pub"
    plan = planned("ha_dualstack", monkeypatch, ssh_key_file=str(file))
    kube = Kube(plan)
    assert not any("SSH" in subject for subject in subjects(plan, kube)), "it is on another host"
    file.write_text("# the team\n\nssh-ed25519  BBBB team\nssh-ed25519 CCCC other\n")
    assert failed(plan, kube) == {
        f"SSH keys of pool {pool}": "1 of team.pub; planned: 2 of team.pub" for pool in ("master", "worker")
    }
    kube.keys["master"] += "\nssh-ed25519 CCCC other"
    assert failed(plan, kube) == {"SSH keys of pool worker": "1 of team.pub; planned: 2 of team.pub"}
    kube.keys["worker"] += "\nssh-ed25519 CCCC other"
    assert not failed(plan, kube)


def test_the_objects_of_the_lab_have_what_is_read(
    tls_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those with which a control plane of the lab payload begins."""
    there = seeds(rendered(tls_dir, HA, **VIPS))
    (tmp_path / "team.pub").write_text("ssh-rsa B\n")
    (tmp_path / "pull-secret.json").write_text('{"auths": {"x": {}}}')
    plan = planned(
        "ha_dualstack",
        monkeypatch,
        ssh_key_file=str(tmp_path / "team.pub"),
        pull_secret_file=str(tmp_path / "pull-secret.json"),
        image_digest_sources=[
            {"source": "registry.agentlab.test/lab/payload", "mirrors": ["virthost:5000/lab/payload"]}
        ],
        install_config={
            "networking": {"machineNetwork": [{"cidr": "192.168.111.0/24"}, {"cidr": "fd2e:6f44:5dd8::/64"}]}
        },
    )
    kube = Kube(plan)
    names = {"imagedigestmirrorsets": ("ImageDigestMirrorSet", "image-digest-mirror")}
    kinds = {"configmaps": "ConfigMap", "secrets": "Secret"}

    def find(path: str, shape: Any = dict) -> Any:
        kind, name = path.split("/")[-2:]
        found = {"items": [there[names[name]]]} if name in names else there.get((kinds.get(kind, ""), name))
        check(found or {}, shape, path)
        return found

    def rendered_config(pool: str) -> Any:
        name = there["MachineConfigPool", pool]["spec"]["configuration"]["name"]
        check(there["MachineConfig", name], shapes.MACHINE_CONFIG, name)
        return there["MachineConfig", name]

    monkeypatch.setattr(kube, "find", find)
    monkeypatch.setattr(kube, "rendered_config", rendered_config)
    for name in ("machine networks", "mirrors of images", "registries of the pull secret", "SSH keys"):
        found = list(asked.CHECKS[name](plan, cast(Any, kube)))
        assert found and all(one.ok for one in found), found


def test_an_api_without_the_objects_is_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("compact_disks", monkeypatch)
    kube = Kube(plan)

    def refuse(*__: object) -> Any:
        raise ClusterError("not found")

    for name in ("network", "bare_metal_hosts", "find"):
        monkeypatch.setattr(kube, name, refuse)
    assert failed(plan, kube) == dict.fromkeys(
        (
            "pod and service networks",
            "machine networks",
            "BMCs of BareMetalHosts",
            "mirrors of images",
            "extra manifests",
        ),
        "not found",
    )
