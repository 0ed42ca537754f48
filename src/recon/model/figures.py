"""Everything a report shows, gathered once: from `steps/night/report.py` to the workbook.

Plain values and frames; no database, no openpyxl. `reports` draws it, tests compare it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING

from recon.model.gateway_holds import ChargedFees, GatewayHolds
from recon.model.resolutions import StoredAnswer
from recon.model.terms import ControlTotal, Quarantined, Reject, SourceFile, SourceKind, Verdict

if TYPE_CHECKING:
    # Settings know from here how long a list may be; what only they ask for loads no frames.
    import pandas as pd

INSTRUCTION_SHEET_COLUMNS = (
    "instruction_id",
    "kind",
    "order_no",
    "transaction_id",
    "currency",
    "amount",
    "state",
    "outcome",
    "code",
    "message",
    "refund_reference_id",
    "batch_id",
    "attempt",
    "approved_by",
    "sent_at",
    "outcome_at",
    "in_doubt_since",
    "source",
    "line",
)
BATCH_COLUMNS = (
    "batch_id",
    "kind",
    "currency",
    "rows",
    "amount",
    "confirmed",
    "rejected",
    "in_doubt",
    "not_sent",
    "return_status",
    "message",
    "body_sha256",
    "sent_at",
)
"""One row per batch and currency."""


BANK_DAYS_AHEAD = 10
"""Business days for which a report says what is expected at the bank."""


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing that needs a person, for page one and `recon status`."""

    what: str
    """Such as "refund in doubt"."""
    order_no: str
    transaction_id: str
    currency: str
    amount: int
    """Money at risk, minor units."""
    since: datetime
    next_step: str
    """What to do, one sentence."""
    code: str = ""
    """Of the break that it is; "" when it is none."""
    instruction_id: str = ""
    """For `recon withdraw`; "" when it is not about one instruction."""
    is_urgent: bool = False
    """Doubt, a lapse or a grave break: stands above the open breaks as a whole."""
    owner: str = ""
    """Who looks after the break, as a person answered; "" for nobody yet."""
    due: date | None = None
    """Until when somebody should have answered it."""
    answered: str = ""
    """That it was answered before the night that shows it still, and by whom."""
    lapses: bool = False
    """An authorisation ends soon, and with it the money: named first."""
    is_undecided: bool = False
    """Two people may say what became of it (`recon resolve`)."""
    message: str = ""
    """What the gateway told of it by itself, which stands in `next_step` too."""
    subject: str = ""
    """What it is about, in words: an order, a subscription, a payee; "" when nothing is named."""


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Open breaks of one earlier night."""

    business_date: date
    open_breaks: int


MATCHES = "match"
LISTS_IN_FILES = (MATCHES, "unverified", "pending")
"""Sections of a result of which a long list stands in a file that the workbook names."""
OPEN_ROWS_MAX, OPEN_ROWS_SHOWN = 10_000, 1_000
"""Sets that wait or could not be verified: of more than the first number a workbook has the sums,
and the second number of rows."""
MATCHED_ROWS_MAX, MATCHED_ROWS_SHOWN = 1_000, 1_000
"""The same of matches, of which the sheet always has the sums."""
MATCHED_BATCH_ROWS = 10_000
"""Matches that are read into memory at once while a report is drawn."""
MATCHED_LOOK_ROWS = 50_000
"""Matches that are looked at once where all are in memory: each look costs some milliseconds."""


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Every match of a night: the one list that grows with the business, so it is read in parts."""

    count: int
    batches: Callable[[], Iterator["pd.DataFrame"]]
    """The rows in order, MATCH_COLUMNS; the same ones each time it is called."""


def matched_of(matches: "pd.DataFrame") -> MatchedRows:
    """Matches that are in memory already."""

    def batches() -> Iterator["pd.DataFrame"]:
        for first in range(0, len(matches), MATCHED_LOOK_ROWS):
            yield matches.iloc[first : first + MATCHED_LOOK_ROWS]

    return MatchedRows(len(matches), batches)


@dataclass(frozen=True, slots=True)
class HandedOut:
    """A proposed journal that was handed out and that the night's ledger does not show yet."""

    journal_id: str
    break_id: str
    order_no: str
    transaction_id: str
    currency: str
    amount: int
    """What the books still lack of it, gateway less ledger, minor units."""
    run_id: str
    """Whose proposal it was."""
    handed_out_at: datetime


@dataclass(frozen=True, slots=True)
class ListFile:
    """A file that holds every row of a list of a workbook, such as every match."""

    name: str
    """From the night's folder; of plain files, beside the workbook."""
    rows: int
    size_bytes: int
    sha256: str


