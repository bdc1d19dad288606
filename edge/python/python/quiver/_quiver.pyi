"""Types of the extension module."""

import os
from types import TracebackType
from typing import Literal, Mapping, Optional, Sequence, Type, Union

from typing_extensions import Self, final

__version__: str
__file__: str
MAX_MESSAGE: int

Path = Union[str, "os.PathLike[str]"]

def set_errors(base: Type[Exception], kinds: Mapping[int, Type[Exception]]) -> None: ...

class Event:
    """Something that happened to the drone: an instance of one of the classes within."""

    @final
    class Enrolled(Event):
        """The KGC has issued this drone's key."""

        __match_args__ = ("name",)
        name: str

    @final
    class Connected(Event):
        """There is a connection with a service."""

        __match_args__ = ("service",)
        service: Literal["kgc", "leader"]

    @final
    class Disconnected(Event):
        """A connection with a service is lost; a leader is dialled again."""

        __match_args__ = ("service",)
        service: Literal["kgc", "leader"]

    @final
    class Epoch(Event):
        """The key of this epoch is in use. The first one says that the drone has joined."""

        __match_args__ = ("term", "counter", "digest", "slot")
        term: int
        counter: int
        digest: bytes
        slot: int

    @final
    class Message(Event):
        """A message. ``sender`` is the drone that signed it; without one, some member sent it, which claims ``slot``."""

        __match_args__ = ("channel", "data", "sender", "from_leader", "slot")
        channel: str
        data: bytes
        sender: Optional[str]
        from_leader: bool
        slot: Optional[int]

    @final
    class Refused(Event):
        """A service has refused the drone. If ``transient``, the same request may succeed later."""

        __match_args__ = ("service", "reason", "transient")
        service: Literal["kgc", "leader"]
        reason: str
        transient: bool

    @final
    class Left(Event):
        """The drone has left the group, as it was told."""

        __match_args__ = ()

    @final
    class Evicted(Event):
        """The drone was evicted from the group."""

        __match_args__ = ()

    @final
    class LeaderRefused(Event):
        """A leader has signed two headers for one epoch, and is refused for good."""

        __match_args__ = ("name",)
        name: str

@final
class ExportedKey:
    """A key for the application, and the epoch that it is of. Python cannot erase ``key``."""

    key: bytes
    term: int
    counter: int

@final
class Status:
    """How a drone is doing."""

    standing: Literal["enrolling", "joining", "member", "left", "evicted", "revoked"]
    name: Optional[str]
    group: Optional[str]
    term: Optional[int]
    counter: Optional[int]
    digest: Optional[bytes]
    slot: Optional[int]
    valid_until: Optional[int]
    leaders: int
    dropped: int

@final
class Edge:
    """A drone.

    ``deployment`` and a token (``token_file``, or ``token``, what stands in it) are needed at the first start.
    ``passphrase`` or ``key_file`` opens the state in ``data_dir``. ``group``: default is the one joined before, or the
    only one in the token. Returns once the state is open, and does not wait for any service: that is :meth:`join`.
    """

    def __new__(
        cls,
        data_dir: Path,
        passphrase: Optional[bytes] = None,
        *,
        leaders: Sequence[str],
        key_file: Optional[Path] = None,
        deployment: Optional[Path] = None,
        token_file: Optional[Path] = None,
        token: Optional[bytes] = None,
        group: Optional[str] = None,
        kgcs: Sequence[str] = (),
        enrol_timeout: Optional[float] = None,
    ) -> Self: ...
    def join(self, timeout: Optional[float] = None) -> None:
        """Waits until the drone is a member, in step with its group. One that has left joins again."""
    def next_event(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event; ``None`` if there is none in this time."""
    def send(self, channel: str, data: bytes, *, signed: bool = True, timeout: Optional[float] = None) -> None:
        """Sends at most ``MAX_MESSAGE`` bytes; returns once they were handed to the leader's connection."""
    def flush(self, timeout: Optional[float] = None) -> None:
        """Waits until the leader has answered after every message sent since the last call: one round trip."""
    def export_key(self, name: str, timeout: Optional[float] = None) -> ExportedKey:
        """A key of 32 bytes that every member derives under this name, another one in each epoch."""
    def status(self) -> Status:
        """How the drone is doing."""
    def leave(self, timeout: Optional[float] = None) -> None:
        """Leaves the group, and waits until that is done. :meth:`join` joins again."""
    def close(self) -> None:
        """Stops the drone: it stays a member, and the next start goes on."""
    def fileno(self) -> int:
        """A descriptor that is readable while an event is queued, and once the drone has ended. Not to be read."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
        /,
    ) -> None: ...
