"""A connection to libvirt, and its errors as ours.

Without a sandbox (check mode before it exists) there is no libvirt: the connection is None, and nothing is found.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._deps import optional
from ..errors import LabError

if TYPE_CHECKING:
    import libvirt
else:
    libvirt = optional("libvirt", "libvirt-python")

URI = "qemu:///system"


@contextlib.contextmanager
def connect(uri: str = URI) -> Iterator[Any]:
    """Open `uri`; errors of libvirt inside become a `LabError` with libvirt's message.

    It is closed at the end of the block. Without a connection a `LabError` names the URI and what to check.
    """
    if os.environ.get("AGENTLAB_NO_SANDBOX"):
        yield None
        return
    libvirt.registerErrorHandler(lambda context, error: None, None)
    try:
        connection = libvirt.open(uri)
    except libvirt.libvirtError as error:
        raise LabError(
            f"no connection to libvirt at {uri}: {error}: check that libvirtd is running and that you have access"
        ) from error
    try:
        yield connection
    except libvirt.libvirtError as error:
        raise LabError(f"libvirt at {uri}: {error}") from error
    finally:
        connection.close()


def lookup(owner: object, method: str, name: str) -> Any | None:
    """Return `owner.method(name)`, or None if there is no such object or no `owner`.

    `owner` is a connection or a pool, `method` one of its look-ups, such as `lookupByName`. Other errors of libvirt are
    raised as they are.
    """
    if owner is None:
        return None
    try:
        return getattr(owner, method)(name)
    except libvirt.libvirtError as error:
        missing = {
            libvirt.VIR_ERR_NO_DOMAIN,
            libvirt.VIR_ERR_NO_NETWORK,
            libvirt.VIR_ERR_NO_STORAGE_POOL,
            libvirt.VIR_ERR_NO_STORAGE_VOL,
        }
        if error.get_error_code() in missing:
            return None
        raise
