"""Tables of the project and of its users that are not profiles, such as `ci/jobs.yml`: read and validated as a profile is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..documents import read_file, read_yaml
from .problems import ProfileError
from .profile import Source
from .shapes import mismatches


def load(path: Path, wanted: object) -> Any:
    """Return the content of a YAML file of the type `wanted`.

    Raises `OSError`, `DocumentError`, and `ProfileError` with all that is wrong: file, line, field, value, and the valid values.
    """
    document = read_yaml(read_file(path), name=str(path))
    source = Source(document.value, str(path), document.positions, [])
    if wrong := [source.problem(one.path, one.value, one.remedy) for one in mismatches(document.value, wanted)]:
        raise ProfileError(wrong)
    return document.value
