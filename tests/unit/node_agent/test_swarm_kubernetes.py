"""`swarm --kubernetes`: manifests of an Indexed Job, checked against the API's published schema, run as its pods run them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import kubernetes, main, report
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.hardware import plan_clusters
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings, SwarmError
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted

IMAGE = "registry.example/swarm:1"
URL = "http://192.0.2.1:8090"
QUICK = [
    "--think-time=0", "--watch=.1", "--controller-poll=.1", "--installer-poll=.05", "--write-reports=2", "--register-interval=.2",
    "--stall=20", "--logs-kib=1",
]  # fmt: skip
VERSIONS = ("1.33", kubernetes_validate.latest_version())
"""The first one in which `backoffLimitPerIndex` is stable, and the newest."""


def printed(capsys: pytest.CaptureFixture[str], *words: str, url: str = URL) -> list[dict[str, Any]]:
    """Return the manifests of a command line."""
    capsys.readouterr()
    assert main.main(["--kubernetes=3", f"--image={IMAGE}", "--url", url, *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def container(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = manifests[-1]["spec"]["template"]["spec"]["containers"][0]
    return found


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in kubernetes.TOKENS} | more


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / name for name in kubernetes.FILES}
    for name, path in found.items():
        path.write_text(f"{name}: 1\n")
    found["template"].write_text("kind: InfraEnv\nspec: {}\n")
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_valid(
    version: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER_AUTH_TOKEN", "user's")
    flags = [f"--{name.replace('_', '-')}={path}" for name, path in files.items()]
    for words in ([], flags):
        found = printed(capsys, "--clusters=3", *words)
        for manifest in found:
            kubernetes_validate.validate(manifest, version, strict=True)
        assert [manifest["kind"] for manifest in found] == ["Namespace", "ConfigMap", "Secret", "Job"]
    broken = found[-1] | {"spec": found[-1]["spec"] | {"completionMod": "Indexed"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, version, strict=True)
    # What the schema does not say: limits of sizes, names that refer to each other.
    config, secret, job = found[1:]
    assert len(json.dumps(config)) < 1 << 20
    spec = job["spec"]["template"]["spec"]
    assert {key: base64.b64decode(value).decode() for key, value in secret["data"].items()} == {
        "USER_AUTH_TOKEN": "user's",
        **{name: path.read_text() for name, path in files.items()},
    }
    assert [volume.get("secret", {}).get("items") for volume in spec["volumes"]] == [
        None,
        [{"key": name, "path": name} for name in kubernetes.FILES],
    ]
    assert {mount["name"] for mount in container(found)["volumeMounts"]} == {
        volume["name"] for volume in spec["volumes"]
    }
    assert "user's" not in json.dumps([config, job])


@pytest.mark.parametrize("words", [[], ["--clusters=50", "--topology=sno=5,compact=8,ha:7=2", "--failures=disk=.1,ntp=.2", "--no-install",
                                        "--keep", "--insecure", "--threshold=errors=5", "--download=iso,rootfs", "--ramp-up=60",
                                        "--operators=lso,metallb", "--base-domain=$(HOME).test", "--name=load", "--allow-unfinished"]])  # fmt: skip
def test_pods_have_the_options_of_a_local_run(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = words or ["--clusters=3"]
    # Kubernetes replaces $$ by $ where it would otherwise expand a variable.
    given = [word.replace("$$(", "$(") for word in container(printed(capsys, *words))["args"]]
    local = main.settings_of(main.parser().parse_args(["--url", URL, *words]))
    whole = {cluster.name: cluster for cluster in plan_clusters(local)}
    parts = []
    for index in range(3):
        monkeypatch.setenv("JOB_COMPLETION_INDEX", str(index))
        pod = main.settings_of(main.parser().parse_args(given))
        assert pod.part == (index + 1, 3) and pod.report == main.PRINTED
        assert pod.public() | {"part": 0, "report": 0} == local.public() | {"part": 0, "report": 0}
        parts.append({cluster.name: cluster for cluster in plan_clusters(pod)})
    assert parts[0] | parts[1] | parts[2] == whole and sum(map(len, parts)) == len(whole)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_every_option_reaches_the_pods() -> None:
    """An option that is added later is passed on with its flag, too."""
    parser = main.parser()
    defaults = parser.parse_args([])
    for name, value in vars(defaults).items():
        if name in kubernetes.OURS:
            continue
        other = not value if isinstance(value, bool) else Path("f") if name in kubernetes.FILES else 7
        changed = parser.parse_args([])
        vars(changed)[name] = other
        word = kubernetes.arguments(changed, defaults)[0]
        assert getattr(parser.parse_args([word]), name) != value, word


def test_pods_run_and_their_logs_are_merged(
    service: FakeAssisted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifests = printed(capsys, *QUICK, "--clusters=4", "--topology=sno,compact", url=service.url)
    program = tmp_path / "swarm"
    program.write_bytes(base64.b64decode(manifests[1]["binaryData"]["swarm"]))
    assert container(manifests)["command"] == ["python3", "/swarm/program/swarm"]
    logs = [tmp_path / f"{index}.log" for index in range(3)]
    pods = []
    for index, log in enumerate(logs):
        with log.open("wb") as stream:
            pods.append(
                subprocess.Popen(
                    [sys.executable, program, *container(manifests)["args"]],
                    cwd=tmp_path,
                    env=environment(JOB_COMPLETION_INDEX=str(index)),
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                )
            )
    assert [pod.wait(60) for pod in pods] == [0, 0, 0]
    assert main.main(["merge", *map(str, logs), "--report", f"{tmp_path}/all"]) == 0
    whole = report.load(tmp_path / "all")
    assert whole["ends"] == {"installed": 4} and whole["machines"] == 3 and not service.errors
    assert not {path.name for path in tmp_path.iterdir()} - {"swarm", "all", *(log.name for log in logs)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kubernetes=4", "--clusters=3"], "--kubernetes 4: must be between 1 and the number of clusters, 3"),
        (["--kubernetes=-1"], "--kubernetes -1: must be between 1 and the number of clusters, 1"),
        (["--kubernetes=1", "--image="], "--kubernetes: requires --image, an image with Python 3.11"),
        (["--kubernetes=1", "--report=x"], "--kubernetes: cannot be used with --report or --part"),
        (["--kubernetes=1", "--part=1/2"], "--kubernetes: cannot be used with --report or --part"),
        (["--kubernetes=1", "--image=x", "--bmc=8000"], "--kubernetes: cannot be used with --bmc"),
        (["--kubernetes=1", "--cacert=missing.pem"], "--cacert missing.pem: No such file or directory"),
        (
            ["--kubernetes=1", "--cacert=/dev/zero"],
            "--kubernetes: the files of the options are longer than 1000000 bytes",
        ),
        (["--part=index/2"], "--part 'index/2': JOB_COMPLETION_INDEX is '', must be a number"),
    ],
)
def test_invalid_use(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JOB_COMPLETION_INDEX", raising=False)
    assert main.main([*([f"--image={IMAGE}"] if "--part=index/2" not in words else []), "--url", URL, *words]) == 2
    shown = capsys.readouterr()
    assert not shown.out and message in shown.err


@pytest.mark.parametrize("damage", ["", "report", "base64", "cut", "bomb"])
def test_logs_without_a_report(damage: str, tmp_path: Path) -> None:
    log = tmp_path / "pod.log"
    good = report.line({"histograms": {}})
    packed = report.line({"zeros": "0" * (64 << 20)}) if damage == "bomb" else ""
    log.write_text(
        {"": "", "report": report.line({"x": 1}), "base64": f"{good}!", "cut": good[:-24], "bomb": packed}[damage]
    )
    with pytest.raises(
        SwarmError, match=r"pod\.log.*: (has (no|a damaged) report of a swarm|is not a report|is longer than)"
    ):
        report.load(log)


def test_index_counts_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "3")
    with pytest.raises(SwarmError, match=r"--part 4/3: must be NUMBER/COUNT"):
        main.settings_of(main.parser().parse_args(["--url", URL, "--part=index/3"]))
    assert Settings(URL).part == (1, 1)
