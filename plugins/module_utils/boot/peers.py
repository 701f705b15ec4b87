"""BMCs of further hypervisors behind the address of the first one: requests about their machines are passed on.

Part of the program `emulator.py`, which needs only the standard library and flask here. A machine's manager has its UUID, too.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

COLLECTIONS = ("/redfish/v1/Systems", "/redfish/v1/Managers")
"""Paths of the collections in which the other hypervisors' machines are listed, too."""
_CREDENTIALS = "agentlab.credentials"
SECONDS = 900
"""Limit of an answer: to insert a medium takes as long as its download."""
_FORWARDED = ("Content-Type", "Accept", "If-Match", "If-None-Match")
_ANSWERED = ("Content-Type", "Allow", "ETag", "OData-Version", "Retry-After")


class Peers:
    """Hooks of flask. machines: UUID -> name of its hypervisor and URL there; ca: file with the authority of their certificates."""

    def __init__(self, machines: Mapping[str, Sequence[str]], ca: str) -> None:
        self._machines, self._context = machines, ssl.create_default_context(cafile=ca)

    @staticmethod
    def keeping(application: WSGIApplication) -> WSGIApplication:
        """Return the application with its check of passwords, which removes from the request what it checks, for `forward` to find."""

        def kept(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            return application({**environ, _CREDENTIALS: environ.get("HTTP_AUTHORIZATION", "")}, start_response)

        return kept

    def forward(self) -> Any:
        """Answer a request about a machine of another hypervisor with what its BMC answers; None for other requests.

        502 names the hypervisor that does not answer.
        """
        import flask

        found = self._machines.get((flask.request.view_args or {}).get("identity", ""))
        if found is None:
            return None
        hypervisor, at = found[0], urllib.parse.urlsplit(found[1])
        connection = http.client.HTTPSConnection(str(at.hostname), at.port, timeout=SECONDS, context=self._context)
        headers = {"Authorization": flask.request.environ[_CREDENTIALS]}
        headers |= {name: value for name in _FORWARDED if (value := flask.request.headers.get(name))}
        try:
            connection.request(
                flask.request.method, flask.request.full_path.rstrip("?"), flask.request.get_data(), headers
            )
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            message = f"hypervisor {hypervisor}: its BMCs at {at.netloc} do not answer: {error}"
            return flask.Response(
                json.dumps({"error": {"code": "Base.1.0.GeneralError", "message": message}}),
                502,
                mimetype="application/json",
            )
        finally:
            connection.close()
        kept = {name: value for name in _ANSWERED if (value := answer.getheader(name))}
        if location := answer.getheader("Location"):
            kept["Location"] = urllib.parse.urlsplit(location).path
        return flask.Response(body, answer.status, kept)

    def enumerate(self, response: Any) -> Any:
        """Add the machines of other hypervisors to the collections that list all."""
        import flask

        path = flask.request.path.rstrip("/")
        if path in COLLECTIONS and response.status_code == 200:
            listed = response.get_json(force=True)
            listed["Members"] += [{"@odata.id": f"{path}/{identity}"} for identity in self._machines]
            listed["Members@odata.count"] = len(listed["Members"])
            response.set_data(json.dumps(listed))
        return response
