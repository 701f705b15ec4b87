"""The plan of a run whose profile the installer would not refuse: what it would say of its input files is a problem of the profile.

The plan knows nothing of the installer, so this module is above both: every caller that needs a plan for a run calls `prepare`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .addresses import family as family_of
from .plan import ipi, laid, profile, rundir, secrets
from .plan.build import installer
from .plan.configs import agent_config, install_config
from .plan.model import Plan
from .plan.problems import Finding, Path
from .redact import redact
from .releases import LATEST
from .vocabulary import RunFile

if TYPE_CHECKING:
    from .installer.preflight import RefusedField

_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
# With FIPS, the key of a run is of this kind.
_FIPS_KEY = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)
_PULL_SECRET = {"auths": {"registry.example.com": {"auth": "dXNlcjpwYXNzd29yZA=="}}}
_ROOT = len(("installer", "install_config"))
# Fields of `installer` whose values the checks of profiles and files keep right.
_CHECKED = {
    "ssh_key_file", "pull_secret_file", "machine_network", "ntp_sources", "mirrors_file", "manifests", "manifests_dir", "bootstrap",
}  # fmt: skip
_USUAL_PLATFORMS = ("none", "baremetal", "external")
_LAST = {"lab": "0-lab", "okd": "0-okd-scos.0"}
# After a field: its place in a file that only this check has.
_POSITION = re.compile(r"(?<=[\w\]]), line \d+, column \d+(?=\))")
_NAMED = re.compile(r"\((?P<path>[^()\s]+)\)$")


def findings(plan: Plan) -> Iterator[Finding]:
    """Yield what contradicts a plan in what its profile lays over the installer's files; the paths are those of the profile.

    Else yield what the installer refuses, unless it is one of the user. It is not asked about a plan that has nothing but machines
    and defaults for it (`_usual`): the checks of profiles keep these right, and the installer's take as long as the plan itself.
    """
    given, wrong = plan["installer"], False
    for finding in laid.findings(plan):
        wrong = True
        yield finding
    build = plan["release"]["installer"]
    if wrong or _usual(plan) or build["binary"] or build["git"]:
        return
    from .installer import preflight  # most plans do not need it

    whole = secrets.with_passwords(plan, secrets.complete(plan, "{}", secrets.FILE))
    config = install_config(
        whole, pull_secret=_PULL_SECRET, ssh_key=_FIPS_KEY if given["fips"] else _KEY, trust_bundle=""
    )
    release = plan["release"]["profile"] or LATEST.name
    version = plan["release"]["version"] or f"{release}.{_LAST.get(plan['release']['payload'], '0')}"
    text = rundir.dump(config)
    if ipi.bootstrap(plan):
        refused = preflight.refused_fields(text, release, version)
    else:
        texts = {RunFile.INSTALL_CONFIG: text, RunFile.AGENT_CONFIG: rundir.dump(agent_config(whole))}
        refused = preflight.agent(texts, release, version)
    for one in refused:
        message = " ".join(_POSITION.sub("", one.text).split())
        yield *_field(one, plan), redact(f"openshift-install refuses it: {message}")


prepare = partial(rundir.prepare, verify=findings)
"""As `rundir.prepare`, which then also refuses what `findings` has."""


def _usual(plan: Plan) -> bool:
    """Return whether the installer's input files have nothing of a profile but machines, names and addresses."""
    if plan["cluster"]["platform"] not in _USUAL_PLATFORMS:
        return False
    given = plan["installer"]
    same = {"stack": plan["cluster"]["stack"], "release": {"payload": plan["release"]["payload"]}}
    usual = installer(profile.complete(same), plan["networks"], plan["services"])
    return all(given.get(name) == usual.get(name) for name in {*given, *usual} - _CHECKED)


def _field(refused: RefusedField, plan: Plan) -> tuple[Path, Any]:
    """Return the field of the profile that a refusal is about, and its value if it can be shown.

    It is one of those that the files follow from, or one that the profile lays over them. What is about nothing of a file alone,
    but about both together, is that of the file which the profile changes, or else of `installer`.
    """
    given = plan["installer"]
    files = {
        RunFile.INSTALL_CONFIG: ("install_config", given["install_config"]),
        RunFile.AGENT_CONFIG: ("agent_config", given["agent_config"]),
    }
    spelled, over = _spelled(refused.text), len(_place(refused.text, given["install_config"]))
    for field, origin, shown in _origins(plan):
        about = spelled == field or (field.endswith("]") and spelled.startswith(field))
        if about and over < min(2, field.count(".") + 1):
            return origin, shown
    ordered = sorted(files, key=lambda file: file != refused.file)
    places: list[Path] = [("installer", files[file][0], *_place(refused.text, files[file][1])) for file in ordered]
    changed = [place for place, file in zip(places, ordered, strict=True) if files[file][1]]
    path = next((place for place in places if len(place) > _ROOT), (changed or [("installer",)])[0])
    value: Any = given
    for key in path[1:]:
        value = value[key]
    if len(path) <= _ROOT or isinstance(value, Mapping) or (isinstance(value, list) and value):
        return path, None
    text = f"{path[-1]}: {value}"
    return path, value if redact(text) == text else None


def _origins(plan: Plan) -> Iterator[tuple[str, Path, Any]]:
    """Yield fields of install-config.yaml with the field of the profile that each follows from, and its value."""
    given, count = plan["installer"], {"ipv4": 0, "ipv6": 0}
    for index, entry in enumerate(given["cluster_network"]):
        family = family_of(entry["cidr"])
        path: Path = ("installer", "cluster_network", family, count[family])
        count[family] += 1
        yield f"networking.clusterNetwork[{index}].hostPrefix", (*path, "host_prefix"), entry["host_prefix"]
        yield f"networking.clusterNetwork[{index}]", (*path, "cidr"), entry["cidr"]
    for index, cidr in enumerate(given["service_network"]):
        yield f"networking.serviceNetwork[{index}]", ("installer", "service_network", family_of(cidr)), cidr
    for index in range(len(given["image_digest_sources"])):
        yield f"imageDigestSources[{index}]", ("installer", "image_digest_sources", index), None
    for field in ("arbiter.platform", "controlPlane.fencing", "platform"):
        yield field, ("platform",), plan["cluster"]["platform"]


def _spelled(text: str) -> str:
    """Return the field of a file that a refusal is about, as it is spelled there."""
    named = _NAMED.search(_POSITION.sub("", text))
    return (named["path"] if named else text.partition(": ")[0]).removeprefix("spec.")


def _place(text: str, laid: Mapping[str, Any]) -> Path:
    """Return which field of what is laid over a file a refusal is about, as far as it is one of these."""
    path: list[Any] = []
    value: Any = laid
    for part in re.findall(r"[^.\[\]]+", _spelled(text)):
        if isinstance(value, Mapping):
            key = next((key for key in value if str(key).lower() == part.lower()), None)
        else:
            key = int(part) if isinstance(value, list) and part.isdecimal() and int(part) < len(value) else None
        if key is None:
            break
        path.append(key)
        value = value[key]
    return (*path,)
