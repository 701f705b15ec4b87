"""YAML as the installer reads and writes it (sigs.k8s.io/yaml): strict on the way in, sorted keys on the way out."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from .._deps import optional
from .errors import InstallerError

if TYPE_CHECKING:
    import yaml
else:
    yaml = optional("yaml", "PyYAML")


_INTEGER = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|\.(inf|Inf|INF))$|\.(nan|NaN|NAN)$")


class Position(dict["tuple[str | int, ...]", tuple[int, int]]):
    """Where each key of a document stands: path of keys and indices -> (line, column), both from 1."""


@functools.cache
def _loader() -> Any:
    base = getattr(yaml, "CSafeLoader", None) or yaml.SafeLoader

    class Loader(base):  # type: ignore[misc,valid-type]
        """Safe YAML 1.1 without dates: JSON has none, so neither has what comes out of here."""

    # Go's yaml knows no numbers to the base 60, so that a MAC address of digits alone stays a string.
    numbers = {f"tag:yaml.org,2002:{kind}": regexp for kind, regexp in (("int", _INTEGER), ("float", _FLOAT))}
    Loader.yaml_implicit_resolvers = {
        first: [(tag, numbers.get(tag, regexp)) for tag, regexp in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    return Loader


def load(text: str, name: str) -> tuple[Any, Position]:
    """Parse one YAML document.

    Returns the value (None when empty) and the position of every key. Raises `InstallerError` with line and column
    when it does not parse, when a key stands twice in one mapping, or when there is more than one document.
    """
    documents = load_all(text, name)
    if len(documents) > 1:
        line = documents[1][1].get((), (1, 1))[0]
        raise InstallerError(f"failed to unmarshal {name}: yaml: line {line}: expected one document, found another")
    return documents[0] if documents else (None, Position())


def load_all(text: str, name: str) -> list[tuple[Any, Position]]:
    """Parse every YAML document of `text` that is not empty; errors as in `load`."""
    loader = _loader()(text)
    documents = []
    try:
        while loader.check_node():
            node = loader.get_node()
            if node.tag == "tag:yaml.org,2002:null":
                continue
            position = Position()
            position[()] = (node.start_mark.line + 1, node.start_mark.column + 1)
            duplicates: list[str] = []
            _walk(node, (), position, duplicates)
            if duplicates:
                raise InstallerError(
                    f"failed to unmarshal {name}: error converting YAML to JSON: yaml: unmarshal errors:\n"
                    + "\n".join(f"  {text}" for text in duplicates)
                )
            documents.append((loader.construct_document(node), position))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (f"line {mark.line + 1}: ", f" (column {mark.column + 1})") if mark else ("", "")
        raise InstallerError(
            f"failed to unmarshal {name}: error converting YAML to JSON: yaml: {line}{error.problem or error.context}{column}"
        ) from error
    except yaml.YAMLError as error:
        raise InstallerError(f"failed to unmarshal {name}: error converting YAML to JSON: yaml: {error}") from error
    finally:
        loader.dispose()
    return documents


def _walk(node: Any, path: tuple[str | int, ...], position: Position, duplicates: list[str]) -> None:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line, column = key.start_mark.line + 1, key.start_mark.column + 1
            if key.value in seen:
                duplicates.append(f'line {line}: key "{key.value}" already set in map (column {column})')
            seen.add(key.value)
            position[(*path, key.value)] = (line, column)
            _walk(value, (*path, key.value), position, duplicates)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            position[(*path, index)] = (value.start_mark.line + 1, value.start_mark.column + 1)
            _walk(value, (*path, index), position, duplicates)


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

        def ignore_aliases(self, data: Any) -> bool:
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


def dump(value: Any, *, sort: bool = True) -> str:
    """Write one document: sorted keys (unless `sort` is false), lists not indented, no folded lines."""
    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=sort, default_flow_style=False, width=2**30, allow_unicode=True
    )
    # libyaml ends a document so when a block scalar anywhere in it keeps its last empty lines.
    return text.removesuffix("...\n")
