"""Reading network states as nmstate reads them: YAML 1.2.

YAML 1.1, which PyYAML reads, takes `52:54:00:11:22:33` for a number in base sixty, and `no` for false.
"""

from __future__ import annotations

from typing import Any

from ..documents import NMSTATE, DocumentError, Limits, load_yaml
from .errors import NmstateError

LIMITS = Limits(size=1 << 20, nodes=200_000)
"""The most that a state may be; nmstate itself has no such limits."""


def load(text: str | bytes, *, name: str = "network state") -> Any:
    """Return the document in `text`, YAML or JSON, as nested dictionaries; raise `NmstateError` when it is neither.

    `name` is what messages call the text. The limits are `LIMITS`: 1 MiB, and 200,000 nodes after aliases are
    followed. What the document means is not checked here; that is up to `schema.parse`.
    """
    try:
        return load_yaml(text, name=name, schema=NMSTATE, limits=LIMITS)
    except DocumentError as error:
        raise NmstateError(f"Invalid YAML string: {error}") from None
