"""`agent`: register this host with the assisted service and run the next step runner, repeatedly."""

from __future__ import annotations

import os
import time

from . import flags, host, journal, next_step_runner, protocol
from .journal import log
from .next_step_runner import Driver
from .protocol import Identity
from .rest import Client
from .steps import Context

RUNNER = "next-step-runner"
ENVIRONMENT = (
    "PULL_SECRET_TOKEN", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
VOLUMES = (
    "/dev:/dev:rw", "/opt:/opt:rw", "/run/systemd/journal/socket:/run/systemd/journal/socket",
    "/var/log:/var/log:rw", "/run/media:/run/media:rw", "/etc/pki:/etc/pki",
)  # fmt: skip


def container(request: dict[str, str], context: Context) -> list[str]:
    """The podman command that runs `next_step_runner` of the image `request["agent_version"]`."""
    image = request["agent_version"]
    volumes = [*VOLUMES, *([f"{context.cacert}:{context.cacert}"] if context.cacert else [])]
    return [
        "podman", "run", "--rm", "--privileged", "--pid=host", "--uts=host", "--net=host", "--pids-limit=0",
        *(word for volume in volumes for word in ("-v", volume)),
        *(word for name in ENVIRONMENT for word in ("--env", name)),
        "--name", RUNNER, image, "next_step_runner",
        "--url", context.url,
        "--infra-env-id", request["infra_env_id"],
        "--host-id", request["host_id"],
        "--agent-version", image,
        f"--insecure={str(context.insecure).lower()}",
        *(("--cacert", context.cacert) if context.cacert else ()),
    ]  # fmt: skip


def run_steps(request: dict[str, str], client: Client, me: Identity, context: Context) -> int:
    """Run the next step runner of the image that the service names. Return its exit code.

    For the image that we run from, the runner is called directly, without a container.
    Only another image, as after `upgrade-agent`, is started with podman. The service does not notice the difference.
    """
    if request["agent_version"] in ("", me.agent_version):
        me = Identity(request["infra_env_id"], request["host_id"], me.agent_version, me.token, me.interval)
        context.infra_env_id, context.host_id = me.infra_env_id, me.host_id
        return next_step_runner.run(client, me, context)
    host.run(["podman", "rm", "-i", "-f", RUNNER], host=True)
    command = container(request, context)
    log.info("Running next step runner. Command: %s", " ".join(command))
    result = host.run(command, timeout=None, host=True)
    if result.exit_code:
        log.error("Next step runner has crashed (exit code %s): %s", result.exit_code, result.error[-2000:])
    return result.exit_code


def serve(client: Client, me: Identity, context: Context) -> None:
    """Register and run steps indefinitely; in a dry run until the fake reboot."""
    driver = Driver(client, me, context)
    while True:
        command = driver.talk(protocol.register(me))
        try:
            failed = run_steps(protocol.runner_request(command), client, me, context)
        except Exception as error:  # treated as a crash of the runner's container
            log.exception("Next step runner failed: %s", error)
            failed = 1
        if failed:
            delay = protocol.retry_delay(command)
            log.error("Next step runner will be restarted in %g s", delay)
            time.sleep(delay)
        elif context.dry.enabled and os.path.exists(context.dry.marker):
            log.info("Dry reboot happened, exiting")
            return
        else:
            log.info("Next step runner exited, going to re-register host")


def main(argv: list[str] | None = None) -> int:
    options = flags.parse("agent", (*flags.CONNECTION, *flags.logging_flags(text=True), *flags.dry_flags()), argv)
    journal.setup("agent", options.with_text_logging, options.with_journal_logging, options.with_stdout_logging)
    client, me, context = next_step_runner.setup(options)
    if context.dry.enabled:
        me.host_id = context.host_id = context.dry.host_id
    if not me.host_id:
        from .machine_uuid import machine_uuid

        me.host_id = context.host_id = machine_uuid()
    log.info("agent %s of host %s connects to %s", me.agent_version, me.host_id, client.url)
    serve(client, me, context)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
