"""How an installation ended, in the classes of openshift-install and of OpenShift CI's dashboards.

`install-status.txt` has one exit code a line, one line for each attempt; `junit_install.xml` has the test cases that
Sippy knows by these names. Source: `createInstallJunit` in the step gather-must-gather of openshift/release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from .._deps import optional
from ..redact import redact
from ..report.causes import CONTROLS

if TYPE_CHECKING:
    import junitparser
else:
    junitparser = optional("junitparser")

STATUS = "install-status.txt"
JUNIT = "junit_install.xml"
INFRASTRUCTURE_LOG = "install_infrastructure_failure.log"


class Class(IntEnum):
    """Exit codes of openshift-install; `OTHER` is any other failure.

    They are also what `agentlab ci run` ends with. 0 is a success; the larger the number, the later the installation
    failed.
    """

    INSTALLED = 0
    OTHER = 1
    CONFIGURATION = 3
    INFRASTRUCTURE = 4
    BOOTSTRAP = 5
    CREATION = 6
    OPERATORS = 7


_CASES = {
    Class.OTHER: "other",
    Class.CONFIGURATION: "configuration",
    Class.INFRASTRUCTURE: "infrastructure",
    Class.BOOTSTRAP: "cluster bootstrap",
    Class.CREATION: "cluster creation",
    Class.OPERATORS: "cluster operator stability",
}
_STAGES = {
    "configure": Class.CONFIGURATION,
    "prepare": Class.INFRASTRUCTURE,
    "image": Class.INFRASTRUCTURE,
    "boot": Class.INFRASTRUCTURE,
    "wait": Class.BOOTSTRAP,
    "validate": Class.OPERATORS,
}
# Refusals of the installer's input, which the stage image reports.
_REFUSED = re.compile(
    r"failed to create install config|invalid [\w -]+ configurations?\b|invalid host definition|asset \"Platform Provisioning Check"
)


def classify(stage: str, error: str, reported: int | None = None, *, bootstrapped: bool = False) -> Class:
    """Return the class of a stage that failed with `error`.

    reported: exit code of the stage's own program, which wins if it is one of these classes; bootstrapped: the wait has seen
    a complete bootstrap. A stage that is not one of the installation has the class OTHER.
    """
    if reported in _CASES and reported != Class.OTHER:
        return Class(reported)
    if stage == "image" and _REFUSED.search(error):
        return Class.CONFIGURATION
    if stage == "wait" and bootstrapped:
        return Class.CREATION
    return _STAGES.get(stage, Class.OTHER)


def attempts(text: str) -> list[Class]:
    """The attempts of an `install-status.txt`: the first word of each line; what is not a known code is OTHER.

    text: all of the file, oldest attempt first. Empty lines do not count.
    """
    known = {str(int(one)): one for one in Class}
    return [known.get(words[0], Class.OTHER) for line in text.splitlines() if (words := line.split())]


def junit(history: Sequence[Class], text: str) -> junitparser.JUnitXml:
    """Return the suite `cluster install` for all attempts, the last of which counts; text: the first cause of its failure.

    Cases before the failing one pass. An earlier attempt without infrastructure, followed by a success, is a flake: the case
    is there twice, passed and failed.
    """
    last = history[-1]
    suite = junitparser.TestSuite("cluster install")
    for number, name in _CASES.items():
        if last and number > last:
            break
        failed = number == last
        suite.add_testcase(_case(name, (text or f"the installation failed: {name}") if failed else ""))
    if not last and Class.INFRASTRUCTURE in history[:-1]:
        suite.add_testcase(_case(_CASES[Class.INFRASTRUCTURE], "an earlier attempt failed: infrastructure"))
    suite.add_testcase(_case("overall", "the installation failed" if last else ""))
    xml = junitparser.JUnitXml()
    xml.add_testsuite(suite)
    return xml


def _case(name: str, failure: str) -> junitparser.TestCase:
    case = junitparser.TestCase(f"install should succeed: {name}")
    if failure:
        case.result = [junitparser.Failure(printable(failure))]
    return case


def printable(text: str, secrets: Sequence[str] = ()) -> str:
    """`text` without secrets and without what XML cannot hold.

    secrets: literals to hide, in addition to what looks like one. Control characters and escape sequences are removed.
    """
    return redact(CONTROLS.sub("", text), secrets)
