"""The sandbox's own choices, loaded from `sandbox.toml`: codes, windows, refusals, population."""

from decimal import Decimal
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recon.config.declared import problems_of
from recon.config.settings import load_tables
from recon.model.errors import ConfigurationError
from recon.model.terms import GatewayState

QUERY_RESULT_OTHERWISE = "1"
"""query_result of states that `[query_result_of]` does not list."""

OF_PARAMETER = ":"
"""Separator between the short name of a refusal and the parameter it names."""

QUERY_RESULT_UNKNOWN_KEY = "2"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))


class _Windows(_Table):
    """How long operations stay possible, in days on the virtual clock."""

    authorisation_days: int = Field(ge=1, le=365)
    refund_days: int = Field(ge=1, le=3660)
    refund_processing_days: int = Field(ge=0, le=365)


class _Fees(_Table):
    payout_flat: Decimal
    """Major units of the currency of the party that bears it."""


class _PayoutTerms(_Table):
    balance: Decimal
    """Opening balance of each account in each currency, in major units."""
    per_euro: dict[str, Decimal]
    """Units of a currency for one euro."""


class _ThreeDs(_Table):
    otp: str
    """The correct one-time code."""
    tries: int = Field(ge=1, le=10)
    cards: dict[str, Literal["frictionless", "challenge", "failed"]]


class _Risk(_Table):
    provider: str
    score: int
    """Score of cards that are not listed."""
    review_from: int
    reject_from: int
    cards: dict[str, int]


class _ReviewFlags(_Table):
    """The review_flag values that decide a payment in review; any other leaves it in review."""

    accept: str
    reject: str


class _RefusalReasons(_Table):
    """Reasons as `<code>:<text>`, by short name."""

    request: dict[str, str]
    row: dict[str, str]
    refund: dict[str, str]
    subscription: dict[str, str]
    payout: dict[str, str]
    """`<failure_type>:<failure_reason>`."""


class Notifications(_Table):
    """Which notifications merchants receive, and how often they are repeated until acknowledged."""

    url: str
    types: tuple[str, ...]
    retry_first_seconds: int = Field(ge=1, le=3600)
    retry_series_hours: int = Field(ge=1, le=240)
    retry_series: int = Field(ge=1, le=10)
    retry_jitter_percent: int = Field(ge=0, le=50)


class PopulationTerms(_Table):
    """Parameters of a seeded population."""

    days: int = Field(ge=10, le=150)
    authorised_hours: int = Field(ge=2, le=96)
    amount_min: int = Field(ge=100)
    amount_max: int = Field(le=10**9)
    per_mille: dict[str, int]
    currencies: dict[str, int]


class SandboxTerms(_Table):
    """The contents of sandbox.toml."""

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
    """`<code>:<text>` of payments that neither succeeded nor were declined by their bank."""
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
        """`<code>:<text>` of a reason, followed by the parameter it names, if any."""
        texts: dict[str, str] = getattr(self.refusals, of)
        short, _, parameter = reason.partition(OF_PARAMETER)
        return f"{texts[short]} ({parameter})" if parameter else texts[short]


def short_name(reason: str) -> str:
    """Strip the parameter from a reason."""
    return reason.partition(OF_PARAMETER)[0]


def load_terms() -> SandboxTerms:
    """Load the terms of the bundled sandbox.toml.

    Raises:
        ConfigurationError: a key is missing, unknown or malformed.
    """
    try:
        return SandboxTerms.model_validate(load_tables("sandbox", config_dir=None))
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, source="sandbox.toml")) from error
