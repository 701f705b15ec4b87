"""A release that is copied between two registries of the distribution."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.release import mirror
from ansible_collections.agentlab.ocp.plugins.module_utils.release.content import RegistryError
from ansible_collections.agentlab.ocp.plugins.module_utils.release.registry import Registry

from .registries import Store, basic_auth, two


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    with two(tmp_path) as found:
        yield found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "PAUSES", (0.0,))


class Run:
    """One copy, with its lines."""

    def __init__(self, stores: tuple[Store, Store], work: Path, release: str, **auths: dict[str, str]) -> None:
        source, target = stores
        known = {**source.auths, **target.auths, **auths}
        self.lines = list[str]()
        self.registry = Registry(known, source.ca)
        self.target = mirror.Target(f"{target.place}/mirror", "virthost.lab.test:5000/mirror")
        (work / "access").mkdir(exist_ok=True)
        self.access = mirror.Access(work / "access", known, source.ca)
        self.parts = mirror.release_parts(self.registry, release)

    def copy(self) -> int:
        """Copy what is missing; returns how many images that was."""
        wanted = mirror.missing(self.registry, self.target, self.parts)
        mirror.copy(self.registry, self.target, wanted, self.access, self.lines.append)
        return len(wanted)


def test_a_release_is_copied_with_its_index_and_signature(stores: tuple[Store, Store], tmp_path: Path) -> None:
    source, target = stores
    run = Run(stores, tmp_path, source.release())
    assert [part.name for part in run.parts] == ["multi (signature)", "multi", "one", "two", "release"]
    assert run.copy() == 5
    digests = {part.name: part.source.version for part in run.parts}
    index = Registry(target.auths, target.ca).document(f"{target.place}/mirror/openshift/release@{digests['multi']}")[0]
    assert len(run.parts[1].manifests) == 3
    assert [entry["platform"]["architecture"] for entry in index["manifests"]] == ["amd64", "arm64"]
    tags = target.ask("GET", "mirror/openshift/release/tags/list").read().decode()
    assert f"{digests['multi'].replace(':', '-')}.sig" in tags and "4.18.9-x86_64-one" in tags
    assert mirror.verify(run.registry, run.target, run.parts) > 8
    assert run.lines[-1].startswith("5 of 5: release: 0.") and run.lines[-1].endswith("/s")
    assert run.copy() == 0


@pytest.mark.slow
def test_what_a_killed_copy_left_is_not_copied_again(stores: tuple[Store, Store], tmp_path: Path) -> None:
    source, target = stores
    run = Run(stores, tmp_path, source.release())

    class Killed(BaseException):
        pass

    def kill(line: str) -> None:
        if line.startswith("3 of"):
            raise Killed

    with pytest.raises(Killed):
        mirror.copy(run.registry, run.target, run.parts, run.access, kill)
    before = target.requests("PUT", "mirror/openshift/release/manifests/4.18.9-x86_64-one")
    assert before == 1
    assert [part.name for part in mirror.missing(run.registry, run.target, run.parts)] == ["two", "release"]
    assert run.copy() == 2
    assert target.requests("PUT", "mirror/openshift/release/manifests/4.18.9-x86_64-one") == before
    mirror.verify(run.registry, run.target, run.parts)


@pytest.mark.slow
def test_verification_finds_a_lost_and_a_cut_blob(stores: tuple[Store, Store], tmp_path: Path) -> None:
    source, target = stores
    run = Run(stores, tmp_path, source.release())
    run.copy()
    digest, size = max(run.parts[-1].blobs.items(), key=lambda entry: entry[1])
    data = target.storage / "docker/registry/v2/blobs/sha256" / digest[7:9] / digest[7:] / "data"
    os.truncate(data, size - 1)
    with pytest.raises(RegistryError, match=f"release: blob {digest} has {size - 1} bytes instead of {size} in"):
        mirror.verify(run.registry, run.target, run.parts)
    data.unlink()
    with pytest.raises(RegistryError, match=f"release: blob {digest} is missing in"):
        mirror.verify(run.registry, run.target, run.parts)


def test_refused_credentials_end_at_the_first_attempt(stores: tuple[Store, Store], tmp_path: Path) -> None:
    run = Run(stores, tmp_path, stores[0].release())
    run.access.auths = {**stores[0].auths, stores[1].place: {"auth": basic_auth("u", "wrong")}}
    with pytest.raises(RegistryError, match=r"^multi \(signature\) cannot be copied: credentials were refused \("):
        run.copy()
    assert not run.lines


class Signer:
    """A GPG key of its own, and the lookaside directory in which skopeo looks for its signatures of a registry's images."""

    def __init__(self, home: Path, place: str) -> None:
        self.home, self.lookaside, self.key = home, home / "lookaside", home / "key.gpg"
        settings = home / ".config/containers/registries.d"
        settings.mkdir(parents=True)
        (settings / "signed.yaml").write_text(f"docker:\n  {place}: {{sigstore: file://{self.lookaside}}}\n")
        (home / "gnupg").mkdir(0o700)
        self.gpg("--batch", "--passphrase", "", "--quick-generate-key", "ci@example.com", "rsa2048")
        listed = self.gpg("--list-keys", "--with-colons").decode().splitlines()
        self.fingerprint = next(line.split(":")[9] for line in listed if line.startswith("fpr"))
        self.key.write_bytes(self.gpg("--export"))

    def gpg(self, *arguments: str) -> bytes:
        return self.run("gpg", "--quiet", *arguments)

    def run(self, *command: str) -> bytes:
        environment = {**os.environ, "GNUPGHOME": str(self.home / "gnupg")}
        return subprocess.run(command, check=True, capture_output=True, env=environment, timeout=60).stdout

    def policy(self, place: str) -> Path:
        """A policy that demands this key's signature of the images at `place`, a registry or a repository, and refuses all others."""
        signed = {"type": "signedBy", "keyType": "GPGKeys", "keyPath": str(self.key)}
        path = self.home / "policy.json"
        path.write_text(json.dumps({"default": [{"type": "reject"}], "transports": {"docker": {place: [signed]}}}))
        return path

    def sign(self, store: Store, part: mirror.Part) -> None:
        repository, __, digest = str(part.place).partition("@")
        kind, __, value = digest.partition(":")
        manifest = store.storage / "docker/registry/v2/blobs" / kind / value[:2] / value / "data"
        folder = self.lookaside / f"{repository.partition('/')[2]}@{digest.replace(':', '=')}"
        folder.mkdir(parents=True)
        name = f"{repository}:{part.tag}"
        self.run(
            "skopeo", "standalone-sign", str(manifest), name, self.fingerprint, "--output", str(folder / "signature-1")
        )

    def close(self) -> None:
        self.run("gpgconf", "--kill", "gpg-agent")


