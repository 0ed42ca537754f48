"""What the matching reads of banks: typed entries, and the statements that they stand in.

Signed from the merchant's account: what came in is positive.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.matching.frames.arrays import columns_of

_LINES_AT_ONCE = 65_536
BOOKED, PENDING = "booked", "pending"
STATEMENT, REPORT, DETAILS = "statement", "report", "details"
"""What a document is: proven by its balances; of one day that is not over; details of entries."""

BANK_ENTRY_COLUMNS: Mapping[str, str] = columns_of("bank")
"""One row per entry (`part` 0) and, behind it, one per payment that it stands for; days are ISO
dates, `statement` is the number of its statement in the same BankSource, from 0."""


@dataclass(frozen=True, slots=True)
class BankStatement:
    """One statement, or page of one, as a file has it; amounts in minor units."""

    source: str
    """The file."""
    sha256: str
    iban: str
    statement_no: str
    currency: str
    from_date: str
    to_date: str
    form: str = STATEMENT
    opening: int | None = None
    """None, as `closing`, where the document has no balances: nothing proves it then."""
    closing: int | None = None
    booked: int = 0
    """The sum of its booked entries."""
    entries: int = 0
    """Booked ones."""
    created: str = ""
    others: int = 0
    """The sum of its booked entries that are not kept: other people's."""
    content: str = ""
    """What its entries say, as a digest, where not all of them are kept."""
    days_given: bool = True
    """False where the days are only those of its balances: a day without an entry leaves no gap."""


@dataclass(frozen=True, slots=True)
class RefusedBankFile:
    """A file of which nothing counts."""

    source: str
    why: str
    """In a sentence, with what to do."""


@dataclass(frozen=True, slots=True)
class BankSource:
    """Everything that banks say in one reconciliation."""

    entries: pd.DataFrame
    """BANK_ENTRY_COLUMNS."""
    statements: tuple[BankStatement, ...]
    refused: tuple[RefusedBankFile, ...] = ()
    notes: tuple[str, ...] = ()
    """What was read otherwise than it stands, in sentences."""
    night: "NightOfBank | None" = None
    """None: the given files are complete, and everything is shown."""


@dataclass(frozen=True, slots=True)
class NightOfBank:
    """What the night of one account knows of banks that it may share with other accounts."""

    account: tuple[str, str]
    """Merchant and account: what is of another one is shown by its own night."""
    banks: tuple[str, ...]
    """Those that the account is paid out at."""
    payouts: pd.DataFrame
    """SETTLEMENT_COLUMNS of the payout rows of every account that these banks serve."""
    known_to: Mapping[str, str]
    """Bank -> the last day up to which the payouts of all its other accounts are known."""
    shown_since: str
    """Payouts settled before that are shown only while they are open."""


def together(parts: list[BankSource]) -> BankSource:
    """The files of a reconciliation as one source."""
    entries: list[pd.DataFrame] = []
    statements: list[BankStatement] = []
    for part in parts:
        entries.append(part.entries.assign(statement=part.entries["statement"] + len(statements)))
        statements += part.statements
    return BankSource(
        entries=pd.concat(entries, ignore_index=True) if entries else no_entries(),
        statements=tuple(statements),
        refused=tuple(refusal for part in parts for refusal in part.refused),
        notes=tuple(note for part in parts for note in part.notes),
    )


def chosen(source: BankSource, *, numbers: Sequence[int]) -> BankSource:
    """Some statements of a source with their entries, numbered anew in the order of `numbers`."""
    places = {number: position for position, number in enumerate(numbers)}
    entries = source.entries[source.entries["statement"].isin(places)].reset_index(drop=True)
    renumbered = entries["statement"].map(places).astype("int64")
    return replace(
        source,
        entries=entries.assign(statement=renumbered),
        statements=tuple(source.statements[number] for number in numbers),
    )


def no_entries() -> pd.DataFrame:
    """BANK_ENTRY_COLUMNS without a row."""
    return pd.DataFrame(
        {name: pd.Series([], dtype=kind) for name, kind in BANK_ENTRY_COLUMNS.items()}
    )


def content_digest(entries: pd.DataFrame) -> str:
    """What the booked entries of one statement say, whatever their format and their order."""
    contents = Contents()
    contents.add(entries.assign(statement=0))
    return contents.digest(0)


@dataclass(slots=True)
class Contents:
    """What the booked entries of statements say, as they come, in as few bytes as it has."""

    _pieces: dict[int, list[pa.Table]] = field(default_factory=dict)

    def add(self, entries: pd.DataFrame) -> None:
        """Some rows of BANK_ENTRY_COLUMNS, of any statements."""
        counted = entries[entries["part"].eq(0) & entries["status"].eq(BOOKED)]
        for number in counted["statement"].unique().tolist():
            own = counted[counted["statement"].eq(number)]
            days = [pa.array(own[name].array, pa.string()).dictionary_encode() for name in _DAYS]
            columns = [*days, pa.array(own["amount"].to_numpy())]
            piece = pa.Table.from_arrays(columns, names=[*_DAYS, "amount"])
            self._pieces.setdefault(number, []).append(piece)

    def digest(self, statement: int, /) -> str:
        """Of one statement: its lines as text, in their order."""
        pieces = self._pieces.get(statement)
        return _digest_of(pa.concat_tables(pieces) if pieces else None)


_DAYS = ("booked_on", "value_on")


def _digest_of(rows: pa.Table | None) -> str:
    if rows is None:
        return hashlib.sha256().hexdigest()
    days = [rows[name].cast(pa.string()) for name in _DAYS]
    lines = pc.binary_join_element_wise(*days, rows["amount"].cast(pa.string()), " ")
    ordered = lines.take(pc.sort_indices(lines))
    digest = hashlib.sha256()
    for start in range(0, len(ordered), _LINES_AT_ONCE):
        several = ordered[start : start + _LINES_AT_ONCE].to_pylist()
        digest.update((("\n" if start else "") + "\n".join(several)).encode())
    return digest.hexdigest()
