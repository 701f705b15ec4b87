"""The reference page of profiles (`docs/profile.md`), made of the types in `options` and the defaults in `presets`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from . import describe
from .formats import FORMATS
from .modes import MODES
from .options import Profile
from .presets import DEFAULTS, MACHINE
from .settings import SETTINGS
from .shapes import Shape, fields, required_fields, shape
from .topologies import TOPOLOGIES

_WIDTH = 120
_HEAD = """\
<!-- Made by `ci/generate.py` from plugins/module_utils/plan/options.py; change it there. -->
# Profiles

A profile is a YAML file that describes how a cluster differs from the defaults; an empty one is a single node.
Examples are in `config_examples`, such as [compact_ipv4.yml](../config_examples/compact_ipv4.yml). `agentlab plan
PROFILE --format profile` shows one with every default, and `agentlab plan --format schema` prints the JSON schema,
which is also in [profile.schema.json](../config_examples/profile.schema.json). Editors with the YAML language server
complete and check a profile that has this line:

```yaml
# yaml-language-server: $schema=profile.schema.json
```

All that is wrong with a profile is reported at once, with file, line, field, value and what would be right.
"""


def page() -> str:
    """Return the text of the page.

    `make generate` writes it; a test compares the file with it.
    """
    parts = [_HEAD, "## Topologies\n", "\n".join(_topologies()), ""]
    for heading, record, defaults in _sections(Profile, "", DEFAULTS, set()):
        parts += [f"## {heading}\n", f"{describe.record(record)}\n", "\n".join(_rows(record, defaults)), ""]
    parts += [
        "## Boot modes\n",
        "Values of `boot.mode`, each with what machines boot from; [Hosts](hosts.md) has what each of them requires.\n",
        *(line for name, mode in MODES.items() for line in _wrapped(f"- `{name}`: {mode.meaning}.")),
        "",
        "## Settings\n",
        "Keys of `settings`, with upstream's value and that of the lab payload.\n",
        "\n".join(_settings()),
    ]
    return "\n".join(parts).rstrip() + "\n"


Section = tuple[str, Any, Mapping[str, object]]


def _sections(record: type, place: str, defaults: Mapping[str, object], seen: set[type]) -> Iterator[Section]:
    """Yield heading, type and defaults of a mapping of the profile and of those in it; a type of several fields comes once."""
    yield f"`{place}`" if place else "Fields", record, defaults
    for name, wanted in fields(record).items():
        allowed = shape(wanted)
        inner = shape(allowed.items) if allowed.items is not None else allowed
        suffix = {"list": "[]", "mapping": ".NAME"}.get(allowed.kind, "")
        if inner.kind == "record" and inner.record not in seen:
            seen.add(inner.record)
            shared = [other for other, kind in fields(record).items() if shape(kind).record is inner.record]
            first = place.partition("`")[0]
            places = "`, `".join(f"{first}.{other}{suffix}".lstrip(".") for other in shared or [name])
            machine = "disk_bus" in fields(inner.record)
            known = MACHINE if machine else defaults.get(name)
            yield from _sections(inner.record, places, known if isinstance(known, Mapping) else {}, seen)


def _rows(record: type, defaults: Mapping[str, object]) -> Iterator[str]:
    texts, needed = describe.fields(record), required_fields(record)
    for name, wanted in fields(record).items():
        allowed = shape(wanted)
        text = texts.get(name) or describe.record(allowed.record)
        notes = [_type(allowed), *(["required"] if name in needed else []), *_default(allowed, name, defaults)]
        yield from _wrapped(f"- `{name}` ({'; '.join(notes)}): {text}")


def _type(allowed: Shape) -> str:
    words = {
        "list": "list",
        "mapping": "mapping",
        "record": "mapping",
        "tagged": "mapping",
        "boolean": "true or false",
        "string": "string",
    }
    if allowed.choices:
        found = _names(allowed.choices)
    elif allowed.kind == "integer":
        found = f"integer, {allowed.least} to {allowed.most}"
    elif allowed.kind == "string":
        found = "a string" if allowed.format == "line" else FORMATS[allowed.format].meaning
    elif allowed.kind == "list" and shape(allowed.items).kind != "record":
        found = f"list: {_type(shape(allowed.items))}"
    else:
        found = words[allowed.kind]
    return f"{found}, or null" if allowed.null else found


def _names(choices: Collection[object]) -> str:
    return ", ".join(f"`{choice}`" for choice in choices)


def _default(allowed: Shape, name: str, defaults: Mapping[str, object]) -> list[str]:
    value = defaults.get(name)
    if name not in defaults or isinstance(value, dict) or allowed.kind == "record":
        return []
    return [f"default `{value if isinstance(value, str) else json.dumps(value)}`"]


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _topologies() -> Iterator[str]:
    yield "| topology | nodes | masters | arbiters | workers | scenario of dev-scripts |"
    yield "|---|---|---|---|---|---|"
    for name, row in TOPOLOGIES.items():
        yield f"| `{name}` | {row.meaning} | {row.master.number} | {row.arbiter.number} | {row.worker.number} | `{row.scenario}_...` |"


def _settings() -> Iterator[str]:
    for name, setting in SETTINGS.items():
        yield from _wrapped(
            f"- `{name}` (upstream {setting.upstream or 'has none'}; lab {setting.lab}): {setting.meaning}."
        )
