"""What users write, as assets: install-config, agent-config, hosts, extra manifests, mirrors."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from ..documents import DocumentError, decode_text
from . import advice, agent_config, install_config, mirrors, pem, validation
from .build import Build
from .errors import InstallerError
from .models import AgentConfig, Host, ImageSource, InstallConfig
from .schema import order_keys
from .shapes import INSTALL_CONFIG
from .yamlio import dump, load_all

Texts = dict[str, bytes]


def one_text(texts: Texts) -> str:
    """The text of an asset's only file. Raises `InstallerError` when it cannot be decoded."""
    name, data = next(iter(texts.items()))
    return _decoded(data, name)


def _decoded(data: bytes, name: str) -> str:
    try:
        return decode_text(data, name=name)
    except DocumentError as error:
        raise InstallerError(
            f"failed to unmarshal {name}: error converting YAML to JSON: yaml: line {error.line}: {error.problem} "
            f"(column {error.column})"
        ) from None


def load_install_config(build: Build, texts: Texts) -> InstallConfig:
    """install-config.yaml with defaults, validated, in the order of its shape; warnings go to the log."""
    config = install_config.parse(one_text(texts), build.log, lenient=build.options.lenient)
    build.hint = config
    install_config.set_defaults(config, build.profile, build.version)
    result: InstallConfig = order_keys(config, INSTALL_CONFIG)
    validation.validate(result, build)
    _advise(build, advice.of_pull_secret(result.get("pullSecret") or ""))
    return result


def _advise(build: Build, texts: list[str]) -> None:
    for text in texts:
        build.log.warning(text)


def load_agent_config(build: Build, texts: Texts) -> dict[str, Any]:
    """{"Config": agent-config as decoded, "File": its text}; `hosts` validates what it has of hosts."""
    text = one_text(texts)
    config = agent_config.load_agent_config(text, build.log)
    if "minimalISO" in config and not build.profile.minimal_iso:
        raise InstallerError(
            f"failed to unmarshal {agent_config.FILENAME}: error unmarshaling JSON: while decoding JSON: json: unknown field "
            f'"minimalISO" (release {build.profile.name})'
        )
    _advise(build, advice.of_agent_config(config))
    return {"Config": config, "File": text}


def agent_settings(build: Build) -> AgentConfig | None:
    """agent-config as decoded; None when there is none."""
    found = build["Agent Config"]
    return found["Config"] if found else None


def hosts(build: Build) -> list[Host]:
    """The validated hosts of agent-config, or else of install-config; warnings go to the log."""
    config, cluster = agent_settings(build), build["Install Config"]
    hosts = agent_config.hosts_of(config, cluster, build.profile, build.log)
    expected = sum(install_config.replicas(cluster).values()) if cluster else 0
    _advise(build, advice.of_hosts(hosts, (config or {}).get("rendezvousIP", ""), expected))
    return hosts


def load_extra_manifests(_build: Build, texts: Texts) -> dict[str, str]:
    """As an asset; see `extra_manifests`."""
    return extra_manifests(texts)


def extra_manifests(texts: Texts) -> dict[str, str]:
    """Each YAML document as a file of its own: <name>-<number>.<extension>; the last one ends without a newline.

    texts: file name -> content of `openshift/*`; other extensions than yaml and yml are passed over. Raises
    `InstallerError` for a file that is not YAML.
    """
    found: dict[str, str] = {}
    for name, data in texts.items():
        path = PurePosixPath(name)
        if path.suffix not in (".yaml", ".yml"):
            continue
        try:
            documents = load_all(_decoded(data, name), name)
        except InstallerError as error:
            raise InstallerError(f"could not decode YAML for {name}: {error}") from error
        for number, (document, __) in enumerate(documents):
            found[f"{path.stem}-{number}{path.suffix}"] = dump(document)
        if documents:
            found[f"{path.stem}-{len(documents) - 1}{path.suffix}"] = dump(documents[-1][0]).removesuffix("\n")
    return found


def _sources(config: InstallConfig | None) -> list[ImageSource]:
    return (config or {}).get("imageDigestSources") or (config or {}).get("imageContentSources") or []


def make_registries(build: Build) -> dict[str, Any]:
    """{"File": registries.conf for the image sources of install-config}; warns when none is for the release."""
    config = build["Install Config"]
    sources = _sources(config)
    repository = re.sub(r"(@|:(?=[^/]*$)).*", "", build.release_image)
    if sources and not mirrors.mirrors_of(
        build.release_image, [{"source": s["source"], "mirrors": [""]} for s in sources]
    ):
        # Upstream's text for imageContentSources, too.
        build.log.warning(
            "The imageDigestSources configuration in install-config.yaml should have at least one source field matching "
            f"the releaseImage value {build.release_image}"
        )
    build.log.debug(f"The repository of the release image is {repository}")
    return {"File": mirrors.render(sources, blocked=build.profile.blocked_mirrors)}


def load_registries(build: Build, texts: Texts) -> dict[str, Any]:
    """{"File": the user's registries.conf}; warns when it has no mirror of the release."""
    text = one_text(texts)
    registries = mirrors.parse(text)
    if registries:
        if not all(entry["located"] for entry in registries):
            build.log.warning(f"Location key not found in {mirrors.FILENAME}")
        if not mirrors.mirrors_of(
            build.release_image, [{"source": entry["source"], "mirrors": [""]} for entry in registries]
        ):
            build.log.warning(
                f"{mirrors.FILENAME} should have an entry matching the releaseImage {build.release_image}"
            )
    return {"File": text}


def make_bundle(build: Build) -> dict[str, Any]:
    """{"File": the certificates of additionalTrustBundle}; warns of those that are not of a CA."""
    text = (build["Install Config"] or {}).get("additionalTrustBundle", "")
    found, warnings = pem.bundle(text)
    for warning in warnings:
        build.log.warning(warning)
    return {"File": found}


def load_bundle(_build: Build, texts: Texts) -> dict[str, Any]:
    """{"File": the user's ca-bundle.crt}. Raises `InstallerError` when it is not a bundle of certificates."""
    text = one_text(texts)
    if text.strip():
        why = pem.problem(text)
        if why:
            raise InstallerError(f"failed to parse {mirrors.CA_FILENAME}: {why}")
    return {"File": text}
