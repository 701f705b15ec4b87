"""Validations of what OLM operators ask of hosts and of the cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .. import operators
from ..facts import is_day2
from .base import HIDDEN, SUCCESS, Category, Result, validation
from .view import HostCheck, HostView, View

ClusterCheck = Callable[[View], Result]
_DAY2_OPERATOR = "{} validation is disabled when adding hosts to an existing cluster."


def _host_operator(name: str) -> HostCheck:
    def check(v: HostView) -> Result:
        if name not in v.view.operators:
            return SUCCESS, f"{name} is disabled"
        if is_day2(v.cluster):
            return SUCCESS, _DAY2_OPERATOR.format(name)
        return operators.validate_host(name, v.view, v.host)

    return check


def _cluster_operator(name: str, validate: Callable[[View], Result]) -> ClusterCheck:
    def check(v: View) -> Result:
        if name not in v.operators:
            return SUCCESS, f"{name} is disabled"
        return (SUCCESS, _DAY2_OPERATOR.format(name)) if is_day2(v.cluster) else validate(v)

    return check


def _ai_gpu(v: View) -> Result:
    """A validation that is shown for clusters with OpenShift AI only."""
    return operators.validate_ai_gpu(v) if "openshift-ai" in v.operators else (HIDDEN, "")


ai_gpu = validation("openshift-ai-gpu-requirements-satisfied", Category.OPERATORS)(_ai_gpu)
HOST_OPERATORS = tuple(
    validation(op.validation, Category.OPERATORS)(_host_operator(op.name)) for op in operators.OPERATORS.values()
)
CLUSTER_OPERATORS = tuple(
    validation(op.validation, Category.OPERATORS)(
        _cluster_operator(op.name, functools.partial(operators.validate_cluster, op.name))
    )
    for op in operators.OPERATORS.values()
)
