"""The service's tables: their schemas hold, and a wrong value is reported with file, line, field and value."""

from __future__ import annotations

import json
import shutil
import string
from pathlib import Path

import jsonschema
import pytest
from ansible_collections.agentlab.ocp.payload.api_server import data
from ansible_collections.agentlab.ocp.payload.api_server.data import FOLDER, BadTable
from ansible_collections.agentlab.ocp.payload.api_server.tables import EVENTS

NAMES = ("events", "features", "operators")


def test_every_table_has_a_schema() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*NAMES, "swagger"}
    assert {path.name for path in FOLDER.glob("*.json")} == {f"{name}.schema.json" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_table_conforms_to_its_schema(name: str) -> None:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"].endswith(f"{name}.schema.json")
    assert data.load(name)


def test_compiled_tables_are_used_until_a_table_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    data.compile_tables(tmp_path)
    changed = tmp_path / "events.yaml"
    tables = {name: data.load(name) for name in NAMES}
    with monkeypatch.context() as patch:
        patch.setattr(data, "read", None)
        assert {name: data.load(name, tmp_path) for name in NAMES} == tables
    changed.write_text(changed.read_text().replace("severity: warning", "severity: bad", 1))
    with pytest.raises(BadTable, match="'bad' is not one of"):
        data.load("events", tmp_path)


def _undescribed(node: object, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(node, dict):
        for key, entry in node.get("properties", {}).items() if isinstance(node.get("properties"), dict) else ():
            if "description" not in entry and "$ref" not in entry:
                found.append(f"{path}.{key}")
        for key, entry in node.items():
            found += _undescribed(entry, f"{path}.{key}")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_described(name: str) -> None:
    assert _undescribed(json.loads((FOLDER / f"{name}.schema.json").read_text()), name) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "message"),
    [
        ("events", "severity: warning", "severity: bad", r"events\.yaml:\d+:\d+: \w+\.severity: 'bad' is not one of"),
        ("events", "  severity: info\n", "", r"events\.yaml:\d+:\d+: \w+: 'severity' is a required property"),
        ("features", "level: dev-preview", "level: dev", r"features\.yaml:\d+:\d+: .*levels\.\d+\.level: 'dev' is not"),
        (
            "features",
            'before: "4.12"',
            "before: 4.12",
            r"features\.yaml:\d+:\d+: .*before: 4.12 is not of type 'string'",
        ),
        (
            "operators",
            "timeout_minutes: 70",
            "timeout_minutes: soon",
            r"operators\.yaml:\d+:\d+: .*'soon' is not of type",
        ),
        (
            "operators",
            "feature: LSO",
            "feature: LSO\n    more: 1",
            r"operators\.yaml:\d+:\d+: operators\.lso: .*'more'",
        ),
    ],
)
def test_wrong_value(name: str, right: str, wrong: str, message: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    path = tmp_path / f"{name}.yaml"
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong, 1))
    with pytest.raises(BadTable, match=message):
        data.load(name, tmp_path)


def test_unknown_name() -> None:
    with pytest.raises(BadTable, match=r"operators\.yaml: operators\.lso\.needs: 'nothing' does not exist"):
        data.check_known("operators", "operators.lso.needs", ["nothing"], {"lso"})


def test_messages_of_events_are_templates() -> None:
    for name, event in EVENTS.items():
        for __, field, spec, conversion in string.Formatter().parse(event.message):
            assert field is None or field.isidentifier(), name
            assert not spec, name
            assert conversion is None, name
