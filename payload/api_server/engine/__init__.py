"""The service without HTTP, in layers, each of which knows those before it.

index: documents and what is derived from them; statuses: events; reports: what hosts report; instructions: what they are instructed to do;
views: what validations look at; host_machine, cluster_machine: state machines; preparation: work in the background; monitors: passes.
"""

from .index import placeholder
from .monitors import Monitors
from .statuses import STATUS_INFO_LENGTH, time_text

__all__ = ["STATUS_INFO_LENGTH", "Engine", "placeholder", "time_text"]


class Engine(Monitors):
    """State and behaviour of the service."""
