"""Requests the page of the rendezvous host as a browser does, through `agentlab forward`: `ci/live_page.py CLUSTER`.

It runs during the stage `wait`, until the page and, with the token of its URL, all hosts of the cluster have been served.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import requests
from ansible_collections.agentlab.ocp.ci.calls import Verbs, exit_status_of, expect, wait_until
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import load_json

SECONDS = 900.0
"""Until the hosts have registered: the stage before has just switched them on."""
POLL_SECONDS = 5.0
_URL = re.compile(r"page in a browser: (\S+)")


def watch(verbs: Verbs) -> None:
    """Wait until the page shows all hosts. Raises `VerbFailed`."""
    planned = [node["name"] for node in verbs.json("plan")["nodes"]]
    with verbs.running("forward", "service") as process:
        found = next(filter(None, map(_URL.search, process.stdout or ())), None)
        expect(found, "forward prints no URL of the page")
        url = str(found and found[1])

        def shown() -> list[str]:
            names = hosts(url)
            if len(names) < len(planned):
                raise ValueError(f"it shows {len(names)} of {len(planned)} hosts")
            return names

        names = wait_until("the page shows all hosts", shown, SECONDS, pause=POLL_SECONDS)
        print(f"ok   the page of {url.partition('#')[0]} shows {', '.join(names)}", flush=True)


def hosts(url: str) -> list[str]:
    """Return the names of the hosts that the page shows. url: as `forward` prints it. Raises OSError, ValueError."""
    page, __, token = url.partition("#token=")
    with requests.Session() as session:
        session.trust_env = False  # a proxy does not reach this host's loopback
        answer = session.get(page, timeout=30)
        answer.raise_for_status()
        if "<title>assisted-service</title>" not in answer.text:
            raise ValueError(f"{page} is another page")
        session.headers["Watcher-Authorization"] = token  # from here on as the page's script

        def read(path: str) -> Any:
            answer = session.get(f"{page}api/assisted-install/v2/clusters{path}", timeout=30)
            answer.raise_for_status()
            return load_json(answer.content, name=answer.url)

        shown = [read(f"/{one['id']}") for one in read("")]
        return sorted(host.get("requested_hostname") or host["id"] for one in shown for host in one.get("hosts") or [])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/live_page.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cluster")
    args = parser.parse_args(argv)
    return exit_status_of(lambda: watch(Verbs(args.cluster, Path.cwd())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
