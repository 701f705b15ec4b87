"""`hyperkube COMMAND`: the programs of the hyperkube image. A program is imported only when it is called."""

from __future__ import annotations

import sys

COMMANDS = ("kube-apiserver", "kubelet")


def main(argv: list[str] | None = None) -> int:
    """Run the program that the first argument names."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] not in COMMANDS:
        print(f"usage: hyperkube {{{','.join(COMMANDS)}}} [option ...]", file=sys.stderr)
        return 2
    if arguments[0] == "kubelet":
        from .kubelet import main as run
    else:
        from .control_plane import main as run
    return run(arguments[1:])


if __name__ == "__main__":
    sys.exit(main())
