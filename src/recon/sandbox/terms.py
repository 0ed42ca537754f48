"""The sandbox's own choices (`sandbox.toml`) as one value: codes, windows, refusals, population."""

from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recon.config.declared import problems_of
from recon.config.settings import load_tables
from recon.model.errors import ConfigurationError
from recon.model.terms import GatewayState

QUERY_RESULT_OTHERWISE = "1"
"""query_result of a state that `[query_result_of]` does not name."""

OF_PARAMETER = ":"
"""Between the short name of a refusal and the parameter that it names."""

QUERY_RESULT_UNKNOWN_KEY = "2"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))


class _Windows(_Table):
    """How long things stay possible, days on the virtual clock."""

    authorisation_days: int = Field(ge=1, le=365)
    refund_days: int = Field(ge=1, le=3660)
    refund_processing_days: int = Field(ge=0, le=365)


class _Fees(_Table):
    payout_flat: Decimal
    """Major units of the currency of who bears it."""


class _PayoutTerms(_Table):
    balance: Decimal
    """Of each account in each currency when it opens, major units."""
    per_euro: dict[str, Decimal]
    """Units of a currency for one euro."""


class _ThreeDs(_Table):
    otp: str
    """The one-time code that is right."""
    tries: int = Field(ge=1, le=10)
    cards: dict[str, Literal["frictionless", "challenge", "failed"]]


class _Risk(_Table):
    provider: str
    score: int
    """Of every card that is not listed."""
    review_from: int
    reject_from: int
    cards: dict[str, int]


class _ReviewFlags(_Table):
    """What a review_flag does to a payment in review; another flag leaves it there."""

    accept: str
    reject: str


class _RefusalReasons(_Table):
    """Reasons as `<code>:<text>`, by our own short name."""

    request: dict[str, str]
    row: dict[str, str]
    refund: dict[str, str]
    subscription: dict[str, str]
    payout: dict[str, str]
    """`<failure_type>:<failure_reason>`."""


class Notifications(_Table):
    """What is told to merchants, and how often it is repeated until it is acknowledged."""

    url: str
    types: tuple[str, ...]
    retry_first_seconds: int = Field(ge=1, le=3600)
    retry_series_hours: int = Field(ge=1, le=240)
    retry_series: int = Field(ge=1, le=10)
    retry_jitter_percent: int = Field(ge=0, le=50)


class PopulationTerms(_Table):
    """What a seeded population is made of."""

    days: int = Field(ge=10, le=150)
    authorised_hours: int = Field(ge=2, le=96)
    amount_min: int = Field(ge=100)
    amount_max: int = Field(le=10**9)
    per_mille: dict[str, int]
    currencies: dict[str, int]


class SandboxTerms(_Table):
    """All of sandbox.toml."""

    payment_status: dict[str, GatewayState]
    query_result: dict[str, str]
    query_result_of: dict[GatewayState, str]
    windows: _Windows
    fees: _Fees
    payouts: _PayoutTerms
    declined_cards: dict[str, str]
    threeds: _ThreeDs
    risk: _Risk
    review: _ReviewFlags
    results: dict[str, str]
    """`<code>:<text>` of payments that were neither made nor declined by the shopper's bank."""
    refusals: _RefusalReasons
    notifications: Notifications
    population: PopulationTerms

    @cached_property
    def code_of(self) -> dict[GatewayState, str]:
        """The payment_status code of each state."""
        return {state: code for code, state in self.payment_status.items()}

    def result_of(self, state: GatewayState) -> str:
        """The query_result code of a state."""
        return self.query_result_of.get(state, QUERY_RESULT_OTHERWISE)

    def refusal(
        self, reason: str, of: Literal["request", "row", "refund", "subscription"] = "request"
    ) -> str:
        """`<code>:<text>` of a reason; the parameter that it names stands behind it."""
        texts: dict[str, str] = getattr(self.refusals, of)
        short, _, parameter = reason.partition(OF_PARAMETER)
        return f"{texts[short]} ({parameter})" if parameter else texts[short]


def short_name(reason: str) -> str:
    """A reason without the parameter it names."""
    return reason.partition(OF_PARAMETER)[0]


def load_terms(*, config_dir: Path | None = None) -> SandboxTerms:
    """The terms of sandbox.toml.

    Raises:
        ConfigurationError: a key is missing, unknown or malformed.
    """
    try:
        return SandboxTerms.model_validate(load_tables("sandbox", config_dir=config_dir))
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, source="sandbox.toml")) from error
