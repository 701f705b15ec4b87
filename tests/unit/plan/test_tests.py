"""Tests that a profile brings along: every field is validated, and nothing in them is a template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError


def plan(folder: Path, text: str) -> Any:
    path = folder / "p.yml"
    path.write_text(text)
    return build.build(profile.load(path), "ostest")


def test_defaults(tmp_path: Path) -> None:
    """`on` is a field, not YAML's word for true; numbers in a command are words."""
    found = plan(
        tmp_path,
        "tests:\n- {name: a, on: lab, run: [ping, -c, 1]}\n- {name: b, on: api, http: /readyz}\n"
        "- {name: c, on: master-0, console: 'login:', timeout: 5}\n- {name: d, 'on': host, run: \"{{ x }}\\n\\tls\"}\n",
    )
    nothing = {"run": None, "http": None, "console": None, "timeout": 60}
    assert found["tests"] == [
        {**nothing, "name": "a", "on": "lab", "run": ["ping", "-c", "1"], "expect": {"status": 0, "output": None}},
        {**nothing, "name": "b", "on": "api", "http": "/readyz", "expect": {"status": 200, "output": None}},
        {
            **nothing,
            "name": "c",
            "on": "master-0",
            "console": "login:",
            "expect": {"status": None, "output": None},
            "timeout": 5,
        },
        {**nothing, "name": "d", "on": "host", "run": "{{ x }}\n\tls", "expect": {"status": 0, "output": None}},
    ]
    (tmp_path / "plan.yaml").write_text(rundir.dump(found))
    assert rundir.load_plan(tmp_path) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{name: A b, on: lab, run: x}", "p.yml:1:10: tests.0.name is 'A b': must be lower-case letters"),
        ("{name: a, on: lab, run: x}, {name: a, on: lab, run: x}", "tests.1.name is 'a': is already used by tests.0"),
        ("{name: a, run: x}", "tests.0.on: is missing"),
        ("{name: a, on: master-9, run: x}", "tests.0.on is 'master-9': must be api, host, lab or the name of a node: "),
        ("{name: a, on: lab}", "tests.0: a test has exactly one action; on lab that is `run` or `http`"),
        ("{name: a, on: lab, run: x, http: 'http://x'}", "tests.0 is 'run, http': a test has exactly one action"),
        ("{name: a, on: lab, run: []}", "tests.0.run is []: must be a command"),
        ("{name: a, on: lab, run: ' '}", "tests.0.run is ' ': must be a command"),
        ("{name: a, on: lab, run: [a, yes]}", "tests.0.run.1 is True: "),
        ('{name: a, on: lab, run: ["a\\0"]}', "tests.0.run.0 is 'a\\x00': "),
        ("{name: a, on: api, run: x}", "tests.0.run is 'x': a test on api has `http`"),
        ("{name: a, on: lab, console: x}", "tests.0.console is 'x': a test on lab has `run` or `http`"),
        ("{name: a, on: master-0, http: 'http://x'}", "a test on master-0 has `run` or `console`"),
        ("{name: a, on: lab, http: /x}", "tests.0.http is '/x': must be a URL"),
        ("{name: a, on: api, http: 'http://x'}", "tests.0.http is 'http://x': must be a path of the API"),
        ("{name: a, on: lab, http: 'ftp://x'}", "tests.0.http is 'ftp://x': must be a URL"),
        ("{name: a, on: lab, http: 'http://x:99999/'}", "tests.0.http is 'http://x:99999/': must be a URL"),
        ("{name: a, on: lab, http: 'http://x/ y'}", "tests.0.http is 'http://x/ y': must be a URL"),
        ("{name: a, on: lab, run: x, expect: {status: 256}}", "tests.0.expect.status is 256: must be from 0 to 255"),
        ("{name: a, on: api, http: /, expect: {status: 99}}", "tests.0.expect.status is 99: must be from 100 to 599"),
        (
            "{name: a, on: master-0, console: x, expect: {output: y}}",
            "expect.output is 'y': belongs to `run` and `http`",
        ),
        ("{name: a, on: lab, run: x, expect: {output: '('}}", "expect.output is '(': must be a regular expression"),
        ("{name: a, on: master-0, console: '[[a'}", "tests.0.console is '[[a': must be a regular expression"),
        ("{name: a, on: lab, run: x, timeout: 0}", "tests.0.timeout is 0: must be from 1 to 86400"),
        ("{name: a, on: lab, run: x, timeout: 1m}", "tests.0.timeout is '1m': must be an integer"),
        ("{name: a, on: lab, run: x, expct: {}}", "tests.0.expct: unknown field; did you mean `expect`?"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ProfileError) as report:
        plan(tmp_path, f"tests: [{text}]")
    assert told in str(report.value)
    assert len(report.value.problems) == 1


def test_a_plan_that_was_edited(tmp_path: Path) -> None:
    found = plan(tmp_path, "tests: [{name: a, on: lab, run: x}]")
    found["tests"][0] |= {"on": "api"}
    assert stored.findings(found) == [(("tests", 0, "run"), "x", "a test on api has `http`")]


def test_tests_change_while_the_cluster_exists(tmp_path: Path) -> None:
    """Nothing of a cluster depends on them; anything else is refused as before."""
    run, given = tmp_path / "one", tmp_path / "p.yml"
    given.write_text("tests: [{name: a, on: lab, run: x}]")
    rundir.write(rundir.prepare(run, str(given), None, "one")[1])
    state.record(run, [{"kind": "sandbox", "name": "agentlab-one", "host": "hypervisor"}])
    given.write_text("tests: [{name: b, on: lab, run: y}]")
    rundir.write(rundir.prepare(run, str(given), None, "one")[1])
    assert [test["name"] for test in rundir.load_plan(run)["tests"]] == ["b"]
    given.write_text("tests: [{name: b, on: lab, run: y}]\nbase_domain: other.test")
    with pytest.raises(rundir.RunError, match="exists with another plan"):
        rundir.prepare(run, str(given), None, "one")
