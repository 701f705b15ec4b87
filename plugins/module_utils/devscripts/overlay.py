"""The fields of install-config.yaml that dev-scripts has a variable for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_LIST = re.compile(r"[^\s,;]+")


def leaves(value: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and value of everything in a mapping that is not a mapping.

    `path` is that of `value` itself. Keys come in their order, but for `baselineCapabilitySet`, which comes first:
    additional capabilities need it. An empty mapping counts as a value.
    """
    for key in sorted(value, key=lambda key: key != "baselineCapabilitySet"):
        item = value[key]
        if isinstance(item, dict) and item:
            yield from leaves(item, (*path, key))
        else:
            yield (*path, key), item


def overlaid(path: tuple[str, ...], value: object) -> tuple[str | None, str]:
    """Return the variable for a field of install-config.yaml with its text; None where dev-scripts has none for it.

    `path` is that in install-config.yaml. A list must have items without blanks, commas and semicolons, because
    dev-scripts joins them with commas.
    """
    texts = {
        ("featureSet",): "FEATURE_SET",
        ("osImageStream",): "OS_IMAGE_STREAM",
        ("capabilities", "baselineCapabilitySet"): "BASELINE_CAPABILITY_SET",
    }
    lists = {
        ("featureGates",): "FEATURE_GATES",
        ("capabilities", "additionalEnabledCapabilities"): "ADDITIONAL_CAPABILITIES",
    }
    if path in texts and isinstance(value, str) and value:
        return texts[path], value
    if path in lists and isinstance(value, list) and value:
        parts = [part for part in value if isinstance(part, str) and _LIST.fullmatch(part)]
        if len(parts) == len(value):
            return lists[path], ",".join(parts)
    if path == ("cpuPartitioningMode",) and value == "AllNodes":
        return "ENABLE_WORKLOAD_PARTITIONING", "true"
    return None, ""
