"""`supervise.py PID DIRECTORY COMMAND [ARGUMENT ...]`: runs a command in the namespaces of a process, and passes signals on to it.

nsenter(1) does not: a SIGTERM ends it alone, and the command stays in the sandbox. Ctrl-C ends it, too, while the command may still
clean up. Here Ctrl-C is for the command alone, and the exit code is the command's. This program is root's, needs nothing of the
collection, and is started from its file.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from types import FrameType

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FOR_THE_COMMAND = (signal.SIGINT, signal.SIGQUIT)
"""The terminal sends them to the command as well."""
_HANDLED = (*_PASSED_ON, *_FOR_THE_COMMAND)
_NAMESPACES = ("net", "pid", "mnt")
_PR_SET_PDEATHSIG = 1


def main(pid: int, directory: str, command: list[str]) -> int:
    """Run the command; return its exit code, or end by the signal that ended it.

    pid: in whose network, PID and mount namespaces it runs, and with whose root directory; directory: there. Raises `OSError`.
    """
    _enter(pid, directory)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)  # until it is known to whom they are passed on
    parent, child = os.getpid(), os.fork()
    if not child:
        os._exit(_become(command))

    def pass_on(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)

    for number in _FOR_THE_COMMAND:
        signal.signal(number, signal.SIG_IGN)
    for number in _PASSED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup(1) leaves it
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
    while os.WIFSTOPPED(status := os.waitpid(child, os.WUNTRACED)[1]):
        os.kill(parent, signal.SIGSTOP)  # for the shell to notice
        os.kill(child, signal.SIGCONT)
    if os.WIFSIGNALED(status):
        ended = os.WTERMSIG(status)
        if ended != signal.SIGKILL:
            signal.signal(ended, signal.SIG_DFL)
        os.kill(parent, ended)
    return os.waitstatus_to_exitcode(status) & 0xFF


def _enter(pid: int, directory: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    # All are opened before the first is entered, where /proc is another one.
    handles = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in _NAMESPACES]
    root = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY)
    for handle in handles:
        if libc.setns(handle, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"/proc/{pid}/ns")
        os.close(handle)
    os.fchdir(root)
    os.chroot(".")
    os.close(root)
    os.chdir(directory)


def _become(command: list[str]) -> int:
    """Execute the command. Returns only when that is not possible: what a shell returns then, after a message."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
    # It ends with this process, even when that is killed: as long as it does not become another user.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"agentlab: {command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    try:
        raise SystemExit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
    except KeyboardInterrupt:  # before there was a command
        raise SystemExit(128 + signal.SIGINT) from None
    except OSError as found:
        raise SystemExit(f"agentlab: {found.filename or 'the sandbox'}: {found.strerror}") from None
