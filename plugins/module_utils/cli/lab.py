"""The verbs that run a playbook: one process of ansible-playbook, with the run directory's inventory."""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TextIO

from ..documents import load_yaml, read_file
from ..errors import LabError
from ..packages import PackageError, distribution, missing
from ..plan import overrides
from ..terminal import write_line
from ..vocabulary import Exit, RunFile
from . import day2, failure, orphans, results, run_page
from .cluster import NO_ROOT, absent, find, lacks_root
from .output import message
from .places import DEFAULT_PROFILE, PLAYBOOKS, PROFILES, ROOT, add_arguments, add_override, program, run_dir
from .scratch import scratch
from .stages import add_stages, restore, stages_until, tags, unfinished_stage
from .verbs import LAB, Trait

LOCAL = "localhost"
_libc = ctypes.CDLL(None)
_ANSIBLE_INTERRUPTED = 99
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Inputs(NamedTuple):
    """The content of an inventory, and variables with the highest precedence.

    inventory: YAML; variables: for `ansible-playbook -e`, all of them literal, without templates.
    """

    inventory: str
    variables: dict[str, str | bool | dict[str, str] | list[str]]


def _traits(verb: str) -> Trait:
    """Return what holds for a verb, by the name of its playbook."""
    return LAB[verb.replace("_", "-")].traits


def _parser(verb: str) -> argparse.ArgumentParser:
    name = verb.replace("_", "-")
    traits = _traits(verb)
    parser = argparse.ArgumentParser(
        prog=f"agentlab {name}", description=f"{LAB[name].sentence} Runs playbooks/{verb}.yml."
    )
    add_arguments(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--check", action="store_true", help="change nothing, only report what would change")
    results.add(group, verb)
    parser.add_argument("--diff", action="store_true", help="show changes of files")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="increase verbosity (repeatable)")
    parser.add_argument(
        "-e", "--extra-vars", action="append", default=[], metavar="VARS", help="variables, as for ansible-playbook"
    )
    if Trait.ADOPTS in traits:
        parser.add_argument(
            "--adopt", action="store_true", help="take over the cluster of another user or run directory"
        )
    if Trait.MACHINES in traits:
        add_override(parser)
    if verb == "validate":
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="NAME",
            help="run only this test of the profile (repeatable)",
        )
    if verb == "add_nodes":
        day2.add_arguments(parser)
    if verb == "destroy":
        parser.add_argument("--all", action="store_true", help="every cluster of this checkout that is yours")
    if verb == "deploy":
        add_stages(parser)
        parser.add_argument("--no-gather", action="store_true", help="do not collect logs after a failure")
    return parser


def run(verb: str, argv: list[str]) -> int:
    """Run the playbook of `verb` and return its exit status; collect diagnostics after a failed installation.

    verb: of a playbook; argv: its arguments. `Exit.USAGE` for an invalid profile, plan or option, `Exit.FAILED` for a
    cluster that does not exist, `Exit.INTERRUPTED` after Ctrl-C; otherwise the status of Ansible, negative if a signal
    ended it.
    """
    args = _parser(verb).parse_args(argv)
    if getattr(args, "all", False):
        # argparse accepts abbreviations of --cluster, too.
        named = any(len(word) > 4 and "--cluster".startswith(word.partition("=")[0]) for word in argv)
        if args.profile or args.adopt or named:
            write_line(
                "agentlab: destroy --all takes no profile, --cluster or --adopt: it is for your own clusters",
                sys.stderr,
            )
            return Exit.USAGE
        options = ["--check"] * args.check + ["--diff"] * args.diff + ["-v"] * args.verbose
        return _destroy_all([*options, *(word for given in args.extra_vars for word in ("-e", given))])
    traits = _traits(verb)
    if Trait.CLUSTER in traits and not args.profile and (status := absent(args.cluster)):
        return status
    directory = run_dir(args.cluster)
    if (restored := getattr(args, "snapshot", None)) and (status := restore(args, directory)):
        return status
    if verb == "add_nodes":
        day2.sort_out(args, directory)
    with scratch() as (temporary, lock):
        inventory, settings = temporary / RunFile.INVENTORY, temporary / "variables.yml"
        try:
            components = dict(overrides.pair(text) for text in getattr(args, "override", ()))
            begun = [unfinished_stage(directory)] if restored else []
            stages = stages_until(getattr(args, "stop_after", None), *begun)
            text, variables = inputs(
                verb, args.cluster, args.profile, adopt=getattr(args, "adopt", False), components=components
            )
            if only := getattr(args, "only", []):
                variables["agentlab_validate_only"] = only
            if verb == "add_nodes":
                variables |= day2.variables(args, directory)
            inventory.write_text(text, encoding="utf-8")
            if verb == "setup":
                bindings = importlib.util.find_spec("libvirt") is not None
                plain = bindings and not args.verbose and not args.extra_vars
                if _is_set_up(here=text == _this_host(), plain=plain):
                    write_line("setup: all packages are already installed")
                    return Exit.OK
                variables["agentlab_setup_bindings"] = not bindings
        except (LabError, ValueError, OSError, PackageError) as error:
            write_line(message(error), sys.stderr)
            return Exit.USAGE
        settings.write_text(_literal(variables), encoding="utf-8")
        orphans.end(directory)
        command = ["ansible-playbook", "-i", str(inventory), "-e", f"@{settings}"]
        command += [option for given in args.extra_vars for option in ("-e", given)]
        command += ["--check"] * args.check + ["--diff"] * args.diff + ["-" + "v" * args.verbose] * bool(args.verbose)
        (directory / failure.FILE).unlink(missing_ok=True)
        name, selected = verb.replace("_", "-"), tags(stages) if verb == "deploy" else []
        with results.print_result(verb, directory, getattr(args, "output", None)) as out:
            status = _ansible([*command, *selected, str(PLAYBOOKS / f"{verb}.yml")], directory, temporary, lock, out)
            if status == Exit.INTERRUPTED:
                run_page.write_after_run(directory)
                write_line(f"\ninterrupted; to resume: {program()} {name} --cluster {args.cluster}", sys.stderr)
                return status
            if (
                status
                and Trait.GATHERS in traits
                and not args.check
                and not getattr(args, "no_gather", False)
                and _booted(directory)
            ):
                write_line(f"\n{name} failed; collecting diagnostics")
                _ansible([*command, str(PLAYBOOKS / "gather.yml")], directory, temporary, lock, out)
            failure.explain(directory)
            last = getattr(args, "stop_after", None) or verb
            if not status and not args.check and Trait.INSTALLS in traits & _traits(last):
                _conclude(directory)
            if not args.check and Trait.PAGE in traits:
                run_page.write_after_run(directory)
            return status