@pytest.fixture
def signer(stores: tuple[Store, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Signer]:
    home = tmp_path / "signer"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    made = Signer(home, stores[0].place)
    yield made
    made.close()


def test_an_image_without_the_signature_of_the_policy_is_refused(
    stores: tuple[Store, Store], tmp_path: Path, signer: Signer
) -> None:
    source, __ = stores
    run = Run(stores, tmp_path, source.release())
    run.access.policy = signer.policy(f"{source.place}/art/dev")
    run.parts = [part for part in run.parts if part.name in ("one", "two")]
    signer.sign(source, run.parts[0])
    refused = f"two cannot be copied: the signature policy refuses {source.place}/art/dev@sha256:"
    with pytest.raises(RegistryError, match=f"^{refused}.*A signature was required, but no signature exists"):
        run.copy()
    assert [line.partition(": 0.")[0] for line in run.lines] == ["1 of 2: one"]


@pytest.mark.slow
def test_an_image_that_went_is_named(stores: tuple[Store, Store], tmp_path: Path) -> None:
    source, __ = stores
    run = Run(stores, tmp_path, source.release())
    one = next(part for part in run.parts if part.name == "one")
    source.ask("DELETE", f"art/dev/manifests/{one.source.version}")
    with pytest.raises(
        RegistryError, match=f"one cannot be copied: {source.place}/art/dev@{one.source.version} does not exist"
    ):
        run.copy()


def test_an_unknown_release_and_an_image_of_another_kind(stores: tuple[Store, Store], tmp_path: Path) -> None:
    source, __ = stores
    source.image("art/other", "x", {"file": b"x"})
    registry = Registry(source.auths, source.ca)
    with pytest.raises(RegistryError, match=rf"unable to read image {source.place}/art/release:1: .*not found \(404\)"):
        mirror.release_parts(registry, f"{source.place}/art/release:1")
    with pytest.raises(RegistryError, match="is not a release image: it has no /release-manifests/image-references"):
        mirror.release_parts(registry, f"{source.place}/art/other:x")
    (part,) = mirror.image_parts(registry, f"{source.place}/art/other:x")
    assert (part.repository, part.tag, len(part.manifests)) == ("art/other", "x", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_full_registry_is_named_after_bounded_attempts(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", small], check=False).returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        with two(tmp_path, small) as stores:
            run = Run(stores, tmp_path, stores[0].release())
            with pytest.raises(RegistryError, match=r"cannot be copied in 5 attempts: .*full") as caught:
                run.copy()
            assert stores[1].place in str(caught.value)
            assert sum("; attempt" in line for line in run.lines) == 4
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_second_target_joins_the_mirrors_of_the_first(stores: tuple[Store, Store], tmp_path: Path) -> None:
    source, __ = stores
    run = Run(stores, tmp_path, source.release())
    first = mirror.sources(run.target, run.parts)
    assert first == [
        {"source": f"{source.place}/art/dev", "mirrors": ["virthost.lab.test:5000/mirror/openshift/release"]},
        {
            "source": f"{source.place}/art/release",
            "mirrors": ["virthost.lab.test:5000/mirror/openshift/release-images"],
        },
    ]
    both = mirror.sources(mirror.Target("b.test", "b.test"), run.parts, first)
    assert both[0]["mirrors"] == ["virthost.lab.test:5000/mirror/openshift/release", "b.test/openshift/release"]
    assert mirror.sources(run.target, run.parts, both) == both


@pytest.mark.slow
def test_a_copy_of_a_copy_keeps_the_names_of_the_source(stores: tuple[Store, Store], tmp_path: Path) -> None:
    source, target = stores
    first = Run(stores, tmp_path, source.release())
    first.copy()
    source.close()
    release = first.parts[-1].source
    places = {f"{source.place}/art/dev": "release", f"{source.place}/art/release": "release-images"}

    def mirrors(pullspec: str) -> list[str]:
        name, __, digest = pullspec.partition("@")
        return [f"{target.place}/mirror/openshift/{places[name]}@{digest}"] if name in places else []

    registry = Registry(target.auths, target.ca, mirrors)
    parts = mirror.release_parts(registry, str(release))
    again = mirror.Target(f"{target.place}/again", "c.test")
    mirror.copy(registry, again, parts, mirror.Access(tmp_path / "access", target.auths, target.ca), print)
    mirror.verify(registry, again, parts)
    assert {entry["source"] for entry in mirror.sources(again, parts)} == set(places)
