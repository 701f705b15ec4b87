"""What a pod's spec gives to its container in addition to the image: environment, volumes, and its service account's files."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from ...plugins.module_utils.vocabulary import ClusterNames, Port
from .facts import ClusterFacts
from .kube import Object

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CORE = "/api/v1/namespaces"


class InputError(ValueError):
    """A reference of a pod's spec cannot be resolved; the message is kubelet's."""


class PodInputs:
    """Resolves the references of a pod's spec.

    find: returns the object at an API path, or None; folder: a directory of this pod that has the same path on the host;
    etc: the node's `/etc/kubernetes`; host: the host's root file system.
    """

    def __init__(
        self,
        pod: Object,
        facts: ClusterFacts,
        find: Callable[[str], Object | None],
        *,
        folder: Path,
        etc: Path,
        host: Path,
    ) -> None:
        self.pod, self.facts, self.find = pod, facts, find
        self.folder, self.etc, self.host = folder, etc, host
        self.namespace: str = pod["metadata"]["namespace"]

    def arguments(self, container: Object) -> list[str]:
        """Return options of `podman run` for a container, after writing the files that they mount. Raises `InputError`."""
        shutil.rmtree(self.folder, ignore_errors=True)
        environment = dict(self._environment(container))
        mounts = list(self._mounts(container))
        if self.pod["spec"].get("serviceAccountName"):
            # As kubelet's, which are the service `kubernetes`; here it is the API itself.
            environment |= {
                "KUBERNETES_SERVICE_HOST": ClusterNames.of(self.facts["domain"]).api_int,
                "KUBERNETES_SERVICE_PORT": str(Port.API),
            }
            mounts.append((self._account(), str(ACCOUNT)))
        return [
            *(word for name, value in environment.items() for word in ("--env", f"{name}={value}")),
            *(word for source, target in mounts for word in ("--volume", f"{source}:{target}:ro")),
        ]

    def _environment(self, container: Object) -> Iterator[tuple[str, str]]:
        for entry in container.get("env", ()):
            source = entry.get("valueFrom") or {}
            if "configMapKeyRef" in source:
                text = self._value("configmap", source["configMapKeyRef"])
            elif "secretKeyRef" in source:
                text = self._value("secret", source["secretKeyRef"])
            else:
                text = str(entry.get("value", ""))
            if text is not None:
                yield entry["name"], text

    def _value(self, kind: str, reference: Object) -> str | None:
        data = self._data(kind, reference["name"], optional=reference.get("optional", False))
        if reference["key"] in data:
            return data[reference["key"]].decode()
        if reference.get("optional"):
            return None
        raise InputError(f"couldn't find key {reference['key']} in {kind} {self.namespace}/{reference['name']}")

    def _data(self, kind: str, name: str, *, optional: bool = False) -> dict[str, bytes]:
        found = self.find(f"{_CORE}/{self.namespace}/{kind}s/{name}")
        if found is None:
            if optional:
                return {}
            raise InputError(f'{kind} "{name}" not found')
        if kind == "secret":
            return {key: base64.b64decode(text) for key, text in (found.get("data") or {}).items()}
        return {key: text.encode() for key, text in (found.get("data") or {}).items()}

    def _mounts(self, container: Object) -> Iterator[tuple[Path, str]]:
        volumes = {volume["name"]: volume for volume in self.pod["spec"].get("volumes", ())}
        for mount in container.get("volumeMounts", ()):
            volume = volumes.get(mount["name"])
            if volume is None:
                raise InputError(f'cannot find volume "{mount["name"]}" to mount into container "{container["name"]}"')
            if "hostPath" in volume:
                path = volume["hostPath"]["path"]
                if volume["hostPath"].get("type") == "DirectoryOrCreate":
                    (self.host / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
                if not (self.host / path.lstrip("/")).exists():
                    raise InputError(f'hostPath of volume "{mount["name"]}": {path} does not exist')
                yield Path(path), mount["mountPath"]
            elif "secret" in volume:
                source = volume["secret"]
                data = self._data("secret", source["secretName"], optional=source.get("optional", False))
                yield self._files(mount["name"], data, source.get("items")), mount["mountPath"]
            elif "configMap" in volume:
                source = volume["configMap"]
                data = self._data("configmap", source["name"], optional=source.get("optional", False))
                yield self._files(mount["name"], data, source.get("items")), mount["mountPath"]
            else:
                kind = next((key for key in volume if key != "name"), "nothing")
                raise InputError(f'volume "{mount["name"]}": {kind} is not simulated')

    def _files(self, name: str, data: dict[str, bytes], items: list[Object] | None) -> Path:
        chosen = data
        if items:
            missing = [item["key"] for item in items if item["key"] not in data]
            if missing:
                raise InputError(f'references non-existent key in volume "{name}": {missing[0]}')
            chosen = {item["path"]: data[item["key"]] for item in items}
        return self._written(f"volumes/{name}", chosen)

    def _account(self) -> Path:
        files = {
            "token": (self.etc / "controller-token").read_bytes(),
            "ca.crt": (self.etc / "ca.crt").read_bytes(),
            "namespace": self.namespace.encode(),
        }
        return self._written("serviceaccount", files)

    def _written(self, name: str, files: dict[str, bytes]) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True, mode=0o700)
        for path, data in files.items():
            target = folder / path
            if not target.resolve().is_relative_to(folder.resolve()):
                raise InputError(f"{path} leaves its volume")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch(0o600)
            target.write_bytes(data)
        return folder
