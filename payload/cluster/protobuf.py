"""Reads objects in Kubernetes' protobuf format, in which kubectl sends built-in kinds.

Format: the bytes `k8s` and zero, then a `runtime.Unknown` message with the object's own message in it. Field numbers are
those of the published `generated.proto` files (k8s.io/api, k8s.io/apimachinery). Only the kinds that users create or
approve by hand are supported; responses are always JSON.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

MAGIC = b"k8s\x00"
CONTENT_TYPE = "application/vnd.kubernetes.protobuf"

# A field is (name, type); a type is string, bytes, int, bool, time, map (of strings), bytes-map, or a message's name.
# A leading * marks a repeated field.
_MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "raw")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        7: ("generation", "int"),
        8: ("creationTimestamp", "time"),
        9: ("deletionTimestamp", "time"),
        11: ("labels", "map"),
        12: ("annotations", "map"),
        13: ("ownerReferences", "*OwnerReference"),
        14: ("finalizers", "*string"),
    },
    "OwnerReference": {
        1: ("kind", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("controller", "bool"),
        7: ("blockOwnerDeletion", "bool"),
    },
    "ObjectReference": {
        1: ("kind", "string"),
        2: ("namespace", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("resourceVersion", "string"),
        7: ("fieldPath", "string"),
    },
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "map"),
        3: ("binaryData", "bytes-map"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "bytes-map"),
        3: ("type", "string"),
        4: ("stringData", "map"),
        5: ("immutable", "bool"),
    },
    "NamespaceSpec": {1: ("finalizers", "*string")},
    "NamespaceStatus": {1: ("phase", "string")},
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    "ServiceAccount": {1: ("metadata", "ObjectMeta")},
    "EventSource": {1: ("component", "string"), 2: ("host", "string")},
    "Event": {
        1: ("metadata", "ObjectMeta"),
        2: ("involvedObject", "ObjectReference"),
        3: ("reason", "string"),
        4: ("message", "string"),
        5: ("source", "EventSource"),
        6: ("firstTimestamp", "time"),
        7: ("lastTimestamp", "time"),
        8: ("count", "int"),
        9: ("type", "string"),
        12: ("action", "string"),
        14: ("reportingComponent", "string"),
        15: ("reportingInstance", "string"),
    },
    "LeaseSpec": {
        1: ("holderIdentity", "string"),
        2: ("leaseDurationSeconds", "int"),
        3: ("acquireTime", "time"),
        4: ("renewTime", "time"),
        5: ("leaseTransitions", "int"),
    },
    "Lease": {1: ("metadata", "ObjectMeta"), 2: ("spec", "LeaseSpec")},
    "CertificateSigningRequestSpec": {
        1: ("request", "bytes"),
        2: ("username", "string"),
        3: ("uid", "string"),
        4: ("groups", "*string"),
        5: ("usages", "*string"),
        7: ("signerName", "string"),
        8: ("expirationSeconds", "int"),
    },
    "CertificateSigningRequestCondition": {
        1: ("type", "string"),
        2: ("reason", "string"),
        3: ("message", "string"),
        4: ("lastUpdateTime", "time"),
        5: ("lastTransitionTime", "time"),
        6: ("status", "string"),
    },
    "CertificateSigningRequestStatus": {
        1: ("conditions", "*CertificateSigningRequestCondition"),
        2: ("certificate", "bytes"),
    },
    "CertificateSigningRequest": {
        1: ("metadata", "ObjectMeta"),
        2: ("spec", "CertificateSigningRequestSpec"),
        3: ("status", "CertificateSigningRequestStatus"),
    },
}
_STAMP = {1: ("seconds", "int"), 2: ("nanos", "int")}
_ENTRY = {1: ("key", "string"), 2: ("value", "raw")}
# The last second that RFC 3339 can write, 9999-12-31T23:59:59Z.
_LAST = 253402300799


def decode(data: bytes) -> dict[str, Any]:
    """Return the object as in JSON; raise ValueError for other kinds and invalid messages."""
    if not data.startswith(MAGIC):
        raise ValueError("the body is not a Kubernetes protobuf message")
    unknown = _message(data[len(MAGIC) :], _MESSAGES["Unknown"])
    kind = unknown.get("typeMeta", {}).get("kind", "")
    if kind not in _MESSAGES or kind in ("Unknown", "TypeMeta"):
        raise ValueError(
            f"kind {kind!r} is not supported as protobuf; send it as JSON, for example with kubectl create -f"
        )
    return {**unknown["typeMeta"], **_message(unknown.get("raw", b""), _MESSAGES[kind])}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("the protobuf message is truncated")
            yield tag >> 3, data[at : at + length]
            at += length
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise ValueError(f"unknown wire type {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            raise ValueError("the protobuf message is truncated")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of the protobuf message has more than 64 bits")


def _message(data: bytes, fields: dict[int, tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        if number not in fields:
            continue
        name, kind = fields[number]
        if kind.startswith("*"):
            found.setdefault(name, []).append(_value(kind[1:], value))
        elif kind in ("map", "bytes-map"):
            entry = _value("Entry", value)
            raw = entry.get("value", b"")
            found.setdefault(name, {})[entry.get("key", "")] = (
                raw.decode() if kind == "map" else base64.b64encode(raw).decode()
            )
        else:
            decoded = _value(kind, value)
            # Zero values of optional strings and times are absent in JSON.
            if decoded not in ("", None):
                found[name] = decoded
    return found


def _value(kind: str, value: int | bytes) -> Any:
    if isinstance(value, int) != (kind in ("int", "bool")):
        raise ValueError(f"a field of type {kind} has a different wire type")
    if isinstance(value, int):
        return bool(value) if kind == "bool" else value
    if kind == "string":
        return value.decode()
    if kind == "raw":
        return value
    if kind == "bytes":
        return base64.b64encode(value).decode()
    if kind == "time":
        stamp = _message(value, _STAMP)
        seconds = stamp.get("seconds", 0)
        if seconds > _LAST:
            raise ValueError(f"a time is {seconds} seconds after 1970, later than the year 9999")
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)) if seconds else None
    return _message(value, _ENTRY if kind == "Entry" else _MESSAGES[kind])
