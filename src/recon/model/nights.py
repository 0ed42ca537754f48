"""Requests, plans and step summaries of a run."""

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
    """What a step of the run did, as text and figures; the only value passed between tasks."""

    step: str
    sentence: str
    figures: Mapping[str, int | str] = field(default_factory=dict)


class Mode(StrEnum):
    """Whether a run moves money."""

    DRY_RUN = "dry-run"
    LIVE = "live"


class Part(StrEnum):
    """Parts of a run that may be run alone; such a run never counts as the night's run."""

    INGEST = "ingest"
    QUERY = "query"
    SETTLE = "settle"
    PAYOUTS = "payouts"


STEPS = ("ingest", "query", "settle", "query again", "reconcile", "report")
"""The steps of a run, in order, under the names that flows, documents and the UI use."""


@dataclass(frozen=True, slots=True)
class NightPlan:
    """The steps that one run executes, under the account's lock."""

    steps: tuple[str, ...] = STEPS
    part: Part | None = None
    """The part that is run alone; None for a run that counts as the night's."""
    resumes: bool = False
    """Whether it resumes the stopped run of the same night from what is stored."""

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
"""Alternatives to a whole run, by the name that people use."""


@dataclass(frozen=True, slots=True)
class NightRequest:
    """The run to execute; there is one per merchant, account and business date."""

    merchant_id: str
    account_id: str
    business_date: date
    mode: Mode
    opening: bool = False
    """A person confirms that this is the first night of the account."""
    skip: str = ""
    """A person's reason why the missing nights before this one were not run."""

    def __post_init__(self) -> None:
        """Refuse a card number in the reason, which stays in the history for ever."""
        if holds_card(self.skip):
            msg = (
                "the reason why nights were not run holds a card number; say it without the "
                "number: nothing was done"
            )
            raise UsageError(msg)

    @property
    def account(self) -> Account:
        """Merchant and account."""
        return self.merchant_id, self.account_id
