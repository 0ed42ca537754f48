"""All figures that a report shows: passed from `steps/night/report.py` to the workbook.

Plain values and frames; no database, no openpyxl. `reports` draws them, tests compare them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING

from recon.model.gateway_holds import ChargedFees, GatewayHolds
from recon.model.resolutions import StoredAnswer
from recon.model.terms import ControlTotal, Quarantined, Reject, SourceFile, SourceKind, Verdict

if TYPE_CHECKING:
    # Settings import the limits of lists from here, which must not load pandas.
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
"""Business days ahead for which a report lists expected payments at the bank."""


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
    """What to do, in one sentence."""
    code: str = ""
    """Code of the break; "" when it is not a break."""
    instruction_id: str = ""
    """Id for `recon withdraw`; "" when it is not about one instruction."""
    is_urgent: bool = False
    """In doubt, about to lapse or a severe break: listed above the open breaks as a whole."""
    owner: str = ""
    """Owner of the break according to its answer; "" without one."""
    due: date | None = None
    """Date by which the break should be answered."""
    answered: str = ""
    """Text that it was answered, and by whom, before the run that still shows it."""
    lapses: bool = False
    """An authorisation expires soon, and with it the claim to the money: listed first."""
    is_undecided: bool = False
    """Two people may decide its outcome (`recon resolve`)."""
    message: str = ""
    """The gateway's notification about it, also included in `next_step`."""
    subject: str = ""
    """Text for what it is about: an order, a subscription, a payee; "" without a name."""


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Number of open breaks of one earlier night."""

    business_date: date
    open_breaks: int


MATCHES = "match"
LISTS_IN_FILES = (MATCHES, "unverified", "pending")
"""Sections of a result whose long lists are in a file that the workbook names."""
OPEN_ROWS_MAX, OPEN_ROWS_DISPLAYED = 10_000, 1_000
"""Waiting and unverified sets: above the first number a workbook has sums, and only as many rows as
the second number."""
MATCHED_ROWS_MAX, MATCHED_ROWS_DISPLAYED = 1_000, 1_000
"""The same for matches, whose sums are always shown."""
MATCHED_BATCH_ROWS = 10_000
"""Matches that are read into memory at once while a report is drawn."""
MATCHED_LOOK_ROWS = 50_000
"""Matches processed at once when all are in memory: each batch costs some milliseconds."""


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Every match of a run, read in batches because this list grows with the business."""

    count: int
    batches: Callable[[], Iterator["pd.DataFrame"]]
    """Iterates over the rows in order, MATCH_COLUMNS; the same ones on each call."""


def matched_of(matches: "pd.DataFrame") -> MatchedRows:
    """Wrap matches that are already in memory."""

    def batches() -> Iterator["pd.DataFrame"]:
        for first in range(0, len(matches), MATCHED_LOOK_ROWS):
            yield matches.iloc[first : first + MATCHED_LOOK_ROWS]

    return MatchedRows(len(matches), batches)


@dataclass(frozen=True, slots=True)
class UnbookedExport:
    """A proposed journal that was exported and that the run's ledger does not show yet."""

    journal_id: str
    break_id: str
    order_no: str
    transaction_id: str
    currency: str
    amount: int
    """Amount still missing in the ledger, gateway less ledger, minor units."""
    run_id: str
    """The run that proposed it."""
    exported_at: datetime


@dataclass(frozen=True, slots=True)
class ListFile:
    """A file with every row of a list of a workbook, such as every match."""

    name: str
    """Path relative to the run's folder; for plain files, to the workbook."""
    rows: int
    size_bytes: int
    sha256: str


def files_named(
    files: Mapping[str, ListFile], *, matched_rows_max: int, open_rows_max: int
) -> dict[str, ListFile]:
    """Section -> file, for the lists that are too long for their sheets."""
    rows = {section: file.rows for section, file in files.items()}
    open_rows = sum(count for section, count in rows.items() if section != MATCHES)
    is_long = {True: rows.get(MATCHES, 0) > matched_rows_max, False: open_rows > open_rows_max}
    return {section: file for section, file in files.items() if is_long[section == MATCHES]}


PLAIN_FILES = "plain files"
"""Mode of the result of `recon reconcile`."""


OF_RESULT = (
    *("as_of", "verdict", "effects", "pending", "unverified", "sides", "movements", "journals"),
    *("bank", "control_totals", "unmapped_codes", "scope_of_assurance", "rules_digest"),
    "words_digest",
)
"""Names that a result and its figures have in common."""


@dataclass(frozen=True, slots=True)
class NightFigures:
    """Content of a report on a run or `recon reconcile`. Frames as in matching.breaks.result."""

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
    """BANK_DAYS_AHEAD after the business date, by the bank calendar."""
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
    """Changes of the previous night's breaks, and new breaks."""
    journals: "pd.DataFrame"
    """Proposed by this run, one row per line."""
    files: tuple[SourceFile, ...]
    rejects: tuple[Reject, ...]
    quarantined: tuple[Quarantined, ...] = ()
    """Order rows of any run that could not be read and were not delivered again since."""
    bridge: Mapping[SourceKind, Mapping[str, int]] = field(default_factory=dict)
    """Source -> step (proof.ledger_bridge) -> rows, from those of `files` to those compared."""
    ledger_sums: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Currency -> step (proof.ledger_bridge) -> minor units, from the ledger file to `sides`."""
    answers: Mapping[str, StoredAnswer] = field(default_factory=dict)
    """break_id -> answer given on an earlier night."""
    attention: tuple[Attention, ...] = ()
    trend: tuple[TrendPoint, ...] = ()
    opening_breaks: int | None = None
    """Open breaks of the previous night; None without one."""
    not_covered: tuple[str, ...] = ()
    unmapped_codes: tuple[Mapping[str, str | int], ...] = ()
    scope_of_assurance: tuple[Mapping[str, str | int], ...] = ()
    rules_digest: str = ""
    words_digest: str = ""
    history_head: str = ""
    ledger_covered: bool = True
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Sentences that page one must show, such as "reply signatures are not verified"."""
    stopped: str = ""
    """Sentences on what stopped sending and what was not sent; "" if nothing did."""
    handed_out: tuple[UnbookedExport, ...] = ()
    """Oldest first."""
    bank: Mapping[str, "pd.DataFrame"] = field(default_factory=dict)
    """Tables by name (matching.breaks.result.BANK_TABLES); empty without bank statements."""
    gateway_holds: GatewayHolds | None = None
    """Money that the gateway holds and fees it took; None without a settlement."""
    fees: ChargedFees | None = None
    """Fees compared with the fee contract; None without a contract or a settlement."""
    list_files: Mapping[str, ListFile] = field(default_factory=dict)
    """Each of LISTS_IN_FILES -> the result file of the run with all its rows."""
    matched_rows_max: int = MATCHED_ROWS_MAX
    matched_rows_shown: int = MATCHED_ROWS_DISPLAYED
    open_rows_max: int = OPEN_ROWS_MAX
    open_rows_shown: int = OPEN_ROWS_DISPLAYED

    @property
    def of_plain_files(self) -> bool:
        """Whether no run or history exists for it, so that no command signs or releases it."""
        return self.mode == PLAIN_FILES

    def files_named(self) -> dict[str, ListFile]:
        """Section -> file that its sheet names instead of listing each row."""
        return files_named(
            self.list_files,
            matched_rows_max=self.matched_rows_max,
            open_rows_max=self.open_rows_max,
        )
