"""What a run of plain files hands on to the next one (`--previous`), and what that makes of it.

A later run classifies all settlement lines together. A line that another file reports too, in this
run or an earlier one, counts once, and a settlement file that was read before is refused. Lines of
payments that the later run does not compare count in their batch and their fees only.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from recon.archive.step_folder import FileEntry, sealed_step
from recon.archive.storage import LocalStorage
from recon.config.rules import Rules
from recon.files.formats.json_text import read_json_object
from recon.files.reader import TableFacts, TableRead
from recon.matching.bank.bookings import BALANCE
from recon.matching.bank.receipts import stored_of
from recon.matching.bank.statements import content_of
from recon.matching.breaks.movements import left_open
from recon.matching.breaks.result import Reconciliation
from recon.matching.cash.batches import unsure_batches
from recon.matching.cash.ledger_groups import BASES, begins_of, grouped
from recon.matching.frames.arrays import texts
from recon.matching.frames.bank_sources import BankSource, chosen, together
from recon.matching.frames.coding import equals
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    Previous,
    Sources,
    frame_of,
)
from recon.matching.frames.total_rows import (
    ACCOUNT,
    ACCOUNT_KEY,
)
from recon.matching.frames.versions import REPEAT
from recon.matching.sides.agreed_fees import with_month_volumes
from recon.matching.sides.ledger_side import CLOSERS, entry_versions, is_base_type
from recon.matching.sides.payouts import classified_entries
from recon.matching.sides.settlement_side import PAY_OUT, as_earlier
from recon.model.errors import (
    ArchiveBrokenError,
    ArchiveError,
    SourceUnreadableError,
    UsageError,
)
from recon.model.terms import (
    EntryType,
    GatewayState,
    SourceFile,
    SourceKind,
)
from recon.privacy.displayed_text import redacted
from recon.steps.compare.result_files import (
    SUMMARY,
)
from recon.steps.compare.stored_sources import sources_of_night
from recon.steps.files.bank_files import BankFiles
from recon.steps.runtime.night_folder import INPUTS, SealedNight

NIGHT = "night"
"""The folder of a result that holds its sealed steps."""
CARRIED_FORWARD = "handed-on"
"""The step after a night's own; stored like a night's inputs and what it carried forward."""
NOTHING = Sources(
    orders=frame_of((), columns=ORDER_COLUMNS),
    gateway=frame_of((), columns=GATEWAY_COLUMNS),
    ledger=None,
    instructions=None,
)
_OF_BATCH = (*ACCOUNT_KEY, "batch_id")
Tables = Mapping[SourceKind, Sequence[TableRead]]
"""Kind -> the files of a run."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What an earlier run left open, and what it handed on."""

    carried: Sources = NOTHING
    """Settlement lines as the files reported them; ledger entries of fees, reserves, payouts and
    banks, and those that close their groups; every statement, with the entries in scope; batches
    with a line that could not be read and that no file has delivered since; and as files the
    settlement files that it or a run before it read, each under the name of its run."""
    previous: Previous | None = None
    entries: Mapping[str, FileEntry] = field(default_factory=dict)
    """Source -> its file in the sealed step."""

    def file(self, kind: SourceKind, rows: pd.DataFrame) -> SourceFile:
        """The file of a source that was carried forward."""
        entry, count = self.entries[kind.value], len(rows)
        name = f"{CARRIED_FORWARD}/{entry.name}"
        return SourceFile(kind, name, entry.sha256, entry.bytes, count, count, 0, 0)

    def with_carried(self, tables: Tables) -> Tables:
        """The tables of a run with those passed on.

        Open lines stay open though no newer ones are given. Without a ledger the earlier entries
        are passed on but not compared: none of the run's own payments would be booked in them.
        """

        def carried(kind: SourceKind, rows: pd.DataFrame | None) -> list[TableRead]:
            if rows is None or (kind is SourceKind.LEDGER and not tables[kind]):
                return []
            return [TableRead(rows, TableFacts((), self.file(kind, rows), (), ""))]

        before = {
            SourceKind.SETTLEMENT: self.carried.settlement,
            SourceKind.LEDGER: self.carried.ledger,
        }
        return {kind: [*carried(kind, before.get(kind)), *tables[kind]] for kind in tables}

    def refuse_known(self, tables: Iterable[TableRead]) -> None:
        """Refuse a settlement file that was read before, in this run or an earlier one.

        Files without rows are not refused: those of days without settlements are equal.

        Raises:
            UsageError: names the file, and how it was named when it was read.
        """
        known = {file.sha256: file.name for file in self.carried.files}
        for file in (table.facts.source_file for table in tables):
            if file.rows_read and file.sha256 in known:
                msg = (
                    f"the settlement file {redacted(file.name)} was read before, as "
                    f"{redacted(known[file.sha256])}, and its lines count: leave it out"
                )
                raise UsageError(msg)
            known[file.sha256] = file.name


