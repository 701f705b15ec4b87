from __future__ import annotations

from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.watcher import BootstrapFailed, BootstrapWatcher
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import AssistedError
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import Cause
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import Diagnosis


class Clock:
    def __init__(self):
        self.now = 0.0

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class World:
    """A service and an API that are up for given spans of seconds."""

    def __init__(self, rest=(0, 0), kube=(0, 0), complete=1e9, statuses=()):
        self.clock, self.rest, self.kube, self.complete, self.statuses = Clock(), rest, kube, complete, dict(statuses)

    def _up(self, span):
        return span[0] <= self.clock.now < span[1]

    def infra_envs(self):
        if not self._up(self.rest):
            raise AssistedError("refused")
        return [{"id": "i"}]

    def clusters(self):
        return [{"id": "c"}]

    def cluster(self, cluster_id):
        status = [s for t, s in sorted(self.statuses.items()) if t <= self.clock.now][-1]
        return {"id": "c", "status": status, "status_info": "", "validations_info": "", "hosts": []}

    def events(self, infra_env_id):
        return []

    def live(self):
        return self._up(self.kube)

    def bootstrap_status(self):
        return "complete" if self.clock.now >= self.complete else None


def watch(world, reachable=True, **more):
    reported = []
    watcher = BootstrapWatcher(
        world,
        world,
        "192.0.2.1",
        lambda m: reported.append(m.text),
        clock=world.clock,
        reachable=lambda host: reachable,
        **more,
    )
    try:
        watcher.run()
    except BootstrapFailed as error:
        return reported, str(error)
    return reported, None


def test_the_usual_workflow():
    world = World(rest=(40, 400), kube=(300, 1e9), complete=350, statuses={0: "insufficient", 100: "installing"})
    reported, error = watch(world)
    assert error is None
    assert reported == [
        "Waiting for cluster install to initialize. Sleeping for 30 seconds",
        "Waiting for cluster install to initialize. Sleeping for 30 seconds",
        "Agent Rest API Initialized",
        "Cluster is not ready for install. Check validations",
        "Cluster installation in progress",
        "Bootstrap Kube API Initialized",
        "Bootstrap configMap status is complete",
        "Bootstrap is complete",
        "cluster bootstrap is complete",
    ]


def test_node_zero_reboots_before_the_api_was_seen():
    world = World(rest=(0, 100), kube=(150, 1e9), complete=160, statuses={0: "installing"})
    reported, error = watch(world)
    assert error is None and reported.count("cluster bootstrap did not complete") == 1


def test_unreachable_host_is_reported_after_two_minutes():
    reported, error = watch(World(), reachable=False, limit=300)
    assert error == "bootstrap process timed out: context deadline exceeded"
    assert reported[0].startswith("Waiting for cluster install") and reported[-1].startswith(
        "Cannot access Rendezvous Host"
    )


def test_stalled_installation_ends():
    __, error = watch(World(rest=(0, 1e9), statuses={0: "insufficient"}), stall=120)
    assert error == "bootstrap process returned error: no progress for 2 minutes"


def test_a_refused_token_ends_it_at_once():
    seen = []

    def diagnose(known):
        seen.append(known.refusal)
        return Diagnosis([Cause(known.refusal, "", 60.0)] if known.refusal else [])

    class Refusing(World):
        def infra_envs(self):
            raise AssistedError("http://x: HTTP 401: expired")

    world = Refusing(rest=(0, 1e9), statuses={0: "insufficient"})
    __, error = watch(world, stall=900, diagnose=diagnose)
    assert error == "bootstrap process returned error: http://x: HTTP 401: expired"
    assert world.clock.now < 200


def test_cancelled():
    __, error = watch(World(rest=(0, 1e9), statuses={0: "installing", 50: "cancelled"}))
    assert error == "bootstrap process returned error: cluster installation was cancelled"
