"""What the real `openshift-install agent create cluster-manifests` did with the same inputs: exit code, messages and files.

The pairs are in AGENTLAB_SHARED, or `../shared` next to the checkout; without them the test is skipped.
"""

from __future__ import annotations

import importlib.util
import json
import lzma
import os
import socket
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import binary, compare

ROOT = Path(__file__).resolve().parents[2]
PAIRS = Path(os.environ.get("AGENTLAB_SHARED") or ROOT.parent / "shared") / "conformance" / "installer-pairs"
CASES: list[dict[str, Any]] = []
if PAIRS.exists():
    with lzma.open(PAIRS / "pairs.json.xz", "rt") as packed:
        CASES = json.load(packed)

# Pairs that differ on purpose, and the words of docs/differences.md that state it.
_STRICTER_PLATFORM = "`platform.none` together with another platform is refused."
_SECRET = '`pullSecret: Invalid value: "<hidden>"`'
_TYPES = "The struct of a wrong type's field is named"
DIFFERENCES = {
    "valid/05-fips": "`fips: true` works on a host that is not in FIPS mode.",
    "invalid/03-pull-secret-notjson": _SECRET,
    "more/ps-noauths": _SECRET,
    "invalid/13-two-platforms": _STRICTER_PLATFORM,
    "third/pl-none-ext": _STRICTER_PLATFORM,
    "invalid/50-yaml-broken": "YAML that does not parse is reported with the line and the column where it fails.",
    "more/ac-mac-case-dup": "MAC addresses of two hosts that differ in case only are duplicates.",
    "more/ac-type": _TYPES,
    "third/float-replicas": _TYPES,
    "more/cp-platform-mismatch": "A struct in an error or a warning is shown with the fields that were given.",
    "more/fs-bad": "A `featureSet` that does not exist is refused.",
    "third/gate-dns-custom": "`loadBalancer: {type: UserManaged}` of platform baremetal is passed on to the AgentClusterInstall.",
    "third/multi-doc": "A second YAML document in `install-config.yaml` or `agent-config.yaml` is refused.",
}


@pytest.fixture(scope="session")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_pairs", PAIRS / "run_pairs.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _no_names(*__: object, **___: object) -> None:
    raise socket.gaierror(socket.EAI_NONAME, "there is no name service in this test")


@pytest.fixture
def difference(
    request: pytest.FixtureRequest,
    runner: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """How agentlab's run of a pair differs from the real one, "" when it does not."""
    pair: dict[str, Any] = request.param
    folder = tmp_path / "d"
    for path, text in pair["inputs"].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(bytes.fromhex(text["hex"]) if isinstance(text, dict) else text.encode())
    # The real program could not read the release either.
    monkeypatch.setattr(socket, "getaddrinfo", _no_names)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", runner.IMAGE)
    monkeypatch.setenv("AGENTLAB_RELEASE_VERSION", "4.22.0")
    status = cli.main(["create", "cluster-manifests", "--dir", str(folder)])
    stderr = capsys.readouterr().err.replace(str(folder), "DIR")
    if status != pair["rc"]:
        return f"exit status {status}, real {pair['rc']}: {stderr}"
    if status:
        want = runner.reason(pair["stderr"])
        return "" if want in stderr else f"{stderr} lacks {want}"
    for path, text in pair["files"].items():
        if not (folder / path).exists():
            return f"{path} is missing"
        ours = (folder / path).read_text()
        # Manifests byte by byte; the default registries.conf has other comments.
        if ours != text and (path.endswith(".yaml") or not runner.same(path, ours, text)):
            return f"{path}: {ours} instead of {text}"
    return ""


@pytest.mark.skipif(not CASES, reason="the pairs are not here")
@pytest.mark.parametrize(
    ("difference", "documented"),
    [pytest.param(pair, DIFFERENCES.get(pair["name"], ""), id=pair["name"]) for pair in CASES],
    indirect=["difference"],
)
def test_pair(difference: str, documented: str) -> None:
    if not documented:
        assert difference == ""
        return
    assert difference, f"agrees with upstream now: remove it from the table and from docs/differences.md: {documented}"
    assert documented in (ROOT / "docs" / "differences.md").read_text()


@pytest.mark.skipif(not CASES, reason="the pairs are not here")
@pytest.mark.parametrize(
    "pair", [pair for pair in CASES if pair["name"].startswith(("golden/", "third/"))], ids=lambda pair: pair["name"]
)
def test_compare_shows_what_is_documented(
    pair: dict[str, Any], runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`agentlab compare` between our run and the recorded one: no other difference in exit code and files."""
    given, made = tmp_path / "given", tmp_path / "made"
    for path, text in pair["inputs"].items():
        for folder in (given, made):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(bytes.fromhex(text["hex"]) if isinstance(text, dict) else text.encode())
    monkeypatch.setattr(socket, "getaddrinfo", _no_names)
    monkeypatch.setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", runner.IMAGE)
    monkeypatch.setenv("AGENTLAB_RELEASE_VERSION", "4.22.0")
    status = cli.main(["create", "cluster-manifests", "--consume", "--dir", str(made)])
    inputs = list(binary.inputs_of(given))
    ours = compare.Side(status, files=compare.contents(made, inputs))
    real = compare.Side(pair["rc"], files={path: text.encode() for path, text in pair["files"].items()})
    found = {one.file for one in compare.differences(ours, real)} - {".openshift_install_state.json"}
    assert not found or pair["name"] in DIFFERENCES, found
