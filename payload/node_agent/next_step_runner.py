"""`next_step_runner`: get instructions from the service, run them, post the results."""

from __future__ import annotations

import os
import threading
from typing import Any

from . import flags, journal, protocol, steps
from .journal import log
from .protocol import Conversation, Dispatch, Freeze, Identity, ReplyCache, Request, Wait
from .rest import Client


class Driver:
    """Runs the protocol's generators with threads: one for the conversation, one for each step."""

    def __init__(self, client: Client, me: Identity, context: steps.Context) -> None:
        self.client, self.me, self.context = client, me, context
        self.cache = ReplyCache()
        self.stop = threading.Event()
        self._running: set[tuple[str, tuple[str, ...]]] = set()

    def talk(self, conversation: Conversation) -> Any:
        """Execute the requests of a conversation until it ends; return its result."""
        answer: Any = None
        try:
            while True:
                action = conversation.send(answer)
                if isinstance(action, Request):
                    answer = self.client(action, self.me.headers())
                    if not answer.ok:
                        log.warning("%s %s failed: %s", action.method, action.path, answer.reason())
                elif isinstance(action, Wait):
                    answer = self.stop.wait(action.seconds)
                elif isinstance(action, Dispatch):
                    for step in action.steps:
                        self._start(step)
                    answer = None
                elif isinstance(action, Freeze):
                    log.warning("%s", action.reason)
                    threading.Event().wait()
        except StopIteration as end:
            return end.value

    def _start(self, step: dict[str, Any]) -> None:
        """Start a step, unless the same one is still running: with short intervals they would pile up."""
        key = (step["step_type"], tuple(step.get("args") or ()))
        if key in self._running:
            log.info("Step <%s> is not started: the same one is still running", step.get("step_id"))
            return
        if len(self._running) >= protocol.MOST_STEPS:
            log.warning("Step <%s> is not started: %s others are running", step.get("step_id"), len(self._running))
            return
        self._running.add(key)

        def work() -> None:
            try:
                self._step(step)
            finally:
                self._running.discard(key)

        threading.Thread(target=work, name=step.get("step_id"), daemon=True).start()

    def _step(self, step: dict[str, Any]) -> None:
        log.info("Running step <%s> args <%s>", step.get("step_id"), step.get("args"))
        for result in steps.run(step, self.context):
            log.info(
                "Sending step <%s> reply error <%s> exit-code <%s>", step.get("step_id"), result.error, result.exit_code
            )
            # Not stopped by `stop`: results are still posted.
            self.talk(protocol.reply(self.me, self.cache, step, result))
            if protocol.wants_restart(step["step_type"], result):
                self.stop.set()


def watch(stop: threading.Event, marker: str) -> None:
    """End the conversation at the next pause after the file that simulates the reboot has appeared."""
    while not stop.wait(1):
        if os.path.exists(marker):
            log.info("Dry reboot happened, exiting")
            stop.set()


def run(client: Client, me: Identity, context: steps.Context) -> int:
    """Poll until the service requests an exit, or does not answer for long. Return the exit code."""
    driver = Driver(client, me, context)
    if context.dry.enabled:
        threading.Thread(target=watch, args=(driver.stop, context.dry.marker), daemon=True).start()
    driver.talk(protocol.poll(me, driver.cache))
    log.info("next step runner exiting")
    return 0


def setup(options: Any) -> tuple[Client, Identity, steps.Context]:
    """Client, identity and step context from the flags of `agent` and `next_step_runner`. SystemExit: a flag is missing."""
    if not options.url:
        flags.fatal("Must provide a target URL")
    if not options.infra_env_id:
        flags.fatal("infra-env-id must be provided")
    token = os.environ.get("PULL_SECRET_TOKEN", "")
    if not token:
        log.warning("Agent Authentication Token not set")
    try:
        client = Client(options.url, options.insecure, options.cacert)
    except OSError as error:
        flags.fatal(f"Failed to initialize connection: --cacert {options.cacert}: {error}")
    me = Identity(options.infra_env_id, options.host_id, options.agent_version, token, options.interval)
    context = steps.Context(
        client.url,
        me.infra_env_id,
        me.host_id,
        me.agent_version,
        token,
        options.cacert,
        options.insecure,
        flags.dry(options),
    )
    return client, me, context


def main(argv: list[str] | None = None) -> int:
    options = flags.parse(
        "next_step_runner", (*flags.CONNECTION, *flags.logging_flags(text=False), *flags.dry_flags()), argv
    )
    journal.setup(
        "agent_next_step_runner", options.with_text_logging, options.with_journal_logging, options.with_stdout_logging
    )
    client, me, context = setup(options)
    if not me.host_id:
        flags.fatal("host-id must be provided")
    return run(client, me, context)


if __name__ == "__main__":
    raise SystemExit(main())
