"""Bank data that the matching reads: typed entries and the statements that contain them.

Amounts are signed from the merchant's account: receipts are positive.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from recon.matching.frames.arrays import columns_of

BOOKED, PENDING = "booked", "pending"
STATEMENT, REPORT, DETAILS = "statement", "report", "details"
"""Kinds of document: proven by its balances; of an unfinished day; details of entries."""

BANK_ENTRY_COLUMNS: Mapping[str, str] = columns_of("bank")
"""One row per entry (`source` 0), followed by one row per payment that it contains. Days are ISO
dates; `statement` is the number of the statement in its BankSource, from 0."""


@dataclass(frozen=True, slots=True)
class BankStatement:
    """One statement, or one page of one, as a file reports it; amounts in minor units."""

    source: str
    """The name of the file."""
    sha256: str
    iban: str
    statement_no: str
    currency: str
    from_date: str
    to_date: str
    form: str = STATEMENT
    opening: int | None = None
    """None, as `closing`, where the document has no balances, so that nothing proves it."""
    closing: int | None = None
    booked: int = 0
    """Sum of its booked entries."""
    entries: int = 0
    """Number of its booked entries."""
    created: str = ""
    others: int = 0
    """Sum of its booked entries that are not stored because they are not ours."""
    content: str = ""
    """Digest of the content of its entries, where not all of them are stored."""
    days_given: bool = True
    """False where only its balances have days: a day without an entry is then no gap."""


@dataclass(frozen=True, slots=True)
class RefusedBankFile:
    """A bank file that was refused as a whole."""

    source: str
    why: str
    """A sentence with the reason and what to do."""


@dataclass(frozen=True, slots=True)
class BankSource:
    """All bank data of one reconciliation."""

    entries: pd.DataFrame
    """BANK_ENTRY_COLUMNS."""
    statements: tuple[BankStatement, ...]
    refused: tuple[RefusedBankFile, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about data that was read in another way than it is written."""
    night: "NightOfBank | None" = None
    """None: the given files are complete, and everything is shown."""


@dataclass(frozen=True, slots=True)
class NightOfBank:
    """What one account's run knows of banks that the account may share with others."""

    account: tuple[str, str]
    """Merchant and account; findings of other accounts are shown by their own runs."""
    banks: tuple[str, ...]
    """Names of the banks that receive this account's payouts."""
    payouts: pd.DataFrame
    """SETTLEMENT_COLUMNS of the payout rows of every account that these banks serve."""
    known_to: Mapping[str, str]
    """Bank -> the last day up to which the payouts of all its other accounts are known."""
    shown_since: str
    """Payouts settled before this day are shown only while they are open."""


def together(sources: list[BankSource]) -> BankSource:
    """Merge the bank files of a reconciliation into one source."""
    entries: list[pd.DataFrame] = []
    statements: list[BankStatement] = []
    for source in sources:
        entries.append(
            source.entries.assign(statement=source.entries["statement"] + len(statements))
        )
        statements += source.statements
    return BankSource(
        entries=pd.concat(entries, ignore_index=True) if entries else no_entries(),
        statements=tuple(statements),
        refused=tuple(refusal for source in sources for refusal in source.refused),
        notes=tuple(note for source in sources for note in source.notes),
    )


def chosen(source: BankSource, *, numbers: Sequence[int]) -> BankSource:
    """Return some statements of a source with their entries, renumbered as in `numbers`."""
    positions = {number: position for position, number in enumerate(numbers)}
    entries = source.entries[source.entries["statement"].isin(positions)].reset_index(drop=True)
    renumbered = entries["statement"].map(positions).astype("int64")
    return replace(
        source,
        entries=entries.assign(statement=renumbered),
        statements=tuple(source.statements[number] for number in numbers),
    )


def no_entries() -> pd.DataFrame:
    """Return an empty frame of BANK_ENTRY_COLUMNS."""
    return pd.DataFrame(
        {name: pd.Series([], dtype=kind) for name, kind in BANK_ENTRY_COLUMNS.items()}
    )


def content_digest(entries: pd.DataFrame) -> str:
    """Return a digest of one statement's booked entries that ignores their format and order."""
    counted = entries[entries["part"].eq(0) & entries["status"].eq(BOOKED)]
    cells = (counted[name].tolist() for name in ("booked_on", "value_on", "amount"))
    lines = sorted(" ".join(map(str, row)) for row in zip(*cells, strict=True))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
