"""Packed modules that are kept from run to run."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from ansible_collections.agentlab.ocp.plugins.module_utils import built_modules

ROOT = Path(__file__).resolve().parents[3]
NAME = f"{built_modules.OURS}plugins.modules.one-ZIP_DEFLATED-none"
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - agentlab.ocp.iso_info: {{path: {0}/none.iso}}
      ignore_errors: true
"""


def packed(temporary: Path, *names: str, content: str = "packed") -> Path:
    """A run's directory with these modules."""
    (temporary / built_modules.FOLDER).mkdir(parents=True)
    for name in names:
        (temporary / built_modules.FOLDER / name).write_text(content)
    return temporary


def names(temporary: Path) -> list[str]:
    return sorted(path.name for path in (temporary / built_modules.FOLDER).iterdir())


def test_a_run_begins_with_what_an_earlier_one_packed(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    others = ("ansible.modules.ping-ZIP_DEFLATED-none", f"{NAME[:-5]}-coverage", f"{NAME}.lock")
    built_modules.keep(cache, "key", packed(tmp_path / "first", NAME, *others), shutil.copyfile)
    (tmp_path / "second").mkdir()
    built_modules.fetch(cache, "key", tmp_path / "second")
    assert names(tmp_path / "second") == [NAME]
    (tmp_path / "third").mkdir()
    built_modules.fetch(cache, "other", tmp_path / "third")
    assert not (tmp_path / "third" / built_modules.FOLDER).exists()


def test_a_module_that_is_replaced_in_a_run_does_not_change_the_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    built_modules.keep(cache, "key", packed(tmp_path / "first", NAME), shutil.copyfile)
    (tmp_path / "second").mkdir()
    built_modules.fetch(cache, "key", tmp_path / "second")
    built_modules.keep(cache, "key", tmp_path / "second", shutil.copyfile)
    part = tmp_path / "second" / "part"
    part.write_text("another")
    part.rename(tmp_path / "second" / built_modules.FOLDER / NAME)
    assert (cache / "key" / NAME).read_text() == "packed"


def test_a_cache_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    built_modules.keep(cache, "key", packed(tmp_path / "first", NAME), shutil.copyfile)
    cache.chmod(0o777)
    (tmp_path / "second").mkdir()
    built_modules.fetch(cache, "key", tmp_path / "second")
    assert not (tmp_path / "second" / built_modules.FOLDER).exists()


def test_the_keys_that_were_used_last_are_kept(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for number in range(built_modules.MOST_KEYS + 2):
        built_modules.keep(cache, f"key{number}", packed(tmp_path / f"run{number}", NAME), shutil.copyfile)
        os.utime(cache / f"key{number}", (number, number))
    assert sorted(path.name for path in cache.iterdir()) == ["key2", "key3", "key4"]


def test_the_key_is_another_when_a_source_changes(tmp_path: Path) -> None:
    source = tmp_path / "modules" / "deep" / "one.py"
    source.parent.mkdir(parents=True)
    source.write_text("a = 1\n")
    first = built_modules.key("2.20", [tmp_path / "modules"])
    assert first == built_modules.key("2.20", [tmp_path / "modules"])
    assert first != built_modules.key("2.21", [tmp_path / "modules"])
    source.write_text("a = 2\n")
    os.utime(source, (1, 1))
    assert first != built_modules.key("2.20", [tmp_path / "modules"])


def test_ansible_uses_them(tmp_path: Path) -> None:
    """A module that cannot be one: ansible-core takes it from the cache, and fails."""
    (tmp_path / "play.yml").write_text(PLAYBOOK.format(tmp_path))
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "XDG_CACHE_HOME": str(tmp_path)}
    ansible = Path(sys.executable).with_name("ansible-playbook")
    command = [
        str(ansible),
        "-i",
        "localhost,",
        "-c",
        "local",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
        str(tmp_path / "play.yml"),
    ]

    def shown() -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "none.iso" in shown()
    (kept,) = (tmp_path / "agentlab/modules").glob(f"*/*iso_info*{built_modules.PLAIN}")
    assert "none.iso" in shown()
    kept.write_text("no module")
    assert "none.iso" not in shown()
    kept.unlink()
    assert "none.iso" in shown()
    assert kept.exists()


def archive(**members: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        for name, source in members.items():
            zipped.writestr(f"{name}.py", source)
    return packed.getvalue()


def imported(path: Path, python: str = sys.executable) -> str:
    """What importing `one` from this archive shows."""
    done = subprocess.run(
        [python, "-c", "import one"], env={"PYTHONPATH": str(path)}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_a_kept_module_is_not_compiled_again(tmp_path: Path) -> None:
    """Python prints where it found the code of a module; a traceback has the line of the source."""
    changed = tmp_path / "modules.zip"
    changed.write_bytes(built_modules.with_bytecode(archive(one="print(__spec__.origin)\nraise SystemError('here')\n")))
    assert "modules.zip/one.pyc" in imported(changed)
    assert 'File "one.py", line 2' in imported(changed)


def test_bytecode_of_another_python_is_not_used(tmp_path: Path) -> None:
    changed = tmp_path / "modules.zip"
    content = built_modules.with_bytecode(archive(one="print(__spec__.origin)"))
    with zipfile.ZipFile(io.BytesIO(content)) as members, zipfile.ZipFile(changed, "w") as other:
        for name in members.namelist():
            other.writestr(name, b"\0\0\r\n" + members.read(name)[4:] if name.endswith("c") else members.read(name))
    assert "modules.zip/one.py\n" in imported(changed)


def test_a_source_that_cannot_be_compiled_stays_without_bytecode() -> None:
    with zipfile.ZipFile(io.BytesIO(built_modules.with_bytecode(archive(one="a = 1", two="a = ")))) as members:
        assert sorted(members.namelist()) == ["one.py", "one.pyc", "two.py"]
