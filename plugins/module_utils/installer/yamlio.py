"""YAML as the installer reads and writes it (sigs.k8s.io/yaml): strict on the way in, sorted keys on the way out."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from .. import documents
from .._deps import optional
from ..documents import Positions
from .errors import InstallerError

if TYPE_CHECKING:
    import yaml
else:
    yaml = optional("yaml", "PyYAML")


def load(text: str | bytes, name: str) -> tuple[Any, Positions]:
    """Parse one YAML document.

    Returns the value (None when empty) and the position of every key. Raises `InstallerError` with line and column
    when it does not parse, when a key stands twice in one mapping, or when there is more than one document.
    """
    found = load_all(text, name)
    if len(found) > 1:
        line = (found[1][1].get(()) or (1, 1))[0]
        raise InstallerError(f"failed to unmarshal {name}: yaml: line {line}: expected one document, found another")
    return found[0] if found else (None, Positions(None))


def load_all(text: str | bytes, name: str) -> list[tuple[Any, Positions]]:
    """Parse every YAML document of `text` that is not empty; errors as in `load`.

    name: the file's, for messages. Each document comes with the positions of its fields.
    """
    start = f"failed to unmarshal {name}: error converting YAML to JSON: yaml:"
    try:
        found = documents.read_yaml_all(text, name=name, twice=True)
    except documents.DocumentError as error:
        raise InstallerError(f"{start} line {error.line}: {error.problem} (column {error.column})") from error
    for document in found:
        if document.twice:
            raise InstallerError(
                f"{start} unmarshal errors:\n"
                + "\n".join(
                    f'  line {key.line}: key "{key.path[-1]}" already set in map (column {key.column})'
                    for key in document.twice
                )
            )
    return [(document.value, document.positions) for document in found]


# What Go's yaml would read as something else than a string, though nothing in it needs quotes.
_NO_STRING = re.compile(
    r"""|[yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|true|True|TRUE|false|False|FALSE|~|null|Null|NULL|<<
    |[-+]?(0b[01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[0-9][0-9_]*)
    |[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9_]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)
    |[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt\ ].*)?""",
    re.X,
)


@functools.cache
def _dumper() -> Any:
    base = getattr(yaml, "CSafeDumper", None) or yaml.SafeDumper

    class Dumper(base):  # type: ignore[misc,valid-type]
        """Blocks, two spaces, strings quoted as Go's yaml quotes them."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = None
        if "\n" in value:
            style = "|"
        elif _NO_STRING.fullmatch(value):
            style = '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper


def dump(value: object, *, sort: bool = True) -> str:
    """Write one document: sorted keys (unless `sort` is false), lists not indented, long scalars folded at column 80.

    value: JSON-able data. The text is what sigs.k8s.io/yaml writes, so that files equal upstream's byte by byte.
    """
    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=sort, default_flow_style=False, width=80, allow_unicode=True
    )
    # libyaml ends a document so when a block scalar anywhere in it keeps its last empty lines.
    return text.removesuffix("...\n")
