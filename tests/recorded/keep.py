"""Keeps what a fault job left as test data: its recording, and the files that its run page is made of.

    python tests/recorded/keep.py ARTIFACTS/JOB ...

writes `jobs/JOB.jsonl.gz` and `jobs/JOB.tar.gz`, without the path of the checkout, and with the end of each console.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
import tarfile
from pathlib import Path

JOBS = Path(__file__).with_name("jobs")
FILES = (
    "run/plan.yaml",
    "run/profile.yaml",
    "run/logs/events.jsonl",
    "report/summary.txt",
    "report/run/logs/wait-for.log",
)
CONSOLE = 8192
"""Bytes of a console."""
_CHECKOUT = re.compile(rb"(/[\w.-]+)+(?=/runs/)")


def keep(artifacts: Path) -> None:
    """Write the test data of one job. Raises `OSError` for a directory without its files."""
    recording = _CHECKOUT.sub(b"", (artifacts / "run/logs/recording.jsonl").read_bytes())
    (JOBS / f"{artifacts.name}.jsonl.gz").write_bytes(gzip.compress(recording, mtime=0))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in (artifacts / name for name in FILES):
            if path.exists():
                _add(archive, str(path.relative_to(artifacts)), path.read_bytes())
        for path in sorted((artifacts / "report/console").glob("*.log")):
            _add(archive, str(path.relative_to(artifacts)), path.read_bytes()[-CONSOLE:])
    (JOBS / f"{artifacts.name}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    data = _CHECKOUT.sub(b"", data)
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    for word in sys.argv[1:]:
        keep(Path(word))