def _destroy_all(options: list[str]) -> int:
    """Destroy each cluster of this checkout that is the caller's; return the status of the first one that failed.

    Clusters of others, and those of which this is not known, stay, each with a message; they count as failures.
    """
    parent = run_dir("x").parent
    found = sorted(path.parent.name for path in parent.glob(f"*/{RunFile.PLAN}")) if parent.is_dir() else []
    if not found:
        write_line(f"there is no cluster in {parent}")
    first = 0
    for name in found:
        try:
            find(name).check_remote_owner()
        except (LabError, ValueError, OSError) as error:
            write_line(f"agentlab: {name} stays: {message(error)}", sys.stderr)
            status = int(Exit.FAILED)
        else:
            write_line(f"destroy {name}")
            status = run("destroy", ["--cluster", name, *options])
            if status == Exit.INTERRUPTED:
                return status
        first = first or status
    return first


def inputs(
    verb: str,
    cluster: str,
    profile: str | None = None,
    *,
    adopt: bool = False,
    components: Mapping[str, str] = MappingProxyType({}),
) -> Inputs:
    """Return what the playbook of `verb` needs to run for `cluster`, with a profile or with the existing plan of the run directory.

    adopt: take over a cluster of another owner; components: their replacements. Raises `ValueError` for an invalid
    profile or plan, and for a cluster of another, and `OSError`.
    """
    from ..plan import rundir

    directory = run_dir(cluster)
    variables: dict[str, str | bool | dict[str, str] | list[str]] = {
        "agentlab_cluster": cluster,
        "agentlab_run_dir": str(directory),
        "agentlab_plan_profiles": str(PROFILES),
        "agentlab_plan_adopt": adopt,
    }
    name = _profile(verb, profile, directory)
    if components:
        variables["agentlab_plan_overrides"] = dict(components)
        name = name or str(directory / rundir.PROFILE)
    if name:
        variables["agentlab_profile"] = name
    return Inputs(_inventory(verb, directory, name, cluster, adopt, components), variables)


def _profile(verb: str, given: str | None, directory: Path) -> str | None:
    from ..plan import profile, rundir

    if given:
        # Ansible resolves relative paths against the playbook.
        path = profile.find(given, PROFILES)
        return str(path.absolute()) if path else given
    if (directory / rundir.PLAN).exists() or verb != "deploy":
        return None
    return DEFAULT_PROFILE


def _inventory(
    verb: str, directory: Path, name: str | None, cluster: str, adopt: bool, components: Mapping[str, str]
) -> str:
    """Return the run's inventory. It validates the profile before Ansible starts, which takes a second.

    A setup needs no plan, and cannot enter a sandbox, which is created later.
    """
    from .. import contradictions
    from ..plan import rundir

    if verb == "setup":
        known = name or (directory / rundir.PLAN).exists()
        plan = contradictions.prepare(directory, name, PROFILES, cluster, refuse=False)[0] if known else None
        if plan is None or plan["hypervisor"]["kind"] != "ssh":
            return _this_host()
    else:
        plan = contradictions.prepare(
            directory,
            name,
            PROFILES,
            cluster,
            here=Trait.MACHINES in _traits(verb),
            files=Trait.FILES in _traits(verb),
            adopt=adopt,
            components=components,
        )[0]
    if verb not in ("configure", "gather") and plan["hypervisor"]["kind"] != "ssh" and lacks_root():
        raise LabError(f"agentlab: {NO_ROOT}")
    return rundir.dump(rundir.inventory(plan, directory))


