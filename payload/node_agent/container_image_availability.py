"""`container_image_availability`: pull the release's images with the host's podman, and time it."""

from __future__ import annotations

import time
from typing import Any

from . import fields, host
from .program import REQUEST, marshal
from .program import main as program
from .protocol import Result
from .steps import Context, argument

NOT_PULLED = 2
MOST_IMAGES, LONGEST = 1000, 86400.0
REHEARSED = {"result": "success", "size_bytes": 400_000_000, "time": 10, "download_rate": 100}


def check(image: str, seconds: float) -> tuple[dict[str, Any], str]:
    """Return the model's entry for an image, and why it failed. It has size, time and rate (MB/s) only if the image was pulled."""
    entry: dict[str, Any] = {"name": image, "result": "failure"}
    present = bool(host.run(["podman", "images", "--quiet", image], host=True).output.strip())
    if seconds <= 0:
        return entry, f"Couldn't pull image {image}. Timeout expired"
    started = time.monotonic()
    pulled = host.run(["podman", "pull", "--quiet", image], seconds, host=True)
    took = time.monotonic() - started
    if pulled.exit_code:
        return entry, f"podman pull {image} exited with non-zero exit code {pulled.exit_code}: {pulled.error}"
    if not present:
        size = host.run(["podman", "image", "inspect", "--format={{.Size}}", image], host=True)
        if size.exit_code or not size.output.strip().isdigit():
            return entry, f"Couldn't get the image size of {image}: {size.error}"
        total = int(size.output)
        entry |= {"size_bytes": total, "time": took, "download_rate": total / 1e6 / took}
    return entry | {"result": "success"}, ""


def step(args: list[str], context: Context) -> Result:
    request = argument("container-image-availability", args[0], "images")
    images = request["images"]
    if not isinstance(images, list) or not all(
        isinstance(image, str) and fields.IMAGE.fullmatch(image) for image in images
    ):
        raise ValueError(
            f"container-image-availability: images must be a list of image references, got {fields.shown_value(images)}"
        )
    fields.entries("container-image-availability: images", images, str, MOST_IMAGES)
    limit = fields.seconds("container-image-availability: timeout", request.get("timeout") or 0, LONGEST)
    if context.dry.enabled:
        return Result(marshal({"images": [{"name": image, **REHEARSED} for image in images]}))
    until = time.monotonic() + limit
    checked = [check(image, until - time.monotonic()) for image in images]
    errors = "\n".join(error for __, error in checked if error)
    return Result(marshal({"images": [entry for entry, __ in checked] or None}), errors, NOT_PULLED if errors else 0)


def main(argv: list[str] | None = None) -> int:
    return program("container_image_availability", step, argv, extra=(REQUEST,))


if __name__ == "__main__":
    raise SystemExit(main())
