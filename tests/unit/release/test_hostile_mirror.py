"""A hostile mirror: none of its content is used, and all waits are bounded."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.release import content, layers
from ansible_collections.agentlab.ocp.plugins.module_utils.release.content import RegistryError
from ansible_collections.agentlab.ocp.plugins.module_utils.release.payload import (
    Release,
    extract_files,
    read_files,
    read_matching,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.release.registry import Registry

from .fake_registry import LAYER, Fake, basic_auth, layer_of

SOURCE = "registry.agentlab.test/lab/release"
GOOD, EVIL = b"good\n" * 1000, b"evil\n" * 1000
FILES = {"a": b"first", "etc/wanted": GOOD, "z": b"last" * 5000}


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    found = Fake("127.0.0.1", tmp_path)
    yield found
    found.server.shutdown()
    found.server.server_close()


def registry(fake: Fake) -> Registry:
    return Registry(
        {fake.place: {"auth": basic_auth("u", "p")}},
        fake.ca,
        lambda _pullspec: [f"{fake.place}/lab/release@{_pullspec.partition('@')[2]}"],
    )


def manifest_of(fake: Fake, digest: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(fake.manifests[digest])
    return value


def read_all_ways(fake: Fake, digest: str, tmp_path: Path) -> list[str]:
    """Every way to a file of the image; the result of each. None may return anything."""
    pullspec, reported = f"{SOURCE}@{digest}", []
    target = tmp_path / "out" / "file"
    ways: list[Callable[[], object]] = [
        lambda: read_files(registry(fake), pullspec, "amd64", {"etc/wanted"}),
        lambda: read_files(registry(fake), pullspec, "amd64", {"etc/wanted", "etc/missing"}),
        lambda: read_matching(registry(fake), pullspec, "amd64", ["etc/*"]),
        lambda: extract_files(registry(fake), pullspec, "amd64", {"etc/wanted": target}),
    ]
    for way in ways:
        with pytest.raises(RegistryError) as error:
            way()
        reported.append(str(error.value))
    assert not target.exists()
    assert not target.parent.exists() or not list(target.parent.iterdir())
    return reported


def swapped(fake: Fake, digest: str, data: bytes) -> None:
    fake.blobs[manifest_of(fake, digest)["layers"][0]["digest"]] = data


def test_files_are_had_when_all_is_well(fake: Fake, tmp_path: Path) -> None:
    pullspec = f"{SOURCE}@{fake.image(FILES)}"
    assert read_files(registry(fake), pullspec, "amd64", {"etc/wanted"}) == {"etc/wanted": GOOD}
    assert read_matching(registry(fake), pullspec, "amd64", ["etc/*"]) == {"etc/wanted": GOOD}
    found = extract_files(registry(fake), pullspec, "amd64", {"etc/wanted": tmp_path / "x"})
    assert found == {"etc/wanted": hashlib.sha256(GOOD).hexdigest()}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(lambda good: layer_of({**FILES, "etc/wanted": EVIL}), id="another layer"),
        pytest.param(lambda good: layer_of({"etc/wanted": GOOD}), id="a layer with the same file"),
        pytest.param(lambda good: good[:-9], id="truncated"),
        pytest.param(lambda good: good[: len(good) // 2], id="half"),
        pytest.param(lambda good: b"", id="empty"),
        pytest.param(lambda good: good + b"\0", id="extended by a byte"),
        pytest.param(lambda good: good + gzip.compress(b"x" * 1000), id="a second member"),
        pytest.param(lambda good: good[:-9] + bytes([good[-9] ^ 1]) + good[-8:], id="a bit"),
        pytest.param(lambda good: b"\xff" * len(good), id="noise of the same size"),
    ],
)
def test_a_swapped_layer_gives_nothing(fake: Fake, tmp_path: Path, bad: Callable[[bytes], bytes]) -> None:
    digest = fake.image(FILES)
    swapped(fake, digest, bad(layer_of(FILES)))
    for reported in read_all_ways(fake, digest, tmp_path):
        assert "other content than sha256:" in reported


def test_a_swapped_manifest_gives_nothing(fake: Fake, tmp_path: Path) -> None:
    digest, other = fake.image(FILES), fake.image({"etc/wanted": EVIL})
    fake.manifests[digest] = fake.manifests[other]
    for reported in read_all_ways(fake, digest, tmp_path):
        assert f"the registry sent {other}" in reported


def test_a_swapped_entry_of_an_index_gives_nothing(fake: Fake, tmp_path: Path) -> None:
    good, other = fake.image(FILES), fake.image({"etc/wanted": EVIL})
    entry = {"digest": good, "size": len(fake.manifests[good]), "platform": {"architecture": "amd64"}}
    digest = fake.document({"schemaVersion": 2, "manifests": [entry]})
    assert read_files(registry(fake), f"{SOURCE}@{digest}", "amd64", {"etc/wanted"}) == {"etc/wanted": GOOD}
    fake.manifests[good] = fake.manifests[other]
    for reported in read_all_ways(fake, digest, tmp_path):
        assert f"other content than {good}" in reported


def test_a_swapped_configuration_is_not_believed(fake: Fake) -> None:
    digest = fake.image(FILES)
    config = manifest_of(fake, digest)["config"]["digest"]
    fake.blobs[config] = json.dumps({"architecture": "arm64"}).encode()
    with pytest.raises(RegistryError, match=f"other content than {config}"):
        registry(fake).config(f"{SOURCE}@{digest}")


@pytest.mark.parametrize("lie", [-1, 1, 10**15, 0])
def test_a_manifest_that_lies_about_sizes(fake: Fake, tmp_path: Path, lie: int) -> None:
    manifest = manifest_of(fake, fake.image(FILES))
    manifest["layers"][0]["size"] = manifest["layers"][0]["size"] + lie if lie else 0
    for reported in read_all_ways(fake, fake.document(manifest), tmp_path):
        assert "other content than sha256:" in reported
    manifest["config"]["size"] += lie or 10**12
    with pytest.raises(RegistryError, match=r"other content than|is the limit"):
        registry(fake).config(f"{SOURCE}@{fake.document(manifest)}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("digest", "sha256:../../../token"), ("digest", "md5:" + "0" * 32), ("digest", None), ("digest", "sha256:" + "G" * 64), ("digest", ["x"]),
        ("size", -1), ("size", "12"), ("size", None), ("size", True), ("size", 1.5), ("mediaType", 7),
    ],
)  # fmt: skip
def test_descriptors_that_are_invalid(fake: Fake, tmp_path: Path, name: str, value: object) -> None:
    manifest = manifest_of(fake, fake.image(FILES))
    manifest["layers"][0][name] = value
    for reported in read_all_ways(fake, fake.document(manifest), tmp_path):
        assert f"layers[0].{name} is" in reported


@pytest.mark.parametrize(
    "document",
    [[], 1, "x", None, {}, {"layers": 1}, {"layers": [1]}, {"manifests": 1}, {"manifests": [1]}, {"manifests": [{}]},
     {"manifests": [{"platform": 1}]}, {"manifests": [{"platform": {"architecture": "amd64"}}]}],
)  # fmt: skip
def test_manifests_that_are_invalid(fake: Fake, tmp_path: Path, document: object) -> None:
    read_all_ways(fake, fake.document(document), tmp_path)


@pytest.mark.parametrize("body", [b"[" * 100_000, b"{", b"\xff\xfe", b'{"layers": [NaN', b""])
def test_manifests_that_are_not_json(fake: Fake, tmp_path: Path, body: bytes) -> None:
    digest = content.digest_of(body)
    fake.manifests[digest] = body
    read_all_ways(fake, digest, tmp_path)


def _tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, data in members:
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _file(name: str, data: bytes, **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, data


@pytest.mark.parametrize(
    "name",
    ["../etc/wanted", "etc/../../etc/wanted", "x/../etc/wanted", "../../../../../../../tmp/agentlab-evil", "etc/.."],
)
def test_names_that_lead_out_of_the_image(fake: Fake, tmp_path: Path, name: str) -> None:
    digest = fake.packed(gzip.compress(_tar(_file(name, EVIL))))
    pullspec = f"{SOURCE}@{digest}"
    assert read_files(registry(fake), pullspec, "amd64", {"etc/wanted"}) == {}
    assert read_matching(registry(fake), pullspec, "amd64", ["etc/*", "*", "*/*/*", "*/*/*/*/*/*/*/*/*"]) == {}
    assert extract_files(registry(fake), pullspec, "amd64", {"etc/wanted": tmp_path / "x"}) == {}


def test_links_are_not_followed(fake: Fake, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        digest = fake.packed(gzip.compress(_tar(_file("etc/wanted", b"", type=kind, linkname=str(secret)))))
        pullspec = f"{SOURCE}@{digest}"
        assert read_files(registry(fake), pullspec, "amd64", {"etc/wanted"}) == {}
        assert read_matching(registry(fake), pullspec, "amd64", ["etc/*"]) == {}


def test_a_star_stays_in_its_folder(fake: Fake) -> None:
    digest = fake.image(
        {"usr/lib64/libx.so.1/../../../etc/passwd": EVIL, "usr/lib64/libx.so.d/deep": EVIL, "usr/lib64/libx.so.2": GOOD}
    )
    found = read_matching(registry(fake), f"{SOURCE}@{digest}", "amd64", ["usr/lib64/libx.so.*"])
    assert found == {"usr/lib64/libx.so.2": GOOD}


def test_a_bomb_is_not_unpacked(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST_UNPACKED", 2**22)
    bomb = gzip.compress(_tar(_file("zeros", b"\0" * 2**25), _file("etc/wanted", GOOD)))
    assert len(bomb) < 2**17
    for reported in read_all_ways(fake, fake.packed(bomb), tmp_path):
        assert "unpacks to more than" in reported


def test_a_header_that_would_fill_the_memory(fake: Fake, tmp_path: Path) -> None:
    for kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
        member = tarfile.TarInfo("etc/wanted")
        member.type, member.size = kind, 2**32
        for reported in read_all_ways(fake, fake.packed(gzip.compress(member.tobuf() + b"\0" * 4096)), tmp_path):
            assert "header of 4294967296 bytes" in reported


def test_a_file_that_is_too_large(fake: Fake, tmp_path: Path) -> None:
    member = tarfile.TarInfo("etc/wanted")
    member.size = 2**60
    for reported in read_all_ways(
        fake, fake.packed(gzip.compress(member.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096)), tmp_path
    ):
        assert "is the limit" in reported


@pytest.mark.parametrize(
    "media_type", [LAYER, LAYER.removesuffix("+gzip"), LAYER.replace("gzip", "zstd"), "text/plain", ""]
)
@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 2000, b"no archive" * 500, gzip.compress(b"no archive" * 500)],
    ids=["empty", "zeros", "text", "gzip"],
)
def test_layers_that_are_not_an_archive(fake: Fake, tmp_path: Path, media_type: str, data: bytes) -> None:
    """The digest is right, the content is not a tar of the stated compression. Zeros are an archive without members."""
    digest = fake.packed(data, media_type=media_type)
    try:
        assert read_files(registry(fake), f"{SOURCE}@{digest}", "amd64", {"etc/wanted"}) == {}
    except RegistryError as error:
        assert digest in str(error) or "sha256:" in str(error)


# -- HTTP ---------------------------------------------------------------------------------------------------------------


def _raw(request: BaseHTTPRequestHandler, text: bytes) -> bool:
    request.close_connection = True
    request.wfile.write(text)
    return True


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{}", id="shorter than announced"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}", id="negative length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: zzz\r\n\r\n{}", id="no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", id="chunk without length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n{}", id="chunk that ends early"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n{}", id="a thousand headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n{}", id="a long header"),
        pytest.param(b"garbage\r\n\r\n", id="no HTTP"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 999 X\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", id="redirect to a file"),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/x\r\n\r\n", id="redirect without TLS"),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1:9/x\r\n\r\n", id="redirect to ftp"),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: https://[::1/x\r\n\r\n", id="redirect to no URL"),
        pytest.param(b"HTTP/1.1 302 Found\r\nLocation: /v2/lab/again\r\n\r\n", id="endless redirects"),
        pytest.param(b"HTTP/1.1 302 Found\r\n\r\n", id="redirect to nowhere"),
        pytest.param(
            b'HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm="file:///etc/passwd"\r\n\r\n', id="tokens in a file"
        ),
        pytest.param(
            b'HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm="http://127.0.0.1:9/"\r\n\r\n', id="tokens without TLS"
        ),
        pytest.param(b"HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer\r\n\r\n", id="tokens nowhere"),
    ],
)
def test_answers_that_are_invalid(fake: Fake, tmp_path: Path, text: bytes) -> None:
    """For the manifest, and for the layer behind a good manifest."""
    digest = fake.image(FILES)
    for part in ("/manifests/", "/blobs/"):

        def twist(request: BaseHTTPRequestHandler, part: str = part) -> bool:
            return (part in request.path or "/again" in request.path) and _raw(request, text)

        fake.twist = twist
        read_all_ways(fake, digest, tmp_path)


def test_a_challenge_that_is_long(fake: Fake, tmp_path: Path) -> None:
    """A header of 60,000 letters took each request 16 seconds: the search for its fields began again at each letter."""
    digest = fake.image(FILES)
    fake.challenge = "Bearer " + "a" * 60_000
    before = time.process_time()
    assert all("tokens are at ''" in text for text in read_all_ways(fake, digest, tmp_path))
    assert time.process_time() - before < 2


def test_credentials_stay_with_the_registry(fake: Fake, tmp_path: Path) -> None:
    """A blob may be on another server; requests to it have no password."""
    elsewhere = Fake("127.0.0.1", tmp_path, "Bearer")
    seen: list[str | None] = []

    def answer(request: BaseHTTPRequestHandler) -> bool:
        if "/blobs/" in request.path:
            return _raw(request, f"HTTP/1.1 307 X\r\nLocation: https://{elsewhere.place}/v2/x/blobs/y\r\n\r\n".encode())
        return False

    def watch(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.headers.get("Authorization"))
        _raw(request, b"HTTP/1.1 404 X\r\n\r\n")

    fake.twist = answer
    elsewhere.answer = watch
    try:
        found = Registry(
            {fake.place: {"auth": basic_auth("u", "p")}}, fake.ca + elsewhere.ca, lambda _pullspec: []
        )  # fmt: skip
        with pytest.raises(RegistryError, match="404"):
            read_files(found, f"{fake.place}/lab/release@{fake.image(FILES)}", "amd64", {"etc/wanted"})
    finally:
        elsewhere.server.shutdown()
        elsewhere.server.server_close()
    assert seen == [None]


def test_a_body_without_end(fake: Fake, tmp_path: Path) -> None:
    digest = fake.image(FILES)
    sent = 0

    def endless(request: BaseHTTPRequestHandler) -> bool:
        nonlocal sent
        request.close_connection = True
        request.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                sent += request.wfile.write(b" " * 2**16)
        except OSError:
            return True

    fake.twist = lambda request: "/manifests/" in request.path and endless(request)
    with pytest.raises(RegistryError, match="longer than 8388608 bytes"):
        registry(fake).manifest(f"{SOURCE}@{digest}")
    fake.twist = lambda request: "/blobs/" in request.path and endless(request)
    for reported in read_all_ways(fake, digest, tmp_path):
        assert "it is longer than its" in reported
    assert sent < 2**26


def test_a_body_that_drips(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "GRACE", 0.3)
    digest = fake.image(FILES)

    def drip(request: BaseHTTPRequestHandler) -> bool:
        request.close_connection = True
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        try:
            for __ in range(10000):
                request.wfile.write(b" ")
                time.sleep(0.02)
        except OSError:
            pass
        return True

    for part in ("/manifests/", "/blobs/"):
        fake.twist = lambda request, part=part: part in request.path and drip(request)
        for reported in read_all_ways(fake, digest, tmp_path):
            assert "too slowly" in reported


def test_the_next_mirror_is_asked(fake: Fake, tmp_path: Path) -> None:
    """One that sends another manifest is passed over."""
    hostile = Fake("127.0.0.1", tmp_path, "Bearer")
    try:
        digest = fake.image(FILES)
        hostile.manifests[digest] = b'{"layers": []}'
        auths = {place: {"auth": basic_auth("u", "p")} for place in (fake.place, hostile.place)}
        places = [f"{hostile.place}/lab/release@{digest}", f"{fake.place}/lab/release@{digest}"]
        found = Registry(auths, hostile.ca + fake.ca, lambda _pullspec: places)
        assert read_files(found, f"{SOURCE}@{digest}", "amd64", {"etc/wanted"}) == {"etc/wanted": GOOD}
    finally:
        hostile.server.shutdown()
        hostile.server.server_close()


def test_release_files_that_are_not_json(fake: Fake) -> None:
    digest = fake.image(
        {"release-manifests/image-references": b"[" * 100_000, "release-manifests/release-metadata": b"\xff"}
    )
    with pytest.raises(RegistryError):
        str(Release(f"{SOURCE}@{digest}", registry(fake)).version)
