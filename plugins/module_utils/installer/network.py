"""Static network configuration of the live hosts: nmstate documents into keyfiles, by host."""

from __future__ import annotations

import configparser
import io
from collections.abc import Iterable

from ..addresses import MAC
from .errors import InstallerError
from .models import Section


def static_files(entries: Iterable[Section]) -> list[dict[str, str]]:
    """Files for each host, by name: keyfiles, and `mac_interface.ini` with lines MAC=logical name.

    entries: the `spec` of NMStateConfigs, {"config": nmstate, "interfaces": [{"name", "macAddress"}]}. Raises
    `InstallerError` with all that is wrong.
    """
    from .. import nmstate  # only hosts with a static network need it

    problems: list[str] = []
    found = []
    for number, entry in enumerate(entries):
        nics = entry.get("interfaces") or []
        problems += _check_map(nics, number)
        try:
            keyfiles = nmstate.generate(entry.get("config") or {})
        except nmstate.NmstateError as error:
            problems.append(
                f"failed to validate network yaml for host {number}, failed to execute 'nmstatectl gc', error: {error}"
            )
            continue
        if not keyfiles:
            problems.append(
                f"failed to validate network yaml for host {number}, nmstate generated an empty NetworkManager config file "
                "content"
            )
            continue
        files = {name: _connect_first(text) for name, text in keyfiles}
        lines = sorted(f"{nic.get('macAddress', '')}={nic.get('name', '')}" for nic in nics)
        files["mac_interface.ini"] = "\n".join(lines)
        found.append(files)
    if problems:
        count = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        listed = "".join(f"\t* {text}\n" for text in problems)
        raise InstallerError(f"staticNetwork configuration is not valid: {count} occurred:\n{listed}\n")
    return found


def _check_map(nics: list[dict[str, str]], number: int) -> list[str]:
    if not nics:
        return [f"at least one interface for host {number} must be provided"]
    problems = [
        f"MAC address {nic.get('macAddress', '')} for host {number} is incorrectly formatted, "
        "use XX:XX:XX:XX:XX:XX format"
        for nic in nics
        if not MAC.fullmatch(nic.get("macAddress", ""))
    ]
    macs = [nic.get("macAddress", "").lower() for nic in nics]
    names = [nic.get("name", "") for nic in nics]
    if len(set(macs)) < len(macs) or len(set(names)) < len(names):
        problems.append(f"MACs and Interfaces for host {number} must be unique")
    return problems


def _connect_first(text: str) -> str:
    """The keyfile with its connection preferred to the ones that the OS makes up."""
    parser = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#",), strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    if not parser.has_section("connection"):
        parser.add_section("connection")
    parser["connection"]["autoconnect"] = "true"
    parser["connection"]["autoconnect-priority"] = "1"
    out = io.StringIO()
    parser.write(out, space_around_delimiters=False)
    return out.getvalue().rstrip("\n") + "\n"
