"""The service's tables: YAML files of this folder, each described by the JSON schema next to it; and the API's description.

A table is read and validated once, when the service starts; what uses it keeps it as objects of its own. An image has its tables
as JSON, too, which were valid when it was built: an emulated machine takes more than a second to read and validate them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

from ....plugins.module_utils.documents import Document, load_json, read_file, read_yaml

FOLDER = Path(__file__).parent
#: Start of a message about a value that has no position of its own.
_TOP = (1, 1)


class BadTable(ValueError):
    """A table that its schema refuses; the message names file, line, field, value and what would be right."""


def read(name: str, folder: Path = FOLDER) -> Document:
    """Return the YAML file `name`, with the positions of its fields; raise `DocumentError`."""
    path = folder / f"{name}.yaml"
    return read_yaml(read_file(path), name=str(path))


def load(name: str, folder: Path = FOLDER) -> Any:
    """Return the table `name`, validated against its schema; raise BadTable or `DocumentError`.

    The JSON that `compile_tables` has written is used while the YAML file is the one that it was made from.
    """
    made = folder / f"{name}.json"
    if made.exists():
        kept = load_json(read_file(made), name=str(made))
        if kept["of"] == _digest(name, folder):
            return kept["table"]
    return _validated(name, folder)


def compile_tables(folder: Path = FOLDER) -> None:
    """Write each table as JSON next to its YAML file, `{"of": DIGEST, "table": TABLE}`; raise as `load`."""
    for schema in sorted(folder.glob("*.schema.json")):
        name = schema.name.removesuffix(".schema.json")
        kept = {"of": _digest(name, folder), "table": _validated(name, folder)}
        (folder / f"{name}.json").write_text(json.dumps(kept), encoding="utf-8")


def _digest(name: str, folder: Path) -> str:
    return hashlib.sha256((folder / f"{name}.yaml").read_bytes()).hexdigest()


def _validated(name: str, folder: Path) -> Any:
    import jsonschema  # not at the top: most who import the service's packages read no table

    path = folder / f"{name}.yaml"
    document = read(name, folder)
    schema = folder / f"{name}.schema.json"
    validator = jsonschema.Draft202012Validator(load_json(read_file(schema), name=str(schema)))
    for problem in validator.iter_errors(document.value):
        where = tuple(problem.absolute_path)
        line, column = document.positions.get(where, _TOP)
        field = ".".join(map(str, where)) or "the table"
        raise BadTable(f"{path}:{line}:{column}: {field}: {problem.message[:300]}")
    return document.value


def check_known(name: str, field: str, values: Iterable[str], choices: Container[str]) -> None:
    """Raise BadTable unless all `values` of a table's field are names that exist."""
    for value in values:
        if value not in choices:
            raise BadTable(f"{FOLDER / name}.yaml: {field}: {value!r} does not exist")
