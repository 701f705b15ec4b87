"""Messages of verbs about errors of the system: `path: reason`, without Python's number."""

from __future__ import annotations

import ast
import errno
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import output
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
FOLDER = Path(cli.__file__).parent
ELSEWHERE = "ci/"  # it classifies errors, with messages of its own
WHOLE = {"str", "write_line", "redact"}  # functions with which the text of an error would be Python's


def test_an_error_of_the_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert output.print_failure(PermissionError(errno.EACCES, "Permission denied", "/x")) == 1
    assert output.print_failure(ValueError("what is wrong")) == 1
    assert capsys.readouterr().err == "agentlab: /x: Permission denied\nagentlab: what is wrong\n"


@pytest.mark.parametrize(
    ("verb", "argv"),
    [
        ("status", []), ("ssh", ["master-0"]), ("kubeconfig", []), ("forward", []), ("capture", ["master-0"]), ("logs", []),
        ("exec", ["--", "true"]), ("reload", ["hyperkube"]), ("boot", []),
    ],
)  # fmt: skip
def test_an_owner_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str, argv: list[str]
) -> None:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    chosen = profile.load("sno_ipv4", PROFILES)
    chosen["hypervisor"]["state_dir"] = str(tmp_path / "state")
    path = tmp_path / "state/lab" / owner.FILE
    path.mkdir(parents=True)
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / rundir.PLAN).write_text(rundir.dump(build.build(chosen, "lab")))
    given = ["--cluster", "lab"]
    assert cli.main([verb, *given, *argv] if verb == "exec" else [verb, *argv, *given]) in (1, 2)
    assert capsys.readouterr().err.removeprefix("agentlab: ") == f"{path}: Is a directory\n"


@pytest.mark.parametrize(
    "path", [path for path in sorted(FOLDER.rglob("*.py")) if not str(path.relative_to(FOLDER)).startswith(ELSEWHERE)],
    ids=lambda path: str(path.relative_to(FOLDER)),
)  # fmt: skip
def test_no_verb_prints_the_number_of_an_error(path: Path) -> None:
    """What catches `OSError` prints it with `output.message`, `output.print_failure` or `files.explain`."""
    handlers = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ExceptHandler)]
    for handler in handlers:
        if handler.name and handler.type and "OSError" in ast.unparse(handler.type):
            assert not list(whole(handler)), f"line {handler.lineno}: {', '.join(whole(handler))}"


def whole(handler: ast.ExceptHandler) -> list[str]:
    """Return where a handler takes the text of its error as it is."""
    branch = [node for node in ast.walk(handler) if isinstance(node, ast.IfExp) and "OSError" in ast.unparse(node.test)]
    allowed = {id(inner) for node in branch for inner in ast.walk(node)}
    found = []
    for node in ast.walk(handler):
        if id(node) in allowed:
            continue
        texts = [node.value] if isinstance(node, ast.FormattedValue) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WHOLE:
            texts = node.args
        found += [ast.unparse(node) for text in texts if isinstance(text, ast.Name) and text.id == handler.name]
    return found
