"""A drone of a Quiver group within a Python program.

An :class:`Edge` enrols with a token, joins its group, follows the group's keys, sends and receives messages, exports
keys for the application, and leaves. Calls block, without holding the interpreter, and have a time limit in seconds
(``None``: for ever); :meth:`Edge.fileno` is for ``select`` and ``asyncio``.
"""

from . import _quiver
from ._quiver import Edge, Event, ExportedKey, Status

__version__ = "0.1.0"

if _quiver.__version__ != __version__:
    raise ImportError(
        f"quiver {__version__} was installed with the extension module of version {_quiver.__version__} "
        f"({_quiver.__file__}): install the package anew"
    )

MAX_MESSAGE: int = _quiver.MAX_MESSAGE


class Error(Exception):
    """What went wrong, in words that name the file, the option or the peer. ``code`` is that of the C interface."""

    code: int = 1


class UsageError(Error, ValueError):
    """An argument, an option or a file that was given is wrong: a token of another deployment, for instance."""

    code = 2


class RefusedError(Error):
    """A service understood and refused: an expired token, a name already taken, a revoked drone."""

    code = 3


class BusyError(Error):
    """Another process or another drone of this one uses the data directory."""

    code = 5


class LockedError(Error):
    """Wrong passphrase or key, or a file that others may read."""

    code = 6


class BadStateError(Error):
    """The state file is damaged, or of another role or deployment."""

    code = 7


class TimedOutError(Error, TimeoutError):
    """Not done in the time given."""

    code = 8


class NotJoinedError(Error):
    """The drone is not, or not yet, in step with its group."""

    code = 9


class ClosedError(Error):
    """The drone was closed."""

    code = 10


class ForkedError(Error):
    """The process is a fork of the one that opened the drone."""

    code = 12


class PanickedError(Error):
    """The library has panicked: a bug."""

    code = 13


_quiver.set_errors(Error, {kind.code: kind for kind in Error.__subclasses__()})

__all__ = [
    "MAX_MESSAGE",
    "BadStateError",
    "BusyError",
    "ClosedError",
    "Edge",
    "Error",
    "Event",
    "ExportedKey",
    "ForkedError",
    "LockedError",
    "NotJoinedError",
    "PanickedError",
    "RefusedError",
    "Status",
    "TimedOutError",
    "UsageError",
]
