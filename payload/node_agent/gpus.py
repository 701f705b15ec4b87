"""Graphics processors of this machine, for the inventory: which PCI devices count as one, and their names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from . import host

PCI_IDS = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")
# PCI base class and subclass: VGA, 3D, other display controllers; processing accelerators.
GPU_CLASSES = frozenset({"0300", "0302", "0380", "1200"})
ROOT = Path("/")


class GpuConfig(NamedTuple):
    """What counts as a GPU: PCI ids in lower-case hexadecimal digits, put together.

    classes: four digits, class and subclass. vendors: these and the vendor's four. models: those and the device's four.
    """

    classes: frozenset[str]
    vendors: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()


def config(path: Path | None) -> GpuConfig:
    """Return what counts as a GPU: the lists of a YAML file, or by default display controllers and processing accelerators.

    The lists are `classes:`, `vendors:` and `models:`, each with lines like `- "0302 10de"`. ValueError: the file is invalid; OSError: it cannot be read.
    """
    if path is None:
        return GpuConfig(GPU_CLASSES)
    lists: dict[str, set[str]] = {"classes": set(), "vendors": set(), "models": set()}
    here = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text.startswith("- ") and here:
            lists[here].add(text[2:].strip(" \"'").replace(" ", "").lower())
        elif text.endswith(":") and text[:-1] in lists:
            here = text[:-1]
        elif text:
            raise ValueError(f"{path}, line {number}: {text!r}: want one of {', '.join(lists)}, or - PCI-ID")
    return GpuConfig(*(frozenset(values) for values in lists.values()))


def find_gpus(root: Path = ROOT, wanted: GpuConfig | None = None) -> list[dict[str, str]]:
    """Return the GPUs on the PCI bus, as the model `gpu` of the service's API.

    wanted: what counts as one; by default the class of display controllers. Names come from the host's pci.ids; they
    are empty for what it does not know.
    """
    wanted = wanted or GpuConfig(GPU_CLASSES)
    devices = []
    for address in host.names(root / "sys/bus/pci/devices"):
        device = root / "sys/bus/pci/devices" / address
        kind, vendor, model = (host.read(device / key).removeprefix("0x") for key in ("class", "vendor", "device"))
        kind = kind[:4]
        if kind in wanted.classes or kind + vendor in wanted.vendors or kind + vendor + model in wanted.models:
            devices.append({"address": address, "vendor_id": vendor, "device_id": model})
    names = pci_names(root, {(one["vendor_id"], one["device_id"]) for one in devices})
    for one in devices:
        one["vendor"], one["name"] = names.get((one["vendor_id"], one["device_id"]), ("", ""))
    return devices


def pci_names(root: Path, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the names of vendors and devices, from the host's pci.ids.

    wanted: pairs of ids, four hexadecimal digits each; the result maps those that were found to a pair of names. A
    vendor's line starts with its id, its devices' lines with a tab. A device that is unknown has an empty name.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    lines = next((text for path in PCI_IDS if (text := host.read(root / path))), "") if wanted else ""
    vendor = title = ""
    for line in lines.splitlines():
        if line.startswith("C "):  # the classes' names come last
            break
        key, __, name = line.strip().partition("  ")
        if line[:1] not in ("", "#", "\t"):
            vendor, title = key, name
            found |= {pair: (title, "") for pair in wanted if pair[0] == vendor}
        elif line.startswith("\t") and (vendor, key) in wanted and line[1:2] != "\t":
            found[vendor, key] = (title, name)
    return found
