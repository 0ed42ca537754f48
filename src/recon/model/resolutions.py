"""Answers of people to breaks: as stored, and as read from a returned workbook.

Plain values: `reports` reads the file, `steps/approvals` checks and stores, the next workbook shows
what is stored. An answer never closes a break (only the ledger does); it names its owner.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Any

from recon.model.terms import SEVERE
from recon.privacy.displayed_text import for_people

RESOLUTIONS = (
    "Order corrected",
    "Ledger corrected",
    "Refunded",
    "Captured",
    "Timing - will clear",
    "Gateway asked",
    "Written off (approved)",
    "No action needed",
    "Other - see comment",
)
"""Choices of the resolution column on the sheet Breaks."""
WRITE_OFF = "Written off (approved)"
"""It gives money up, so it counts only when a second person has agreed."""

THIS_BREAK = "This break"
WHOLE_CAUSE = "Every break of this cause"
FROM_CAUSE = "Came with its cause"
SCOPES = (THIS_BREAK, WHOLE_CAUSE, FROM_CAUSE)
"""How far an answer reaches. The last one marks an answer copied from another break; entered by a
person, it means this break."""

OWNER_CHARACTERS_MAX = 60
COMMENT_CHARACTERS_MAX = 500


@dataclass(frozen=True, slots=True)
class BreakAnswer:
    """The input cells of one break as a person filled them in."""

    resolution: str = ""
    owner: str = ""
    comment: str = ""
    resolved_on: date | None = None

    @property
    def is_blank(self) -> bool:
        """Whether nothing was entered."""
        return not (self.resolution or self.owner or self.comment or self.resolved_on)

    @property
    def is_looked_after(self) -> bool:
        """Whether the break has an owner and a comment, which is enough to sign its run."""
        return bool(self.owner and self.comment)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The latest answer to a break, as later workbooks show it."""

    answer: BreakAnswer
    version: int
    """1 for the first answer; a workbook with an older version is stale for this break."""
    by: str
    waits: bool
    """A write-off that no second person has agreed to."""
    scope: str = ""
    """One of SCOPES."""
    at: datetime | None = None
    """When it was given."""

    def valid_since(self, night: datetime, *, zone: tzinfo) -> str:
        """That it was given before a night began that shows its break still; "" where it was not.

        Such as "answered on 20 Nov by Jo Hill, still there".
        """
        if self.at is None or self.at >= night:
            return ""
        return f"answered on {self.at.astimezone(zone):%-d %b} by {self.by}, still there"


def lacking(breaks: Mapping[str, str], answers: Mapping[str, StoredAnswer]) -> tuple[int, int]:
    """Number of high and critical breaks, and of those among them without owner and comment.

    `breaks` has their severities; a run is signed when the second number is 0.
    """
    severe = [key for key, severity in breaks.items() if severity in SEVERE]
    left = [key for key in severe if key not in answers or not answers[key].answer.is_looked_after]
    return len(severe), len(left)


def answered_text(breaks: Mapping[str, str], answers: Mapping[str, StoredAnswer]) -> str:
    """The numbers of `lacking` as text, and how many breaks are answered at all.

    Such as "each of the 15 high and critical breaks has an owner and a comment; 15 of 103 breaks
    are answered".
    """
    severe, left = lacking(breaks, answers)
    named = "high and critical breaks"
    if not severe:
        words = "no break is high or critical"
    elif left:
        words = f"{left:,} of {severe:,} {named} lack an owner or a comment"
    elif severe == 1:
        words = "the one break that is high or critical has an owner and a comment"
    else:
        words = f"each of the {severe:,} {named} has an owner and a comment"
    answered = sum(key in answers for key in breaks)
    return f"{words}; {answered:,} of {len(breaks):,} breaks are answered"


def still_there(
    breaks: Iterable[str], answers: Mapping[str, StoredAnswer], *, night: datetime, zone: tzinfo
) -> str:
    """Text with the number of breaks answered before a run that still shows them; "" for none."""
    known = [answers[key] for key in breaks if key in answers]
    count = sum(bool(each.valid_since(night, zone=zone)) for each in known)
    were, are = ("s were", "are") if count > 1 else (" was", "is")
    return f"{count:,} break{were} answered before this night and {are} still there" * bool(count)


def with_answers(
    breaks: Iterable[Mapping[Any, Any]], answers: Mapping[str, StoredAnswer]
) -> Iterator[dict[str, Any]]:
    """Breaks with the resolution, owner and comment of their answer; "" without one."""
    for each in breaks:
        known = answers.get(str(each["break_id"]))
        answer = known.answer if known else BreakAnswer()
        given = {name: getattr(answer, name) for name in ("resolution", "owner", "comment")}
        yield {**{str(name): cell for name, cell in each.items()}, **given}


@dataclass(frozen=True, slots=True)
class WorkbookRefusal:
    """One cell of a returned workbook that was not accepted, and why."""

    cell: str
    """Such as `Breaks!Y12`."""
    value: str
    reason: str

    def __post_init__(self) -> None:
        """Mask the value, because a cell may contain anything."""
        object.__setattr__(self, "value", for_people(self.value))


@dataclass(frozen=True, slots=True)
class ReturnedRow:
    """One row of Breaks in a returned workbook."""

    number: int
    """Its row on the sheet."""
    break_id: str
    version: int
    answer: BreakAnswer
    scope: str
    cells: Mapping[str, str]
    """Title of an input column -> its cell, for messages."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A returned workbook, read but not yet checked."""

    name: str
    sha256: str
    facts: Mapping[str, str]
    """Facts of the run on its hidden sheet."""
    keys: tuple[str, ...]
    """The break key of every row, including unreadable ones."""
    rows: tuple[ReturnedRow, ...]
    refusals: tuple[WorkbookRefusal, ...]
    """Cells that cannot be read as an answer; their rows are not in `rows`."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One answer that was stored."""

    break_id: str
    order_no: str
    answer: BreakAnswer
    version: int
    row: int
    waits: bool
    scope: str = THIS_BREAK
    """One of SCOPES."""

    @property
    def covers_cause(self) -> bool:
        """Whether it was copied from the answer to another break of the same cause."""
        return self.scope == FROM_CAUSE


@dataclass(frozen=True, slots=True)
class Import:
    """The result of importing a returned workbook."""

    name: str
    sha256: str
    run_id: str
    by: str
    taken: tuple[Taken, ...] = ()
    unchanged: int = 0
    blank: int = 0
    refusals: tuple[WorkbookRefusal, ...] = ()
    repeated: bool = False
    """The same file was imported before: nothing was done."""
