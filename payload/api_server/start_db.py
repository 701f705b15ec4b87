"""`start_db.sh` of the image: the database unit has nothing to do, because the service uses SQLite."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Wait for a signal to stop."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *__: sys.exit(0))
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
