"""`agentlab mirror` between two registries, and into the storage of a lab's registry; a profile that takes its result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import mirror as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, inputs, profile, rundir, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import services

from .registries import Store, basic_auth, two

PACKAGE = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Store, Store]]:
    with two(tmp_path) as found:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "ca.pem").write_text(found[0].ca)
        (tmp_path / "secret.json").write_text(json.dumps({"auths": {**found[0].auths, **found[1].auths}}))
        yield found


ACCESS = ("--pull-secret", "secret.json", "--trust", "ca.pem")


def test_a_dry_run_then_a_copy_then_nothing_to_do(
    stores: tuple[Store, Store], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = stores
    release = source.release()
    operator = source.image("operators/one", "v1", {"manager": b"x"})
    command = [release, "--to", f"{target.place}/mirror/", "--image", f"{source.place}/operators/one:v1", *ACCESS]
    assert verb.main([*command, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert f"6 images, 0.4 MiB; 6 to copy to {target.place}/mirror, 0.4 MiB" in out
    assert (
        f"operators/one: {source.place}/operators/one@{operator['digest']} -> {target.place}/mirror/operators/one:v1"
        in out
    )
    assert not (tmp_path / verb.OUTPUT).exists()
    assert not json.load(target.ask("GET", "_catalog"))["repositories"]
    assert verb.main(command) == 0
    out = capsys.readouterr().out
    assert "6 of 6: operators/one: 0.4 MiB of 0.4 MiB" in out
    assert "verified: 6 images by digest, " in out
    assert json.load(target.ask("GET", "_catalog"))["repositories"] == [
        "mirror/openshift/release",
        "mirror/openshift/release-images",
        "mirror/operators/one",
    ]
    assert verb.main(command) == 0
    assert "; 0 to copy to" in capsys.readouterr().out


@pytest.mark.slow
def test_two_mirrors_of_a_source_reach_install_config(
    stores: tuple[Store, Store], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = stores
    release = source.release()
    for path in ("a", "b"):
        assert verb.main([release, "--to", f"{target.place}/{path}", *ACCESS]) == 0
    shown = yaml.safe_load(capsys.readouterr().out.rpartition("in a profile:\n")[2])
    profile_file = tmp_path / "p.yml"
    shown["installer"]["pull_secret_file"] = str(tmp_path / "secret.json")
    shown["release"]["version"] = "4.18.9"
    profile_file.write_text(yaml.safe_dump({**shown, "topology": "sno"}))
    plan = build.build(profile.load(str(profile_file), PROFILES), "lab")
    run = tmp_path / "run"
    run.mkdir()
    (change,) = (change for change in inputs.prepare(plan, run) if change.path == run / "install-config.yaml")
    assert yaml.safe_load(change.after)["imageDigestSources"] == [
        {"source": f"{source.place}/art/dev", "mirrors": [f"{target.place}/{path}/openshift/release" for path in "ab"]},
        {
            "source": f"{source.place}/art/release",
            "mirrors": [f"{target.place}/{path}/openshift/release-images" for path in "ab"],
        },
    ]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["{source}/art/none:1"], "unable to read image {source}/art/none:1: {source}/art/none:1: not found (404)"),
        (["{source}/art/release:4.18.9", "--trust", "none.pem"], "--trust is 'none.pem': cannot be read: "),
        (["{source}/art/release:4.18.9", "--policy", "none"], "--policy is 'none': cannot be read: no such file"),
        (["{source}/art/release:4.18.9", "--pull-secret", "wrong.json"], "the registry asks for credentials (401)"),
        (["{source}/art/release:4.18.9", "--pull-secret", "ca.pem"], "--pull-secret is 'ca.pem': is not JSON"),
        (
            ["{source}/art/release:4.18.9", "-o", "secret.json"],
            "--output is 'secret.json': has a document of the kind None",
        ),
    ],
)
def test_one_message_names_what_is_wrong(
    stores: tuple[Store, Store], tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    source, target = stores
    source.release()
    (tmp_path / "wrong.json").write_text(json.dumps({"auths": {source.place: {"auth": basic_auth("u", "no")}}}))
    given = [word.format(source=source.place) for word in argv]
    assert verb.main([given[0], "--to", target.place, *ACCESS, *given[1:]]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and message.format(source=source.place) in err


@pytest.mark.slow
def test_a_killed_run_resumes(stores: tuple[Store, Store], tmp_path: Path) -> None:
    source, target = stores
    command = [sys.executable, "-m", PACKAGE, "mirror", source.release(), "--to", target.place, *ACCESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        for line in running.stdout:
            if line.startswith("2 of 5"):
                running.send_signal(signal.SIGTERM)
                break
    assert running.returncode == 128 + signal.SIGTERM
    assert not (tmp_path / verb.OUTPUT).exists()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "5 images" in done.stdout and "; 5 to copy" not in done.stdout and "; 0 to copy" not in done.stdout
    assert (tmp_path / verb.OUTPUT).exists()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the storage of a lab belongs to root")
def test_the_registry_of_a_lab_gets_what_it_serves(
    stores: tuple[Store, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, __ = stores
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    chosen = profile.load("compact_ipv4", PROFILES)
    chosen["hypervisor"]["state_dir"] = str(tmp_path / "state")
    plan = build.build(chosen, "lab")
    run = tmp_path / "lab"
    run.mkdir()
    (run / rundir.PLAN).write_text(rundir.dump(plan))
    release = source.release()
    assert verb.main([release, "--cluster", "lab", *ACCESS]) == 1
    assert "cluster lab has no registry yet; prepare makes it" in capsys.readouterr().err
    known = secrets.with_passwords(plan, secrets.ensure(plan, run))
    storage, base = Path(plan["services"]["registry"]["storage"]), Path(plan["services"]["directory"]) / "registry"
    storage.mkdir(parents=True)
    (base / "htpasswd").write_text(services._htpasswd(base / "htpasswd", known["services"]["registry"]))
    before = _registries()
    assert verb.main([release, "--cluster", "lab", *ACCESS]) == 0
    assert _registries() == before
    name = f"virthost.{plan['cluster']['domain']}:5000"
    text = (tmp_path / verb.OUTPUT).read_text()
    assert f"{name}/openshift/release-images" in text and "127.0.0.1" not in text.replace(source.place, "")
    # A second registry on the same storage serves it.
    (tmp_path / "other").mkdir()
    other = Store(tmp_path / "other", tmp_path / "tls", storage)
    try:
        assert "4.18.9-x86_64" in json.load(other.ask("GET", "openshift/release-images/tags/list"))["tags"]
    finally:
        other.close()
    usage: Any = type("Usage", (), {"free": 1})
    monkeypatch.setattr(verb.shutil, "disk_usage", lambda __: usage)
    source.image("more", "1", {"more": os.urandom(1 << 20)})
    assert verb.main([release, "--cluster", "lab", "--image", f"{source.place}/more:1", *ACCESS]) == 1
    assert f"{storage} has 0.0 MiB left, and 1.0 MiB are to be copied" in capsys.readouterr().err


def _registries() -> int:
    time.sleep(0.1)
    found = subprocess.run(
        ["pgrep", "-c", "-P", str(os.getpid()), "registry"], capture_output=True, text=True, check=False
    )
    return int(found.stdout)
