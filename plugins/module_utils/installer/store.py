"""Assets, in the order of what they are made from; what is on disk or in the state file is not made again.

The rules are those of openshift-install's asset store. What differs: inputs stay where they are, so "it is on disk"
is not a criterion. An input counts as changed when its hash isn't the recorded one.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..coreos.errors import CoreosError
from ..files import explain
from ..log import Log
from . import state as state_file
from .errors import InstallerError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


class Build(Protocol):
    """What the store needs of a run, `build.Build`, which it hands to the functions of assets."""

    def title(self, name: str) -> str:
        """Return what the release calls the asset `name`."""


@dataclass(frozen=True)
class Asset:
    """One asset.

    name: what messages call it; key: its key in the state file; needs: names of what it is made from.
    generate(build) makes its value: anything JSON can hold, or None. load(build, texts) reads it from `sources`, file names
    relative to the directory or a pattern `folder/*`. files(value) gives what to write: path -> (content, mode).
    follow: the value is what `generate` returns now; what is made from it is made again when the last run's was another.
    removable: when its files are deleted, it is, too, unless the last run consumed its inputs.
    keep: what is on disk wins over what it would be made from, unless that has changed since.
    volatile: generated each time; persist(value) is what the state file stores anyway.
    ahead: takes long, and is made of assets with `ahead` only: a thread generates it while others are made.
    """

    name: str
    key: str
    needs: tuple[str, ...] = ()
    generate: Callable[[Any], Any] | None = None
    load: Callable[[Any, dict[str, bytes]], Any] | None = None
    sources: tuple[str, ...] = ()
    files: Callable[[Any], dict[str, tuple[bytes, int]]] | None = None
    possible: Callable[[Peek], bool] = lambda _peek: True
    follow: bool = False
    removable: bool = False
    keep: bool = False
    volatile: bool = False
    ahead: bool = False
    persist: Callable[[Any], Any] = lambda _value: None


@dataclass
class _FoundState:
    value: Any
    source: str  # "disk", "state" or "" (to be made)
    dirty: list[str] = field(default_factory=list)  # changed inputs that it is made from


class Store:
    """Fetches assets for one directory. `build` is handed to their functions; it reads other assets through `value`.

    assets: the whole table; directory: the `--dir`. It reads the state file at once, which raises `StateError`.
    """

    def __init__(self, assets: Iterable[Asset], directory: Path, log: Log) -> None:
        self.assets = {asset.name: asset for asset in assets}
        self.directory, self.log = directory, log
        self.state = state_file.load(directory)
        self.own: dict[str, Any] = self.state.setdefault(state_file.OWN, {})
        # Files on disk after the last run, and those last generated from the inputs: they differ after edits.
        self.hashes: dict[str, str] = self.own.setdefault("hashes", {})
        self.made: dict[str, str] = self.own.setdefault("made", {})
        # Files that a killed run was about to write: they do not count as edits, and are generated again.
        self._unfinished: dict[str, str] = self.own.get("writing", {})
        self._left: set[str] = set()
        self._found: dict[str, _FoundState] = {}
        self._values: dict[str, Any] = {}
        self._ahead: dict[str, Future[Any]] = {}
        self._read: dict[str, dict[str, bytes]] = {}

    def value(self, name: str) -> Any:
        """The value of an asset that was fetched before.

        None when there is none of it: an optional input that is absent. Raises `KeyError` before `fetch`.
        """
        return self._ahead[name].result() if name in self._ahead else self._values[name]

    def fetch(self, name: str, build: Build, following: Iterable[str] = ()) -> Any:
        """Load or make `name` and all that it is made from. Raises `InstallerError` with the chain of assets.

        What is on disk or in the state is not made again, unless an input of it has changed. An edited file that would
        have to be made again is an error. following: what is fetched after it, so that threads can begin with that.
        """
        try:
            self._load(name, build)
            self._begin(following, build)
            return self._fetch(name, build)
        except InstallerError as error:
            raise InstallerError(f"failed to fetch {name}: {error}") from error
        except ValueError as error:
            raise InstallerError(f"failed to fetch {name}: {error}") from error

    def _begin(self, following: Iterable[str], build: Build) -> None:
        """Let threads make what is `ahead` of the assets that are loaded, and of `following`."""
        for name in following:
            with suppress(ValueError):  # which its own fetch raises
                self._load(name, build)
        for name, asset in self.assets.items():
            if not asset.ahead or asset.generate is None or name in self._ahead or name not in self._found:
                continue
            if not self._found[name].source and all(need in self._ahead for need in asset.needs):
                self._ahead[name] = self._threads.submit(asset.generate, build)

    @functools.cached_property
    def _threads(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(2)

    def _texts(self, asset: Asset) -> dict[str, bytes]:
        if asset.name not in self._read:
            texts = {}
            for source in asset.sources:
                if "*" in source:
                    paths = sorted(path for path in self.directory.glob(source) if path.is_file())
                else:
                    paths = [self.directory / source]
                for path in paths:
                    try:
                        content = path.read_bytes()
                    except FileNotFoundError:
                        if path.is_symlink():
                            raise InstallerError(
                                f"failed to load {path.name} file: {path} is a link to {path.readlink()}, which does not exist"
                            ) from None
                        continue
                    except OSError as error:
                        raise InstallerError(f"failed to load {path.name} file: {explain(error)}") from error
                    where = str(path.relative_to(self.directory))
                    if self._unfinished.get(where) == _sha256(content):
                        self._left.add(asset.name)
                    else:
                        texts[where] = content
            self._read[asset.name] = texts
        return self._read[asset.name]

    def _load(self, name: str, build: Build) -> _FoundState:
        if name in self._found:
            return self._found[name]
        asset = self.assets[name]
        dirty: list[str] = []
        for need in asset.needs:
            parent = self._load(need, build)
            dirty += [item for item in parent.dirty if item not in dirty]
        if asset.follow:
            found = _FoundState(asset.generate(build) if asset.generate else None, "state")
            if asset.key in self.state and self.state[asset.key] != found.value:
                found.dirty = [f"the {name.lower()}"]
            self._found[name] = found
            return found
        value, on_disk, texts = None, False, {}
        if asset.load is not None:
            texts = self._texts(asset)
            try:
                value = asset.load(build, texts) if texts else None
                on_disk = value is not None
            except ValueError as error:
                # Unedited files of other inputs may not match the new ones: they are generated again.
                if not dirty or self.made.get(asset.key) != _digest(texts):
                    raise InstallerError(f'failed to load asset "{name}": {error}') from error
                on_disk = True
        recorded, made = self.hashes.get(asset.key), self.made.get(asset.key)
        changed = on_disk and _digest(texts) != recorded
        edited = on_disk and recorded is not None and _digest(texts) != made
        found = _FoundState(None, "")
        if dirty and asset.generate is not None and asset.possible(Peek(self._found)):
            if edited:
                raise InstallerError(
                    f"{_listing(dirty)} and {_listing(texts)} have both changed since {_listing(texts)} was made: to have it made "
                    f"again remove it, to keep it as it is undo the change of {_listing(dirty)}"
                )
            if on_disk and recorded is None and not asset.keep:
                self.log.warning(
                    f"Discarding the {name} that was provided in the target directory because its dependencies are "
                    "dirty and it needs to be regenerated"
                )
            if on_disk and recorded is None and asset.keep:
                found = _FoundState(value, "disk")
        elif on_disk and changed:
            self.log.debug(f"Using {name} loaded from target directory")
            found = _FoundState(value, "disk")
        elif not on_disk and made is not None and recorded != made:
            self.log.debug(f"{name} was edited and is gone, so it is made again")
            found.dirty = [*asset.sources]
        elif not on_disk and recorded is not None and asset.removable and not self.own.get("consumed"):
            found = _FoundState(None, "disk", [*asset.sources])
        elif asset.key in self.state and not asset.volatile:
            self.log.debug(f"Using {name} loaded from state file")
            found = _FoundState(self.state[asset.key], "state")
        elif on_disk:
            found = _FoundState(value, "disk")
        found.dirty += dirty + (list(texts) if found.source == "disk" and changed else [])
        self._found[name] = found
        return found

    def _fetch(self, name: str, build: Build) -> Any:
        if name in self._values:
            return self._values[name]
        asset, found = self.assets[name], self._found[name]
        if found.source:
            self._values[name] = found.value
            return found.value
        for need in asset.needs:
            try:
                self._fetch(need, build)
            except ValueError as error:
                raise InstallerError(f'failed to fetch dependency of "{name}": {error}') from error
        if asset.generate is None:
            self._values[name] = None
            return None
        self.log.debug(f"Generating {name}...")
        try:
            self._values[name] = self._ahead[name].result() if name in self._ahead else asset.generate(build)
        except (ValueError, CoreosError) as error:
            raise InstallerError(f'failed to generate asset "{build.title(name)}": {error}') from error
        return self._values[name]

    def outputs(self, names: Iterable[str]) -> dict[str, tuple[bytes, int]]:
        """The files of the fetched assets `names`: relative path -> (content, mode).

        Assets without files, or without a value, have none. Modes are permission bits.
        """
        found: dict[str, tuple[bytes, int]] = {}
        for name in names:
            asset = self.assets[name]
            if asset.files is not None and self._values.get(name) is not None:
                found |= asset.files(self._values[name])
        return found

    def remade(self) -> list[str]:
        """Names of the assets that were generated in this run although their files are in the directory."""
        return [
            name
            for name in self._values
            if not self._found[name].source and (self._read.get(name) or name in self._left)
        ]

    def announce(self, files: dict[str, tuple[bytes, int]]) -> None:
        """Note in the state file which of `files` this run made, before they are written.

        files: as `outputs` returns them. After a run that was killed, they do not count as edits.
        """
        loaded = [name for name, found in self._found.items() if found.source]
        kept = {path for name in loaded for path in self._read.get(name, ())}
        kept |= self.outputs(name for name in loaded if self._found[name].source == "disk").keys()
        self.own["writing"] = {path: _sha256(content) for path, (content, __) in files.items() if path not in kept}
        state_file.save(self.directory, self.state)

    def remember(self) -> None:
        """Put the values of this run, and the hashes of their files, into the state and save it.

        Volatile assets keep only what their `persist` returns. To be called after the files were written.
        """
        self.own.pop("writing", None)
        self._unfinished = {}
        for name, value in self._values.items():
            asset = self.assets[name]
            if value is not None:
                kept = asset.persist(value) if asset.volatile else value
                if kept is not None:
                    self.state[asset.key] = kept
            elif self._found[name].source == "disk":
                self.state.pop(asset.key, None)
            if asset.load is None:
                continue
            source, before = self._found[name].source, self._read.pop(name, None)
            # A file that was discarded and is not written either does not represent the value.
            texts = {} if source == "" and asset.files is None else self._texts(asset)
            # What the state stood for may have been written only now.
            if source == "state" and (before or not texts):
                continue
            hashes = [self.hashes, *([self.made] if source != "disk" else [])]
            for known in hashes:
                if texts:
                    known[asset.key] = _digest(texts)
                else:
                    known.pop(asset.key, None)
        state_file.save(self.directory, self.state)

    def withdraw(self) -> None:
        """Remove the state, and the files that are as the last run made them; inputs and edited files stay.

        For a program with a state of its own in this directory: without ours, these files would count as a user's.
        """
        if not self.made:
            return
        for asset in self.assets.values():
            texts = self._texts(asset) if asset.load and asset.generate else {}
            if texts and self.made.get(asset.key) == _digest(texts):
                for path in texts:
                    (self.directory / path).unlink()
        (self.directory / state_file.FILENAME).unlink()

    def inputs(self) -> dict[str, list[str]]:
        """Return the name of each asset of this run in the directory -> its files there.

        Assets that load nothing are left out; [] is one whose files are absent.
        """
        return {name: list(self._texts(self.assets[name])) for name in self._found if self.assets[name].load}


class Peek:
    """What `possible` may ask for: the values found so far, before anything is made."""

    def __init__(self, found: dict[str, _FoundState]) -> None:
        self._found = found

    def __call__(self, name: str) -> Any:
        return self._found[name].value


def _digest(texts: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(texts):
        total.update(f"{name}\0{len(texts[name])}\0".encode() + texts[name])
    return total.hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _listing(names: Iterable[str]) -> str:
    return " and ".join(names)
