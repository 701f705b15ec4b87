"""Configurations are read without a shell: what is not an assignment is an error with its line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import shell
from hypothesis import given, settings
from hypothesis import strategies as st

KNOWN = {"HOME": "/root", "USER": "me"}
ACCEPTED = {
    "plain": "export A=1\nB=two",
    "several on a line": "export A=1 B='2 3' C=\"4\"; D=5 # end",
    "options and comments": "#!/bin/bash\nset +x\nset -euo pipefail\nexport A='' # none\nset -x",
    "quotes": r"""A="a \"b\" \$c \d" B='it'\''s' C=a\ b"c"'d'""",
    "expansion": "A=x\nB=$A-${A}-${C:-d}-${C-e}\nC=\nD=${C:-f}\nE=${C-g}",
    "own values": 'NAME=one\nRENDEZVOUS="${NAME:-ostest}_master_1"',
    "home": 'A=~/x B=$HOME/y C="~/z" D=${NONE:-~/w}',
    "continued": "export A=1 \\\n  B=2\nC=a\\\nb",
    "marks": 'A=b#c B=a=b C=$ D="$" E=100% F=[1] G={a} H=a:b,c@d!e',
    "windows": "A=1\r\nB=2\r\n",
    "exported later": "A=1\nexport A\nB=2",
    "empty": "",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_as_a_shell_reads_it(name: str, tmp_path: Path) -> None:
    text = ACCEPTED[name].replace("\r\n", "\n")
    file = tmp_path / "config.sh"
    file.write_text(text)
    script = 'before=$(compgen -v); set -a; . "$1" 2>/dev/null; set +xeu; env -0'
    done = subprocess.run(
        ["bash", "-c", script, "-", file], env={**KNOWN, "PATH": "/usr/bin:/bin"}, capture_output=True, check=True
    )
    environment = dict(line.partition("=")[::2] for line in done.stdout.decode().split("\0") if line)
    found = {one.name: one.value for one in shell.parse(ACCEPTED[name], "config.sh", KNOWN)}
    assert found == {key: environment[key] for key in found}
    assert set(found) >= set(environment) - {*KNOWN, "PATH", "PWD", "SHLVL", "_", "OLDPWD"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A=1\nB=$(hostname -f)", "c:2: a command substitution, `$(...)`, is not run; write its result"),
        ('A="$(id)"', "c:1: a command substitution"),
        ("A=`id`", "c:1: a command in backticks is not run"),
        ("A=$((1 + 1))", "c:1: arithmetic is not run"),
        ("A=${B%x}", "c:1: an expansion other than ${NAME} and ${NAME:-default} is not understood"),
        ("A=${!B}", "c:1: an expansion other than"),
        ("A=$B", "c:1: $B is not set before; write its value"),
        ("A=${B:-$(id)}", "c:1: an expansion other than"),
        ("source other.sh", "c:1: 'source other.sh' is not an assignment; use `export NAME=value`"),
        ("f() { id; }", "c:1: 'f() { id; }' is not an assignment"),
        ("if [ -f x ]; then\nA=1\nfi", "c:1: 'if [ -f x ]; then' is not an assignment"),
        ("A=1 id", "c:1: what follows is not NAME=value; quote a value that has blanks"),
        ("A=(1 2)", "c:1: A: '(' is not part of a value"),
        ("A=1 && id", "c:1: what follows is not NAME=value"),
        ("A=a|b", "c:1: A: '|' is not part of a value"),
        ("A=<(id)", "c:1: A: '<' is not part of a value"),
        ("A=$'x\\n'", "c:1: the quotes $'...'"),
        ("A='x\ny'\nB=1", "c:1: A: the value has more than one line"),
        ('A="x\ny"', "c:1: A: the value has more than one line"),
        ("A='x", "c:1: A: a quote is not closed"),
        ('A="x', "c:1: A: a quote is not closed"),
        ("set -- a b", "c:1: 'set -- a b' is not `set` with options"),
        ("unset A", "c:1: 'unset A' is not an assignment"),
        ("A+=1", "c:1: 'A+=1' is not an assignment"),
        ("A[0]=1", "c:1: 'A[0]=1' is not an assignment"),
        ("A=$(cat /etc/passwd | sh)", "c:1: a command substitution"),
        ("A=$(cat /a)$(id)", "c:1: a command substitution"),
        ("A=xxxxxxxx\n" + "A=$A$A\n" * 14, "c:15: A: the value is longer than 64 KiB"),
    ],
)
def test_what_is_not_an_assignment(text: str, problem: str) -> None:
    with pytest.raises(shell.ShellError) as caught:
        shell.parse(text, "c", KNOWN)
    assert str(caught.value).startswith(problem)


def test_all_problems_at_once() -> None:
    with pytest.raises(shell.ShellError) as caught:
        shell.parse("A=$(id)\nB=1\nhello\nC=`id`", "c", KNOWN)
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["1", "3", "4"]


def test_content_of_a_file_is_not_read() -> None:
    """The form that config_example.sh has for SSH_PUB_KEY."""
    found = shell.parse('A=$(cat ~/.ssh/id_rsa.pub)\nB="$(cat $HOME/.ssh/id)"\nC=$(cat "/x/y")', "c", KNOWN)
    assert [(one.value, one.file) for one in found] == [
        ("/root/.ssh/id_rsa.pub", True),
        ("/root/.ssh/id", True),
        ("/x/y", True),
    ]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="AB=$ \n\"'\\`(){}:-#;~x1&|<>", max_size=60))
def test_no_text_crashes_it(text: str) -> None:
    try:
        found = shell.parse(text, "c", KNOWN)
    except shell.ShellError as error:
        assert all(line.startswith("c:") for line in str(error).splitlines())
    else:
        assert all("\n" not in one.value for one in found)