def read_earlier_run(folder: Path) -> EarlierRun:
    """What the run that wrote a folder left open and handed on.

    Raises:
        SourceMissingError: the folder or its summary is missing.
        SourceUnreadableError: their content is not what one run wrote.
    """
    digest, storage = read_json_object(folder / SUMMARY).get("digest"), LocalStorage(folder)
    try:
        sealed = sealed_step(storage, folder=f"{NIGHT}/{CARRIED_FORWARD}")
        if sealed is None or sealed.manifest.about.run_id != digest:
            msg = f"{NIGHT}/{CARRIED_FORWARD} is of another run than {SUMMARY} beside it"
            raise ArchiveBrokenError(msg)
        carried, previous = sources_of_night(SealedNight("", storage, {INPUTS: sealed}))
    except (ArchiveError, OSError) as error:
        msg = f"{folder} is not as its run wrote it: {error}; run `recon reconcile` into it again"
        raise SourceUnreadableError(msg) from error
    files = {entry.name.removesuffix(".parquet"): entry for entry in sealed.manifest.files}
    return EarlierRun(carried, previous, files)


def as_compared(sources: Sources, *, earlier: EarlierRun, rules: Rules) -> Sources:
    """The sources with `ledger_since`; carried lines of other payments are marked as earlier."""
    carried = earlier.carried
    known = 0 if carried.settlement is None else len(carried.settlement)
    sources = with_month_volumes(sources, known=known, rules=rules)
    lines, ledger = sources.settlement, sources.ledger
    if lines is None:
        return sources
    if ledger is not None:
        zone = rules.business_calendar.zone
        since = dict(carried.ledger_since)
        for holder, day in begins_of(ledger, lines=lines, zone=zone).items():
            since[holder] = min(day, since.get(holder, day))
        sources = replace(sources, ledger_since=since)
    if carried.settlement is None:
        return sources
    # Lines of payments that an order, an answer or an instruction has stay as they are.
    old = np.arange(len(lines)) < known
    for name in ("order_no", "transaction_id"):
        frames = (sources.orders, sources.gateway, sources.instructions)
        own = pd.concat([each[[*ACCOUNT, name]] for each in frames if each is not None])
        keys = pd.MultiIndex.from_frame(own[own[name].ne("")])
        old &= ~pd.MultiIndex.from_frame(lines[[*ACCOUNT, name]]).isin(keys)
    return replace(sources, settlement=as_earlier(lines, rows=old))


def _batches(frames: Iterable[pd.DataFrame]) -> set[tuple[str, ...]]:
    """The batches that settlement lines tell of, each also without its currency."""
    batches = {
        key
        for lines in frames
        for own in [lines[~equals(lines["entry_type"], PAY_OUT)]]
        for key in zip(*(texts(own[name]) for name in _OF_BATCH), strict=True)
    }
    return batches | {(merchant, account, "", batch) for merchant, account, _, batch in batches}


def with_unread(sources: Sources, *, earlier: EarlierRun, given: Iterable[TableRead]) -> Sources:
    """The sources with the batches of which a line is still unread; `given` tell of batches."""
    before = earlier.carried.unread_batches
    if not before:
        return sources
    still = before - _batches(table.frame for table in given)
    return replace(sources, unread_batches=frozenset({*unsure_batches(sources), *still}))


def with_carried_bank(
    banks: BankFiles | None, *, earlier: EarlierRun, settlement: pd.DataFrame | None, rules: Rules
) -> BankFiles | None:
    """The statements of a run and those that were passed on, each with its entries in scope.

    A statement that this run read whole, with all its entries, replaces the one passed on.

    Args:
        banks: What was read now; None where no statement was given.
        earlier: What an earlier run passed on.
        settlement: SETTLEMENT_COLUMNS or None, for the batches that entries may name.
        rules: The banks.
    """
    carried = earlier.carried.bank
    every = [] if banks is None else [banks]
    if carried is not None:
        own = carried.entries[carried.entries["part"].eq(0)]
        every.insert(0, BankFiles(carried, (earlier.file(SourceKind.BANK, own),)))
    if not every:
        return None
    parts = [each.source for each in every]
    if len(parts) > 1:
        now = {*_identities(parts[1])}
        old = [n for n, each in enumerate(_identities(parts[0])) if each not in now]
        parts[0] = chosen(parts[0], numbers=old)
    batches = [] if settlement is None else settlement["batch_id"].unique().tolist()
    source = stored_of(together(parts), batches=batches, listed=(), rules=rules)
    return BankFiles(source, tuple(file for each in every for file in each.files))


