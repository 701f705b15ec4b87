"""Write README.md of each role from its argument_specs.yml; what stands there from `## Example` on is kept.

With names of roles, only theirs. `tests/lint/test_roles.py` compares.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = "## Example\n"
SENTENCE = re.compile(r"(?<=[^.]\.) (?=[A-Z`])")
"""Between two sentences. The last column has the first one; `ansible-doc` prints them all."""


def render(role: str) -> str:
    """Return the text of the README of `role`.

    The text from `## Example` on is that of the present README, if there is one. Raises `OSError` and `KeyError` for a
    role without specs.
    """
    spec = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    defaults_file = ROOT / f"roles/{role}/defaults/main.yml"
    defaults = (yaml.safe_load(defaults_file.read_text()) or {}) if defaults_file.exists() else {}
    readme = ROOT / f"roles/{role}/README.md"
    kept = readme.read_text().partition(EXAMPLE)[2] if readme.exists() else ""
    rows = [_row(name, option, defaults) for name, option in spec.get("options", {}).items()]
    parts = [
        f"# agentlab.ocp.{role}",
        f"{spec['short_description']}.",
        "\n".join(map(_item, spec["description"])),
        "## Variables",
        "| variable | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows),
        EXAMPLE.strip(),
    ]
    return "\n\n".join(parts) + "\n" + (kept or "\n")


def _row(name: str, option: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    kind = f"list of {option['elements']}" if option.get("elements") else option["type"]
    if option.get("choices"):
        kind = f"one of {', '.join(f'`{choice}`' for choice in option['choices'])}"
    if option.get("required"):
        default = "required"
    elif "default" in option:
        default = f"`{yaml.safe_dump(option['default'], default_flow_style=True).partition(chr(10))[0]}`"
    else:
        value = defaults.get(name, "")
        default = "" if value in ("", [], {}) or not isinstance(value, str) or "{{" in value else f"`{value}`"
    text = option["description"]
    meaning, *more = SENTENCE.split(_markdown(" ".join(text) if isinstance(text, list) else text))
    if not default:
        default = next((one.removesuffix(".") for one in more if "by default" in one.lower()), "")
    return f"| `{name}` | {kind} | {default} | {meaning} |"


def _item(line: str) -> str:
    return textwrap.fill(
        _markdown(line),
        120,
        initial_indent="- ",
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _markdown(text: str) -> str:
    """Return a text of Ansible's documentation markup as Markdown."""
    text = re.sub(r"P\(agentlab\.ocp\.(\w+)#role\)", r"[\1](../\1/README.md)", text)
    return re.sub(r"\b(?:C|V|O|RV|E|M)\(([^)]*)\)", r"`\1`", text)


def main(argv: list[str]) -> int:
    for role in argv or sorted(path.name for path in (ROOT / "roles").iterdir()):
        (ROOT / f"roles/{role}/README.md").write_text(render(role))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
