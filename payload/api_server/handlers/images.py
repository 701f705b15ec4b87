"""What an infra-env's discovery images consist of, for download: `..images` makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import images
from ..aside import QUICK_YAML, in_pieces, run_in_thread
from ..calls import Call, Download, handler
from ..engine import Engine
from ..errors import ApiError
from ..objects import InfraEnv

T = TypeVar("T")
#: "Never": URLs without a token do not expire.
NO_EXPIRY = "0001-01-01T00:00:00.000Z"


@handler
def image_url(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    infra_env["download_url"] = images.download_url(e, infra_env)
    return {"url": infra_env["download_url"], "expires_at": NO_EXPIRY}


@handler
def presigned_file(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    _check_script_type(call)
    names = ("file_name", "ipxe_script_type")
    query: dict[str, str] = {name: call.query[name] for name in names if name in call.query}
    return {"url": images.files_url(e, infra_env, query), "expires_at": NO_EXPIRY}


@handler
def presigned_cluster_file(e: Engine, call: Call) -> Any:
    e.cluster(call.path["cluster_id"])
    raise ApiError(400, "Failed to generate presigned URL: invalid backend")


def _check_script_type(call: Call) -> None:
    if "ipxe_script_type" in call.query and call.query["file_name"] != "ipxe-script":
        raise ApiError(400, 'ipxe_script_type can be set only for "ipxe-script"')


async def _made(infra_env: InfraEnv, make: Callable[[InfraEnv], T]) -> T:
    """`make(infra_env)`; in a thread when there is much static network or Ignition config to read."""
    as_it_is = infra_env.copy()
    if (
        len(as_it_is.get("static_network_config") or "") + len(as_it_is.get("ignition_config_override") or "")
        <= QUICK_YAML
    ):
        return make(as_it_is)
    return await run_in_thread(make, as_it_is)


@handler
async def download_infra_env_file(e: Engine, call: Call) -> Any:
    infra_env, name = e.infra_env(call.path["infra_env_id"]), call.query["file_name"]
    _check_script_type(call)
    if name == "discovery.ign":
        kind = call.query.get("discovery_iso_type") or infra_env.get("type", "full-iso")
        return Download(
            name, await _made(infra_env, lambda found: in_pieces(images.discovery(e, found, kind)).encode())
        )
    if name == "ipxe-script":
        return Download(f"{infra_env['id']}-ipxe-script", images.ipxe(e, infra_env, call).encode())
    archive = await _made(infra_env, images.network_archive)
    return Download(f"{infra_env['id']}-static-network-config.tar", archive) if archive else Download("", b"")


@handler
async def minimal_initrd(e: Engine, call: Call) -> Any:
    archive = await _made(e.infra_env(call.path["infra_env_id"]), images.initrd)
    return Download("minimal-initrd", archive) if archive else Download("", status=204)
