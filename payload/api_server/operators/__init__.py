"""OLM operators: what they are, need and depend on, the bundles that group them, and the manifests that install them."""

from __future__ import annotations

from .checks import validate_ai_gpu, validate_cluster, validate_host
from .manifests import custom_files, manifests
from .requirements import needs, preflight
from .selection import bundle, bundles, check, choose, chosen_bundles
from .table import BUNDLES, OPERATORS, selected_operators

__all__ = [
    "BUNDLES",
    "OPERATORS",
    "bundle",
    "bundles",
    "check",
    "choose",
    "chosen_bundles",
    "custom_files",
    "manifests",
    "needs",
    "preflight",
    "selected_operators",
    "validate_ai_gpu",
    "validate_cluster",
    "validate_host",
]
