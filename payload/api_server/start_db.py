"""`start_db.sh` of the image: the unit of the database waits for nothing, because the service keeps SQLite."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Waits until it is told to stop."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *__: sys.exit(0))
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
