"""Release image and OS image of a version and an architecture, looked up in the lists of the environment.

Source: `internal/versions` of assisted-service. Without a list any version is accepted, so that the service also runs alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import versions
from .errors import ApiError

Image = Mapping[str, Any]
DEFAULT_CPU = "x86_64"
# The service has RPM's name of x86, and Go's of ARM.
_OTHER_NAMES = {"amd64": "x86_64", "aarch64": "arm64"}


def architecture(name: str) -> str:
    """Return the name of an architecture in the lists."""
    return _OTHER_NAMES.get(name, name) or DEFAULT_CPU


def architectures(image: Image) -> list[str]:
    """The architectures of a release or OS image."""
    return [
        architecture(str(cpu))
        for cpu in image.get("cpu_architectures") or [image.get("cpu_architecture") or DEFAULT_CPU]
    ]


def _newest(images: Iterable[Image], key: str) -> Image | None:
    return max(images, key=lambda image: versions.numbers(str(image.get(key))) or (0, 0, 0), default=None)


def release(images: Sequence[Image], os_images: Sequence[Image], version: str, cpu: str, url: str) -> Image:
    """Return the release image of a version, or of a pullspec if there is one.

    A version of two numbers means its newest. `url` is the pullspec, or empty. Without a list, what was asked for is
    returned. ApiError 400, with upstream's text, if no release fits, or no OS image for it.
    """
    if not images:
        return {"url": url, "openshift_version": version, "version": version, "cpu_architecture": cpu}
    named = next((image for image in images if url and image.get("url") == url), None)
    if named is not None:
        return named
    fitting = [image for image in images if architecture(cpu) in architectures(image)]
    exact = [image for image in fitting if image.get("version") == version]
    found = _newest(exact or [image for image in fitting if image.get("openshift_version") == version], "version")
    if found is None:
        refused = f"Openshift version {version} for CPU architecture {cpu} is not supported"
        if versions.numbers(version) is None or "." not in version:
            form = (
                "Expected format: 'major.minor' or 'major.minor.patch', optionally followed by a prerelease identifier"
            )
            raise ApiError(400, f"{refused}: invalid openshiftVersion '{version}'. {form}")
        raise ApiError(
            400,
            f"{refused}: no release image found for openshiftVersion: '{version}' and CPU architecture '{architecture(cpu)}'",
        )
    cpus = architectures(found)
    if os_images and len(cpus) == 1:
        try:
            os_image(os_images, str(found.get("openshift_version")), cpus[0])
        except ApiError:
            reason = (
                f"No OS images are available for version {found.get('openshift_version')} and architecture {cpus[0]}"
            )
            raise ApiError(400, reason) from None
    return found


def os_image(images: Sequence[Image], version: str, cpu: str) -> Image:
    """Return the OS image of a version, the newest without a version; ApiError 400 with upstream's reason.

    Preferred: the same version, then the same two numbers, then any of the same minor. `images` is the list of the
    environment (`OS_IMAGES`).
    """
    cpu = architecture(cpu)
    fitting = [image for image in images if cpu in architectures(image)]
    if not fitting:
        raise ApiError(400, f"The requested CPU architecture ({cpu}) isn't specified in OS images list")
    if not version:
        found = _newest(fitting, "openshift_version")
    else:
        exact = [image for image in fitting if image.get("openshift_version") == version]
        minor = ".".join(version.split("-")[0].split(".")[:2])
        near = [image for image in fitting if image.get("openshift_version") == minor]
        same = [image for image in fitting if versions.same_minor(str(image.get("openshift_version")), version)]
        found = _newest(exact or near or same, "openshift_version")
    if found is None:
        raise ApiError(
            400,
            f"The requested OS image for version ({version}) and CPU architecture ({cpu}) isn't specified in OS images list",
        )
    return found
