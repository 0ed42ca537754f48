"""What a caller of the gateway client cannot continue from.

Messages carry ids and codes only, never payloads or keys; should a card number get into one all
the same, it is masked there. The tree:

    GatewayClientError
    ├── InterfaceError             profiles, signature or status map are wrong
    ├── AddressError               the base URL is not one that may be called
    ├── InvalidRequestError        rows, or a payment, that must not be sent; nothing was sent
    ├── UnsignedError              nobody signed it; nothing was sent
    ├── MisuseError                a Gateway closed, forked or calling itself; nothing was sent
    ├── NotSentError               surely not sent: the only errors after which a resend is safe
    │   └── CertificateError       the gateway's certificate was not accepted; never retried
    ├── UnknownOutcomeError        the request may have taken, or may yet take, effect
    └── QueryRefusedError          no query can succeed until a person changes something
"""

from collections.abc import Mapping
from dataclasses import dataclass

from recon.privacy.shown_text import masked


class GatewayClientError(Exception):
    """Something went wrong that the caller must deal with."""

    def __init__(self, message: str) -> None:
        super().__init__(masked(message))


class InterfaceError(GatewayClientError):
    """The description of the gateway's interface is wrong."""


class AddressError(GatewayClientError):
    """The base URL is not one that may be called."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """Why a field must not be sent; never its value where that is private."""

    position: int | None
    """0-based, of the row in its batch; None in a payment."""
    field: str
    reason: str

    def __str__(self) -> str:
        row = "" if self.position is None else f"row {self.position + 1}, "
        return f"{row}{self.field} {self.reason}"


class InvalidRequestError(GatewayClientError):
    """The batch or the payment must not be sent; nothing was sent."""

    def __init__(self, message: str, *, problems: tuple[RowProblem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class UnsignedError(GatewayClientError):
    """Whoever holds the key refused to sign, or is not there; nothing was sent."""

    def __init__(
        self, message: str, *, refused: Mapping[int, str] | None = None, final: bool = False
    ) -> None:
        super().__init__(message)
        self.refused = dict(refused or {})
        """0-based position of a row -> why it is not signed; without it the others may be."""
        self.final = final
        """Asking again is no use: it was refused."""


class MisuseError(GatewayClientError):
    """A `Gateway` that is closed, of another process, or called from within itself.

    Nothing was sent.
    """


class NotSentError(GatewayClientError):
    """The request was surely not sent; sending it again cannot double anything."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        """The class of the failure underneath, such as ConnectError."""


class CertificateError(NotSentError):
    """The gateway's certificate was not accepted; the request was not sent."""


class UnknownOutcomeError(GatewayClientError):
    """The request may have taken effect, or may yet; only a later query can tell."""

    def __init__(self, message: str, *, kind: str, status: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        """The class of the failure underneath, such as ReadTimeout."""
        self.status = status
        """The HTTP status, when it arrived before the failure."""


class QueryRefusedError(GatewayClientError):
    """The gateway refuses queries for a cause that repeating cannot cure."""

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause = cause
        """What it does not know or accept: `address`, `signature` or `merchant`, which are ours."""
