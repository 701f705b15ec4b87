"""Reading network states as nmstate reads them: YAML 1.2.

YAML 1.1, which PyYAML reads, takes `52:54:00:11:22:33` for a number in base sixty, and `no` for false.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .._deps import optional
from .errors import NmstateError

if TYPE_CHECKING:
    import yaml
else:
    yaml = optional("yaml", "PyYAML")

_LIMIT = 1 << 20
_RESOLVERS = {
    "tag:yaml.org,2002:null": (r"~|null|Null|NULL|", "~nN\0"),
    "tag:yaml.org,2002:bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "tag:yaml.org,2002:int": (r"[-+]?[0-9]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "tag:yaml.org,2002:float": (r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
}


def _loader() -> Any:
    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = {}
    for tag, (pattern, first) in _RESOLVERS.items():
        Loader.add_implicit_resolver(tag, re.compile(f"^(?:{pattern})$"), [c.strip("\0") for c in first])
    # 1.1 reads 010 as eight.
    Loader.add_constructor(
        "tag:yaml.org,2002:int", lambda loader, node: int(node.value, 16 if "x" in node.value else 10)
    )
    return Loader


def load(text: str | bytes) -> Any:
    """Return the document in `text`, YAML or JSON, as nested dictionaries; raise `NmstateError` when it is neither."""
    if len(text) > _LIMIT:
        raise NmstateError(f"Invalid YAML string: {len(text)} bytes; at most {_LIMIT} are accepted")
    try:
        return yaml.load(text, Loader=_loader())
    except yaml.YAMLError as error:
        raise NmstateError(f"Invalid YAML string: {' '.join(str(error).split())}") from None
    except (ValueError, RecursionError, UnicodeDecodeError) as error:
        raise NmstateError(f"Invalid YAML string: {error}") from None
