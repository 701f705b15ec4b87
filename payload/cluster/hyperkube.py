"""`hyperkube COMMAND`: the programs of the hyperkube image. A program is imported only when it is called."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {"kube-apiserver": "control_plane", "kubelet": "kubelet"}


def main(argv: list[str] | None = None) -> int:
    """Run the program that the first argument names."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] not in COMMANDS:
        print(f"usage: hyperkube {{{','.join(COMMANDS)}}} [option ...]", file=sys.stderr)
        return 2
    module = importlib.import_module(f".{COMMANDS[arguments[0]]}", __package__)
    code: int = module.main(arguments[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
