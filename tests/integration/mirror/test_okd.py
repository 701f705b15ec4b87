"""A release in OKD's shape, in registries that ask for no credentials: mirrored, then manifests and image of it without a pull secret."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import create
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import mirror as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import files_of
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, inputs, profile, rundir, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.release import mirror_set
from ansible_collections.agentlab.ocp.tests.unit.installer.conftest import live_iso

from .registries import Store, two

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
RELEASE, CONTENT = "quay.io/okd/scos-release", "quay.io/okd/scos-content"
VERSION = yaml.safe_load((PROFILES / "sno_okd.yml").read_text())["release"]["version"]
BUILD = "10.0.20250628-0"
# As in scos.json of the installer.
LOCATION = f"https://rhcos.mirror.openshift.com/art/storage/prod/streams/c10s/builds/{BUILD}/x86_64/scos-{BUILD}-live"


def release(store: Store, work: Path) -> str:
    """Put a release into a registry, as it is at quay.io; returns its digest.

    The components that OKD has and OpenShift does not are stream-coreos and its extensions; the base ISO is CentOS Stream
    CoreOS, whose boot loader is below EFI/centos, and its stream has no name.
    """
    iso = live_iso(work / "scos.iso", f"scos-{BUILD}", "centos").read_bytes()
    formats = {
        "iso": {"disk": {"location": f"{LOCATION}-iso.x86_64.iso", "sha256": hashlib.sha256(iso).hexdigest()}},
        "pxe": {"rootfs": {"location": f"{LOCATION}-rootfs.x86_64.img"}},
    }
    stream = {
        "stream": "c10s",
        "architectures": {"x86_64": {"artifacts": {"metal": {"release": BUILD, "formats": formats}}}},
    }
    components: dict[str, dict[str, bytes]] = {
        "agent-installer-api-server": {"usr/bin/assisted-service": b"service"},
        "agent-installer-utils": {"usr/bin/agent-tui": b"tui"},
        "machine-os-images": {
            "coreos/coreos-x86_64.iso": iso,
            "coreos/coreos-x86_64.iso.sha256": hashlib.sha256(iso).hexdigest().encode(),
            "coreos/coreos-stream.json": json.dumps(stream).encode(),
        },
        "stream-coreos": {"usr/lib/os-release": b'NAME="CentOS Stream CoreOS"\n'},
        "stream-coreos-extensions": {"usr/share/rpm-ostree/extensions/x": b"x"},
    }
    images = {name: store.image("okd/scos-content", name, files)["digest"] for name, files in components.items()}
    references = {
        "kind": "ImageStream",
        "metadata": {"name": VERSION},
        "spec": {
            "tags": [
                {"name": name, "from": {"kind": "DockerImage", "name": f"{CONTENT}@{digest}"}}
                for name, digest in images.items()
            ]
        },
    }
    metadata = {"kind": "cincinnati-metadata-v0", "version": VERSION}
    files = {
        "release-manifests/image-references": json.dumps(references).encode(),
        "release-manifests/release-metadata": json.dumps(metadata).encode(),
    }
    return str(store.image("okd/scos-release", VERSION, files)["digest"])


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, Store]]:
    """One in the place of quay.io, and an empty one."""
    with two(tmp_path, public=True) as found:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        (tmp_path / "ca.pem").write_text(found[0].ca)
        yield found


def mirrored(stores: tuple[Store, Store], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Mirror the release by its version, with no credentials; returns what a profile needs. The source is gone then."""
    source, target = stores
    quay = [
        {"source": name, "mirrors": [f"{source.place}{name.removeprefix('quay.io')}"]} for name in (RELEASE, CONTENT)
    ]
    Path("quay.yaml").write_text(rundir.dump(mirror_set.resource(quay)))
    assert verb.main([VERSION, "--to", f"{target.place}/mirror", "--mirrors", "quay.yaml", "--trust", "ca.pem"]) == 0
    source.close()
    shown: dict[str, Any] = yaml.safe_load(capsys.readouterr().out.rpartition("in a profile:\n")[2])
    return shown


def prepared(shown: dict[str, Any], target: Store, work: Path) -> tuple[Path, dict[str, Any]]:
    """The run directory of the example with those mirrors, and its plan."""
    example = yaml.safe_load((PROFILES / "sno_okd.yml").read_text())
    raw = profile.merge(example, shown)
    raw["installer"]["install_config"] = {"additionalTrustBundle": target.ca}
    (work / "p.yml").write_text(yaml.safe_dump(raw))
    plan: Any = build.build(profile.load(str(work / "p.yml"), PROFILES, files=True), "lab")
    run = work / "run"
    run.mkdir()
    for change in inputs.prepare(plan, run):
        change.path.parent.mkdir(exist_ok=True)
        change.path.write_text(change.after)
    return run, plan


def test_a_mirrored_release_makes_manifests_and_image(
    stores: tuple[Store, Store], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = release(stores[0], tmp_path)
    shown = mirrored(stores, capsys)
    assert shown["release"] == {"payload": "okd", "image": f"{RELEASE}@{digest}"}
    names = json.load(stores[1].ask("GET", "mirror/openshift/release/tags/list"))["tags"]
    assert f"{VERSION}-x86_64-stream-coreos" in names
    run, plan = prepared(shown, stores[1], tmp_path)
    monkeypatch.setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", plan["release"]["image"])

    assert create.main(["cluster-manifests", "--dir", str(run)]) == 0
    secret = yaml.safe_load((run / "cluster-manifests/pull-secret.yaml").read_text())
    registry = configs.registry_auth(secrets.with_passwords(plan, secrets.ensure(plan, run)))["auths"]
    assert json.loads(secret["stringData"][".dockerconfigjson"]) == {
        "auths": {"fake": {"auth": "aWQ6cGFzcwo="}, **registry}
    }
    image_set = yaml.safe_load((run / "cluster-manifests/cluster-image-set.yaml").read_text())
    assert image_set["metadata"]["name"] == f"openshift-{VERSION}" and image_set["spec"]["releaseImage"].endswith(
        digest
    )

    assert create.main(["image", "--dir", str(run)]) == 0
    with LiveIso(run / "agent.x86_64.iso") as iso:
        assert iso.fs.volume_id == f"scos-{BUILD}" and iso.ignition is not None
        assert "coreos.liveiso=scos-" in iso.fs.read("EFI/centos/grub.cfg").decode()
        files = {name: data.decode() for name, data in files_of(json.loads(iso.ignition)).items()}
    share = "/usr/local/share/assisted-service"
    assert f'"version":"{BUILD}"' in files[f"{share}/images.env"] and VERSION in files[f"{share}/images.env"]
    assert "PUBLIC_CONTAINER_REGISTRIES=quay.io\n" in files[f"{share}/assisted-service.env"]
    assert f'location = "{stores[1].place}/mirror/openshift/release"' in files["/etc/containers/registries.conf"]


@pytest.mark.slow
def test_a_minimal_image_takes_the_published_root_file_system(
    stores: tuple[Store, Store], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    release(stores[0], tmp_path)
    run, plan = prepared(mirrored(stores, capsys), stores[1], tmp_path)
    monkeypatch.setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", plan["release"]["image"])
    agent = yaml.safe_load((run / "agent-config.yaml").read_text())
    (run / "agent-config.yaml").write_text(yaml.safe_dump({**agent, "minimalISO": True}))
    assert create.main(["image", "--dir", str(run)]) == 0
    assert f"{LOCATION}-rootfs.x86_64.img".encode() in (run / "agent.x86_64.iso").read_bytes()