def _this_host() -> str:
    """Return the inventory of a setup of this host alone."""
    from ..plan import rundir

    local = {"ansible_connection": "local", "ansible_python_interpreter": rundir.Literal(sys.executable)}
    return rundir.dump({"hypervisors": {"hosts": {LOCAL: local}}})


def _is_set_up(*, here: bool, plain: bool) -> bool:
    """Return whether a setup has nothing to do. Raises `LabError` if it cannot install packages.

    here: it is for this host; plain: its result depends on packages alone.
    """
    if here and plain and not missing_packages():
        return True
    if here and lacks_root():
        raise LabError(f"agentlab: {NO_ROOT}")
    return False


def missing_packages() -> list[str]:
    """Return what the role setup must install here; without Ansible, because usually nothing is missing.

    They are names of the distribution's packages, from roles/setup/vars/main.yml. Raises `PackageError`, `ValueError`
    or `OSError`.
    """
    path = ROOT / "roles/setup/vars/main.yml"
    tables = load_yaml(read_file(path), name=str(path))
    table, kubectl = tables["agentlab_setup_packages"], tables["agentlab_setup_kubectl"]
    host = distribution(table)
    return missing([*table[host], *kubectl.get(host, ())])


def _literal(variables: Mapping[str, str | bool | dict[str, str] | list[str]]) -> str:
    """Return variables as YAML of which Ansible evaluates nothing: a path may look like a template."""
    from ..plan import rundir

    def literal(value: str | bool | dict[str, str] | list[str]) -> object:
        if isinstance(value, list):
            return [rundir.Literal(text) for text in value]
        if isinstance(value, dict):
            return {name: rundir.Literal(text) for name, text in value.items()}
        return rundir.Literal(value) if isinstance(value, str) else value

    return rundir.dump({name: literal(value) for name, value in variables.items()})


def environment(directory: Path) -> dict[str, str]:
    """Return the variables that Ansible gets in addition to those of this process; directory: of the run."""
    return {
        "ANSIBLE_CONFIG": os.environ.get("ANSIBLE_CONFIG", str(ROOT / "ansible.cfg")),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        # As if not set: with it, Python reads each module byte by byte from its standard input: a tenth of a second and more.
        "PYTHONUNBUFFERED": "",
        **orphans.mark(directory),
    }


def _ansible(command: list[str], directory: Path, temporary: Path, lock: int, out: TextIO | None = None) -> int:
    """Run Ansible, with its output in `out`; leftovers of killed processes are in `temporary`, which is in use while `lock` is held."""
    variables = {
        **os.environ,
        **environment(directory),
        "AGENTLAB_FAILURE": str(directory / failure.FILE),
        "AGENTLAB_WRITE_PAGE": "false",
        "ANSIBLE_LOCAL_TEMP": str(temporary),
        "TMPDIR": str(temporary),
    }
    # A signal that comes while Ansible is being started waits until it can be passed on.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        process = subprocess.Popen(
            # Unbuffered: a pipe shows the progress at once, and a pipe without a reader is noticed.
            [sys.executable, "-u", str(Path(sys.executable).parent / command[0]), *command[1:]],
            env=variables,
            pass_fds=[lock],
            preexec_fn=_interrupted_with_us,
            stdout=out,
        )
        # Ctrl-C also interrupts Ansible, which stops its tasks; if killed, it would leave them behind.
        handlers = dict.fromkeys(_ENDING, lambda *__: process.send_signal(signal.SIGINT))
        handlers[signal.SIGINT] = lambda *__: None
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    try:
        run_page.load()  # for the end, while Ansible runs
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if status < 0 and status != -signal.SIGINT:
        orphans.end(directory, own=True)
    return Exit.INTERRUPTED if status in (_ANSIBLE_INTERRUPTED, -signal.SIGINT) else status


def _interrupted_with_us() -> None:
    """Let the kernel interrupt this process when its parent is killed (prctl(2), PR_SET_PDEATHSIG); let signals through."""
    _libc.prctl(1, signal.SIGINT, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def _booted(directory: Path) -> bool:
    from ..boot.sequence import FILE
    from ..plan import rundir

    try:
        return (Path(rundir.load_plan(directory)["hypervisor"]["state_dir"]) / FILE).exists()
    except ValueError:
        return False


def _conclude(directory: Path) -> None:
    """Print what was installed, and how to reach it from here."""
    from ..plan import rundir
    from ..plan.access import Access, closing_lines

    client = next((name for name in ("kubectl", "oc") if shutil.which(name)), "kubectl")
    lines = closing_lines(Access(rundir.load_plan(directory), directory, program()), client=client)
    write_line("\n" + "\n".join(lines))


def __getattr__(name: str) -> Callable[[list[str]], int]:
    """Each lab verb is a function of this module that takes the arguments."""
    if (PLAYBOOKS / f"{name}.yml").is_file():
        return partial(run, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
