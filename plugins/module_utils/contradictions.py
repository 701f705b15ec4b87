"""The plan of a run whose profile the installer would not refuse: what a profile lays over the installer's files is checked, too.

The plan knows nothing of the installer, so this module is above both: every caller that needs a plan for a run calls `prepare`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .plan import ipi, laid, rundir, secrets
from .plan.configs import agent_config, install_config
from .plan.installer_inputs import Installer
from .plan.model import Plan
from .plan.problems import Finding, Path
from .redact import redact
from .releases import LATEST

if TYPE_CHECKING:
    from .installer.preflight import Refused

_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
# With FIPS, the key of a run is of this kind.
_FIPS_KEY = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)
_PULL_SECRET = {"auths": {"registry.example.com": {"auth": "dXNlcjpwYXNzd29yZA=="}}}
_ROOT = len(("installer", "install_config"))
_LAST = {"lab": "0-lab", "okd": "0-okd-scos.0"}
# After a field: its place in a file that only this check has.
_POSITION = re.compile(r"(?<=[\w\]]), line \d+, column \d+(?=\))")
_NAMED = re.compile(r"\((?P<path>[^()\s]+)\)$")


def findings(plan: Plan) -> Iterator[Finding]:
    """Yield what is wrong with a plan whose profile lays something over the installer's files; the paths are those of the profile.

    What contradicts the plan comes first, else what the installer refuses, unless it is one of the user. Other plans are not
    looked at: the checks of profiles keep them right.
    """
    given, wrong = plan["installer"], False
    for finding in laid.findings(plan):
        wrong = True
        yield finding
    build = plan["release"]["installer"]
    if wrong or not (given["install_config"] or given["agent_config"]) or build["binary"] or build["git"]:
        return
    from .installer import preflight  # most plans do without

    whole = secrets.into(plan, secrets.complete(plan, "{}", secrets.FILE))
    config = install_config(
        whole, pull_secret=_PULL_SECRET, ssh_key=_FIPS_KEY if given["fips"] else _KEY, trust_bundle=""
    )
    release = plan["release"]["profile"] or LATEST.name
    version = plan["release"]["version"] or f"{release}.{_LAST.get(plan['release']['payload'], '0')}"
    text = rundir.dump(config)
    if ipi.bootstrap(plan):
        refused = preflight.provisioned(text, release, version)
    else:
        texts = {"install-config.yaml": text, "agent-config.yaml": rundir.dump(agent_config(whole))}
        refused = preflight.agent(texts, release, version)
    for one in refused:
        message = " ".join(_POSITION.sub("", one.text).split())
        yield *_field(one, given), redact(f"openshift-install refuses it: {message}")


prepare = partial(rundir.prepare, verify=findings)
"""As `rundir.prepare`, which then also refuses what `findings` has."""


def _field(refused: Refused, given: Installer) -> tuple[Path, Any]:
    """Return the field of the profile that a refusal is about, and its value if it can be shown.

    One that is about nothing of a file alone, but about both together, is that of the file which the profile changes.
    """
    files = {
        "install-config.yaml": ("install_config", given["install_config"]),
        "agent-config.yaml": ("agent_config", given["agent_config"]),
    }
    ordered = sorted(files, key=lambda file: file != refused.file)
    places = [("installer", files[file][0], *_place(refused.text, files[file][1])) for file in ordered]
    changed = [place for place, file in zip(places, ordered, strict=True) if files[file][1]]
    path = next((place for place in places if len(place) > _ROOT), changed[0])
    value: Any = given
    for key in path[1:]:
        value = value[key]
    if len(path) == _ROOT or isinstance(value, Mapping) or (isinstance(value, list) and value):
        return path, None
    shown = f"{path[-1]}: {value}"
    return path, value if redact(shown) == shown else None


def _place(text: str, laid: Mapping[str, Any]) -> Path:
    """Return which field of what is laid over a file a refusal is about, as far as it is one of these."""
    named = _NAMED.search(_POSITION.sub("", text))
    spelled = named["path"] if named else text.partition(": ")[0].removeprefix("spec.")
    path: list[Any] = []
    value: Any = laid
    for part in re.findall(r"[^.\[\]]+", spelled):
        if isinstance(value, Mapping):
            key = next((key for key in value if str(key).lower() == part.lower()), None)
        else:
            key = int(part) if isinstance(value, list) and part.isdecimal() and int(part) < len(value) else None
        if key is None:
            break
        path.append(key)
        value = value[key]
    return (*path,)
