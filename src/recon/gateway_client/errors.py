"""Exceptions of the gateway client.

Messages contain ids and codes only, never payloads or keys; a card number that gets into one is
masked. The hierarchy:

    GatewayClientError
    ├── InterfaceError             profiles, signature or status map are invalid
    ├── AddressError               the base URL is not one that may be called
    ├── InvalidRequestError        rows, or a payment, that must not be sent; nothing was sent
    ├── UnsignedError              the request was not signed; nothing was sent
    ├── MisuseError                a Gateway closed, forked or calling itself; nothing was sent
    ├── NotSentError               certainly not sent: only after these errors a resend is safe
    │   └── CertificateError       the gateway's certificate was not accepted; never retried
    ├── UnknownOutcomeError        the request may have taken, or may yet take, effect
    └── QueryRefusedError          no query can succeed until a person changes something
"""

from collections.abc import Mapping
from dataclasses import dataclass

from recon.privacy.displayed_text import masked


class GatewayClientError(Exception):
    """Base class of the errors raised by the gateway client."""

    def __init__(self, message: str) -> None:
        super().__init__(masked(message))


class InterfaceError(GatewayClientError):
    """The description of the gateway's interface is wrong."""


class AddressError(GatewayClientError):
    """The base URL is not one that may be called."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """Why a field must not be sent; private values are never included."""

    position: int | None
    """0-based position of the row in its batch; None for a payment."""
    field: str
    reason: str

    def __str__(self) -> str:
        row = "" if self.position is None else f"row {self.position + 1}, "
        return f"{row}{self.field} {self.reason}"


class InvalidRequestError(GatewayClientError):
    """The batch or payment must not be sent; nothing was sent."""

    def __init__(self, message: str, *, problems: tuple[RowProblem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class UnsignedError(GatewayClientError):
    """The holder of the key refused to sign, or is not available; nothing was sent."""

    def __init__(
        self, message: str, *, refused: Mapping[int, str] | None = None, final: bool = False
    ) -> None:
        super().__init__(message)
        self.refused = dict(refused or {})
        """0-based position of a row -> why it is not signed; the others may be sent without it."""
        self.final = final
        """The refusal is final: asking again is useless."""


class MisuseError(GatewayClientError):
    """A `Gateway` was used after closing, in another process, or from within its own call.

    Nothing was sent.
    """


class NotSentError(GatewayClientError):
    """The request was certainly not sent, so sending it again cannot duplicate anything."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        """Class name of the underlying failure, such as ConnectError."""


class CertificateError(NotSentError):
    """The gateway's certificate was not accepted; the request was not sent."""


class UnknownOutcomeError(GatewayClientError):
    """The request may have taken effect, or may yet; only a later query can tell."""

    def __init__(self, message: str, *, kind: str, status: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        """Class name of the underlying failure, such as ReadTimeout."""
        self.status = status
        """The HTTP status, if it arrived before the failure."""


class QueryRefusedError(GatewayClientError):
    """The gateway refuses queries for a reason that retrying cannot fix."""

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause = cause
        """What the gateway does not know or accept: our `address`, `signature` or `merchant`."""
