"""What is asked of a night, and what its steps hand on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from recon.model.errors import UsageError
from recon.privacy.card_numbers import holds_card

Account = tuple[str, str]
"""Merchant and account."""


@dataclass(frozen=True, slots=True)
class StepSummary:
    """What a step of the night did, in words and figures; the only thing tasks hand on."""

    step: str
    sentence: str
    figures: Mapping[str, int | str] = field(default_factory=dict)


class Mode(StrEnum):
    """Whether a night moves money."""

    DRY_RUN = "dry-run"
    LIVE = "live"


class Part(StrEnum):
    """What of a night may be run by itself; it never counts as the night."""

    INGEST = "ingest"
    QUERY = "query"
    SETTLE = "settle"
    PAYOUTS = "payouts"


STEPS = ("ingest", "query", "settle", "query again", "reconcile", "report")
"""The steps of a night, in order, under the names that flows, documents and the UI use."""


@dataclass(frozen=True, slots=True)
class NightPlan:
    """What of a night is done in one go, under the account's lock."""

    steps: tuple[str, ...] = STEPS
    part: Part | None = None
    """Which part of a night it is, whose run never counts as the night; None: it does."""
    resumes: bool = False
    """Whether the night's own stopped run goes on, from what is stored."""

    @property
    def sends(self) -> bool:
        """Whether money may move."""
        return "settle" in self.steps


NIGHT = NightPlan()
FINISH = NightPlan(("reconcile", "report"), resumes=True)
_MONEY = ("query", "settle", "query again")
PLANS: Mapping[str, NightPlan] = {
    "ingest": NightPlan(("ingest",), Part.INGEST),
    "query": NightPlan(("query",), Part.QUERY),
    "settle": NightPlan(_MONEY, Part.SETTLE),
    "payouts": NightPlan(_MONEY, Part.PAYOUTS),
    "finish": FINISH,
}
"""What may be done instead of a whole night, by the name that people give it."""


@dataclass(frozen=True, slots=True)
class NightRequest:
    """Which night to run; one run per merchant, account and business date."""

    merchant_id: str
    account_id: str
    business_date: date
    mode: Mode
    opening: bool = False
    """A person says that this is the first night of the account."""
    skip: str = ""
    """Why the nights that are missing before this one were not run, as a person says."""

    def __post_init__(self) -> None:
        """What stands in the history for ever holds no card number."""
        if holds_card(self.skip):
            msg = (
                "the reason why nights were not run holds a card number; say it without the "
                "number: nothing was done"
            )
            raise UsageError(msg)

    @property
    def account(self) -> Account:
        """Whose night it is."""
        return self.merchant_id, self.account_id