def files_named(
    files: Mapping[str, ListFile], *, matched_rows_max: int, open_rows_max: int
) -> dict[str, ListFile]:
    """Of the lists that are too long for their sheets: section -> the file that a sheet names."""
    rows = {section: file.rows for section, file in files.items()}
    open_rows = sum(count for section, count in rows.items() if section != MATCHES)
    is_long = {True: rows.get(MATCHES, 0) > matched_rows_max, False: open_rows > open_rows_max}
    return {section: file for section, file in files.items() if is_long[section == MATCHES]}


PLAIN_FILES = "plain files"
"""Mode of what `recon reconcile` made."""


OF_RESULT = (
    *("as_of", "verdict", "effects", "pending", "unverified", "sides", "movements", "journals"),
    *("bank", "control_totals", "unmapped_codes", "scope_of_assurance", "rules_digest"),
)
"""What a result and its figures have under one name."""


@dataclass(frozen=True, slots=True)
class NightFigures:
    """One night (or one `recon reconcile`) as a report shows it. Frames as in matching.result."""

    merchant_id: str
    account_id: str
    merchant_name: str
    business_date: date
    run_id: str
    mode: str
    as_of: datetime
    generated_at: datetime
    timezone: str
    bank_until: date
    """BANK_DAYS_AHEAD behind the business date, by the calendar of the way to the bank."""
    verdict: Verdict
    breaks: "pd.DataFrame"
    effects: "pd.DataFrame"
    matches: MatchedRows
    pending: "pd.DataFrame"
    unverified: "pd.DataFrame"
    sides: "pd.DataFrame"
    control_totals: tuple[ControlTotal, ...]
    instructions: "pd.DataFrame"
    """INSTRUCTION_SHEET_COLUMNS; empty for plain files without instructions."""
    batches: "pd.DataFrame"
    """BATCH_COLUMNS."""
    movements: "pd.DataFrame"
    """What became of the breaks of the night before, and which are new."""
    journals: "pd.DataFrame"
    """Proposed tonight, one row per line."""
    files: tuple[SourceFile, ...]
    rejects: tuple[Reject, ...]
    quarantined: tuple[Quarantined, ...] = ()
    """Order rows of any night that could not be read and that nobody brought again since."""
    bridge: Mapping[SourceKind, Mapping[str, int]] = field(default_factory=dict)
    """Source -> step (proof.books_bridge) -> rows, from those of `files` to those compared."""
    books: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Currency -> step (matching.books_bridge) -> minor units, from the ledger file to `sides`."""
    answers: Mapping[str, StoredAnswer] = field(default_factory=dict)
    """break_id -> what a person answered to it on an earlier night."""
    attention: tuple[Attention, ...] = ()
    trend: tuple[TrendPoint, ...] = ()
    opening_breaks: int | None = None
    """Open breaks of the night before; None when there was none."""
    not_covered: tuple[str, ...] = ()
    unmapped_codes: tuple[Mapping[str, str | int], ...] = ()
    scope_of_assurance: tuple[Mapping[str, str | int], ...] = ()
    rules_digest: str = ""
    history_head: str = ""
    ledger_covered: bool = True
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Sentences that page one must carry, such as "reply signatures are not verified"."""
    stopped: str = ""
    """What stopped sending, and what was not sent, in sentences; "" where nothing did."""
    handed_out: tuple[HandedOut, ...] = ()
    """Oldest first."""
    bank: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    """matching.breaks.result.BANK_TABLES by name; none: no statement of a bank was given."""
    gateway_holds: GatewayHolds | None = None
    """What the gateway holds and the fees it took; None: no settlement was given."""
    fees: ChargedFees | None = None
    """What was charged beside the fee contract; None without a contract or a settlement."""
    list_files: Mapping[str, ListFile] = field(default_factory=dict)
    """Each of LISTS_IN_FILES -> the result file of the run that holds all of it."""
    matched_rows_max: int = MATCHED_ROWS_MAX
    matched_rows_shown: int = MATCHED_ROWS_SHOWN
    open_rows_max: int = OPEN_ROWS_MAX
    open_rows_shown: int = OPEN_ROWS_SHOWN

    @property
    def of_plain_files(self) -> bool:
        """No night and no history stand behind it: no command signs, answers or releases it."""
        return self.mode == PLAIN_FILES

    def files_named(self) -> dict[str, ListFile]:
        """Section -> the file that its sheet names instead of listing each row."""
        return files_named(
            self.list_files,
            matched_rows_max=self.matched_rows_max,
            open_rows_max=self.open_rows_max,
        )
