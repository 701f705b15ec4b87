"""The page about dev-scripts (`docs/dev-scripts.md`), made of the tables in `variables`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .variables import LATER, PATTERNS, VARIABLES, Row

_HEAD = """\
<!-- Made by `ci/generate.py` from plugins/module_utils/devscripts/; change it there. -->
# Moving from dev-scripts, and back

    agentlab import devscripts ~/dev-scripts/config_me.sh -o mine.yml
    agentlab deploy mine.yml
    agentlab export devscripts mine.yml -o ~/dev-scripts/config_me.sh

## Import

`import` writes the profile that is equivalent to a configuration, and reports each variable as mapped, ignored or
refused. A refused variable has no counterpart; no profile is written then, because its cluster would be another one.
`--partial` writes the profile without it, with a comment for each.

Nothing in a configuration is run. `export NAME=value`, quotes, comments, `set` and the expansions `$NAME`, `${NAME}`
and `${NAME:-default}` are understood; anything else, such as `$(hostname)`, is an error with file and line. The
exception is `SSH_PUB_KEY=$(cat FILE)`, as dev-scripts' example has it: it names the file.

Of several configurations the later wins. In a job of OpenShift CI, `agentlab import devscripts` without a file reads
the lines in `$DEVSCRIPTS_CONFIG`.

- A scenario sets counts that a configuration cannot change: the `NUM_WORKERS=3` of CI has an effect with TNA and TNF
  only. Without a scenario, topology and sizes follow from the counts, and addresses from DHCP.
- With `OPENSHIFT_RELEASE_IMAGE` the profile has a real payload, dev-scripts' sizes, its pull secret in `WORKING_DIR`
  unless the configuration names one or the image is one of OKD at quay.io, and a way out. Without it, it has the lab
  payload with the lab's sizes.
- dev-scripts inserts the ISO of libvirt's machines into a CD drive, for any `BMC_DRIVER`. agentlab inserts it by
  Redfish; `boot: {mode: cdrom}` is the same as dev-scripts.
- dev-scripts has two kinds of switches. *Boolean* ones are on with `true`; *non-empty* ones with any text, `false`
  too.

## Export

`export` writes what differs from dev-scripts' defaults, each line with the profile's field. Fields without a
counterpart are comments in the file, and are printed. What a profile does not have (`CI_TOKEN`, a release image for a
profile with the lab payload) has to be added. A profile whose fields all have a counterpart, exported and imported
again, gives the same plan.

The role `agentlab.ocp.devscripts_config` writes the file on a host with a checkout. The role `agentlab.ocp.devscripts`
then runs its `make` targets, waits for the installation with agentlab's causes, and validates the cluster.

`agentlab export devscripts --files DIR --cluster NAME` leaves links with the names of dev-scripts to the run of a
cluster, `ocp/NAME/`, with the file `hosts`, and `NAME/ironic_nodes.json` (0600, with the passwords of the BMCs).
Scripts that were written for dev-scripts work with it.

## Variables

The table has the 214 variables that dev-scripts' agent flow reads, at commit 655d6bacdea8 (August 2026).
"""
_LATER = """\
Variables of other programs and flows that configurations set, and newer ones:
"""
_PATTERNS = """\
Families of variables:
"""


def page() -> str:
    """Return the text of the page.

    Tables of all variables, made of the rows in `variables`. `make generate` writes the page.
    """
    counts = {use: sum(row.use == use for row in VARIABLES.values()) for use in ("mapped", "refused", "ignored")}
    total = ", ".join(f"{count} are {use}" for use, count in counts.items())
    parts = [
        _HEAD,
        f"{total}.\n",
        *_table(VARIABLES),
        "",
        _LATER,
        *_table(dict(sorted(LATER.items()))),
        "",
        _PATTERNS,
        *_table(PATTERNS),
    ]
    return "\n".join(parts) + "\n"


def _table(rows: Mapping[str, Row]) -> Iterator[str]:
    yield "| variable | read as | default | | profile field, reason or note |"
    yield "|---|---|---|---|---|"
    for name, row in rows.items():
        kind = row.kind if row.use != "ignored" else ""
        default = f"`{row.default}`" if row.default else ""
        yield f"| `{name}` | {kind} | {default} | {row.use} | {row.text} |"
