"""What the swarm's engine needs besides its conversations: limits of work, certificates, archives, reasons."""

from __future__ import annotations

import asyncio
import io
import json
import random
import resource
import ssl
import tarfile
from collections.abc import Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ....plugins.module_utils._deps import optional
from .settings import Settings, SwarmError

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = optional("aiohttp")

REQUEST_SECONDS = 60.0
AT_ONCE = 16
"""Clusters that are registered or removed at a time."""
MOST_ANSWER = 256 << 20
"""Bytes of an answer: a cluster of 150 hosts has 10 MB."""


async def read_body(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer.

    OSError if it is longer than MOST_ANSWER; what came until then is dropped.
    """
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > MOST_ANSWER:
            raise OSError(f"the answer is longer than {MOST_ANSWER} bytes")
    return bytes(body)


async def run_bounded(work: list[Coroutine[Any, Any, None]], most: int) -> None:
    """Run all of `work`, at most `most` at a time.

    After an error, running ones finish, so that what they create is known; no others start. Then the first SwarmError
    is raised.
    """
    gate = asyncio.Semaphore(most)
    errors: list[SwarmError] = []

    async def one(job: Coroutine[Any, Any, None]) -> None:
        async with gate:
            if errors:
                job.close()
                return
            try:
                await job
            except SwarmError as error:
                errors.append(error)

    await asyncio.gather(*map(one, work))
    if errors:
        raise errors[0]


async def cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def protocol_dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def moment(text: Any) -> float:
    """Return seconds of an RFC 3339 time; 0 if there is none, or for Go's zero time."""
    if not isinstance(text, str) or text.startswith("0001-"):
        return 0.0
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def archive(kib: int) -> bytes:
    """A log archive of about that size."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        data = random.Random(0).randbytes(kib * 1024)
        entry = tarfile.TarInfo("logs_host/agent.logs")
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def failure_reason(error: Exception) -> str:
    """Return why there was no response, as a message."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}; set its authority with --cacert"
    if isinstance(error, TimeoutError):
        return f"no answer in {REQUEST_SECONDS:.0f} s"
    return f"{type(error).__name__}: {error}"


def tls(settings: Settings) -> Any:
    """Return aiohttp's parameter `ssl`: a context, or False to skip verification. SwarmError: --cacert cannot be read."""
    if settings.insecure:
        return False
    try:
        return ssl.create_default_context(cafile=settings.cacert) if settings.cacert else True
    except OSError as error:  # ssl.SSLError is one, too
        raise SwarmError(f"--cacert {settings.cacert}: {error.strerror or error}") from None


def raise_file_limit() -> None:
    """A connection is an open file; the usual limit is 1024."""
    __, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def self_signed() -> str:
    """A placeholder certificate for the router's CA: the service parses it."""
    import datetime as dates

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ingress-operator@swarm")])
    begin = dates.datetime.now(dates.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dates.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