def _identities(source: BankSource) -> Iterator[tuple[object, ...]]:
    for number, each in enumerate(source.statements):
        named = (each.iban, each.form, each.statement_no, each.from_date, each.created)
        yield (*named, *content_of(source, number))


def passed_on(
    sources: Sources,
    *,
    earlier: EarlierRun,
    lines: pd.DataFrame | None,
    banks: BankFiles | None,
    files: Iterable[SourceFile],
    run: str,
    rules: Rules,
) -> Sources:
    """What the next run compares with its own files: no order and no payment.

    Args:
        sources: What the run compared.
        earlier: What was passed on to it.
        lines: Its settlement lines, each once, before any was marked as earlier.
        banks: Its statements.
        files: Those that it read itself.
        run: Its name, under which the next run names its files.
        rules: The rules of the run.
    """
    carried = earlier.carried
    none = replace(NOTHING, ledger_since=sources.ledger_since or carried.ledger_since)
    if banks is not None:
        # A statement of an account that the rules do not name, or in another currency than its
        # bank, may be given again.
        currencies = {bank.iban: bank.currency for bank in rules.bank.values()}
        statements = enumerate(banks.source.statements)
        own = [n for n, each in statements if currencies.get(each.iban) == each.currency]
        needed = chosen(banks.source, numbers=own)
        none = replace(none, bank=BankSource(needed.entries, needed.statements) if own else None)
    if lines is None:
        return none
    entries = carried.ledger
    if sources.ledger is not None or entries is None:
        entries = _cash_of(sources, lines=lines, rules=rules)
    # Under its own source name: files of two runs may have the same name.
    lines, entries = (
        rows.assign(source=CARRIED_FORWARD, line=range(1, len(rows) + 1))
        for rows in (lines, entries)
    )
    before = {file.sha256 for file in carried.files}
    known = (
        replace(file, name=f"{run}/{file.name}")
        for file in files
        if file.kind is SourceKind.SETTLEMENT and file.sha256 not in before
    )
    unread = frozenset(batch for batch in unsure_batches(sources) if batch[-1])
    return replace(
        none,
        settlement=lines,
        ledger=entries,
        unread_batches=unread,
        files=(*carried.files, *known),
    )


def _cash_of(sources: Sources, *, lines: pd.DataFrame, rules: Rules) -> pd.DataFrame:
    """Ledger entries of fees, reserves and payouts, and those that close a group by naming it."""
    ledger = sources.ledger
    if ledger is None:
        return frame_of((), columns=LEDGER_COLUMNS)
    groups = grouped(replace(sources, settlement=lines), rules=rules)
    names = () if groups is None else (*groups.groups["key"], *groups.groups["name"])
    order_no, reference = ledger["order_no"], ledger["reference_no"]
    words = {*names} - {""}
    of_group = equals(order_no, *words) | (equals(order_no, "") & equals(reference, *words))
    for column in (order_no, reference):
        of_group |= column.str.startswith(f"{BALANCE}:").to_numpy(dtype=np.bool_)
    closers = is_base_type(ledger["entry_type"], *CLOSERS) & equals(ledger["transaction_id"], "")
    cash = is_base_type(ledger["entry_type"], *BASES.values(), EntryType.BANK)
    cash &= ~classified_entries(sources)
    needed: pd.DataFrame = ledger[
        (cash | (closers & of_group)) & (entry_versions(ledger) != REPEAT)
    ]
    return needed


def what_is_left_open(result: Reconciliation, *, previous: Previous | None) -> Previous:
    """What the next run continues; with every set that was seen as charged back."""
    frames = (result.breaks, result.matches, result.pending, result.unverified)
    back = (
        frame.loc[frame["state_gateway"].eq(GatewayState.CHARGEBACK.value), [*KEY_COLUMNS]]
        for frame in frames
    )
    return left_open(
        result.breaks,
        moved=result.movements,
        matched=result.matches["match_id"],
        as_of=result.as_of,
        previous=previous,
        chargebacks=pd.concat(back, ignore_index=True).drop_duplicates(ignore_index=True),
    )
