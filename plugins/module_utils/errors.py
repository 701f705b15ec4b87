"""Errors that several libraries share. The text of each is one whole message for the user: what is wrong, and what would be right.

An error that one library alone raises is defined there.
"""

from __future__ import annotations


class AgentlabError(Exception):
    """Something that the user can act on; modules and verbs end with its text, without a traceback.

    Catch it where a run ends; between, catch the errors of one library.
    """


class LabError(AgentlabError, RuntimeError):
    """A machine, network, service or sandbox of the lab cannot be made, started or removed.

    It is a `RuntimeError`, too. The text names the object, and the program or setting that would help.
    """


class AssistedError(AgentlabError):
    """The assisted service did not answer, or refused; the text names the URL and the reason."""


class ClusterError(AgentlabError):
    """The OpenShift API did not answer, or refused; the text has the request and why it failed."""


class FatalError(AgentlabError):
    """The installation that a wait follows cannot continue.

    A wait turns it into its own error, with the exit code of that phase.
    """
