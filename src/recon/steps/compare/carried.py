"""What one run of plain files passes to the next, sealed with its inputs and results in `night`.

A later run classifies all settlement lines together. A line that another file reports too, in this
run or an earlier one, counts once, and a file that was read before is refused with the name of the
run that read it. Lines of payments that the later run does not compare count in their batch and
their fees only.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from itertools import chain
from operator import attrgetter, or_
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recon import __version__
from recon.archive.rows_file import read_rows
from recon.archive.step_folder import (
    MANIFEST,
    About,
    Document,
    Part,
    Sealed,
    entry_of,
    rows_of,
    sealed_step,
    whole_file,
    write_step,
)
from recon.archive.storage import LocalStorage, Storage
from recon.config.fee_contract import FACTS
from recon.config.rules import Rules
from recon.files.formats.json_text import read_json_object
from recon.files.reader import TableFacts, TableRead
from recon.matching.bank.bookings import BALANCE
from recon.matching.bank.receipts import stored_of
from recon.matching.bank.result import covered_to
from recon.matching.bank.statements import content_of
from recon.matching.breaks.movements import left_open
from recon.matching.breaks.result import Reconciliation
from recon.matching.cash.book_groups import BASES, begins_of, grouped
from recon.matching.frames.arrays import texts
from recon.matching.frames.bank_sources import BankSource, chosen, together
from recon.matching.frames.coding import equals
from recon.matching.frames.grouping import Bools
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Previous,
    Sources,
    frame_of,
)
from recon.matching.frames.total_rows import ACCOUNT, Place, counts, paired, sums
from recon.matching.frames.versions import REPEAT
from recon.matching.sides.agreed_fees import with_month_volumes
from recon.matching.sides.ledger_side import CLOSERS, entry_versions, is_base_type
from recon.matching.sides.payouts import classified_entries
from recon.matching.sides.settlement_side import PAY_OUT, as_earlier
from recon.model.errors import (
    ArchiveBrokenError,
    SourceMissingError,
    SourceUnreadableError,
    UsageError,
)
from recon.model.figures import PLAIN_FILES
from recon.model.money import format_minor_units
from recon.model.terms import ControlTotal, EntryType, GatewayState, Reject, SourceFile, SourceKind
from recon.privacy.shown_text import redacted
from recon.proof.books_bridge import Books
from recon.proof.night_tables import (
    absent_of,
    compared_tables,
    input_tables,
    previous_of_tables,
    result_tables,
    sources_of_tables,
)
from recon.steps.compare.result_files import SUMMARY
from recon.steps.files.bank_files import BankFiles

NIGHT = "night"
"""The folder of a result that holds its sealed steps."""
INPUTS, RESULTS, CARRIED_FORWARD = STEPS = ("inputs", "results", "handed-on")
"""In order; what is passed on is stored there like a night's inputs and what it carried forward."""
KNOWN = "known.json"
_KEPT = tuple(name for name in SETTLEMENT_COLUMNS if name not in {"source", "line"})
_REPORTED = tuple(name for name in _KEPT if name not in FACTS)
"""Columns in which a line equals its repeat."""
_OF_BATCH = ("merchant_id", "account_id", "currency", "batch_id")
_NAMES = ("order_no", "transaction_id")
Tables = Mapping[SourceKind, tuple[TableRead, ...]]
"""Kind -> the files of a run."""


@dataclass(frozen=True, slots=True)
class FileReadBefore:
    """A settlement file or bank statement that an earlier run has read."""

    kind: str
    name: str
    sha256: str
    run: str
    """The folder of the run that read it first."""
    as_of: str


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What an earlier run left open and passed on."""

    previous: Previous | None = None
    sources: Sources = field(
        default_factory=lambda: Sources(
            orders=frame_of((), columns=ORDER_COLUMNS),
            gateway=frame_of((), columns=GATEWAY_COLUMNS),
            ledger=None,
            instructions=None,
        )
    )
    """Settlement lines as the files reported them; ledger entries of fees, reserves, payouts and
    those that close their groups; rejected lines that no file has delivered since; every bank
    statement, with the entries in scope. No orders and no payments."""
    files: Mapping[SourceKind, SourceFile] = field(default_factory=dict)
    """The files of the earlier run that hold these rows."""
    known: tuple[FileReadBefore, ...] = ()

    def table(self, kind: SourceKind) -> TableRead | None:
        """The rows of a kind that were passed on, as a file of its own; None without any."""
        frame: pd.DataFrame | None = getattr(self.sources, kind.value)
        if frame is None:
            return None
        return TableRead(frame, TableFacts((), self.files[kind], (), ""))


def read_earlier_run(folder: Path) -> EarlierRun:
    """What the run that wrote a folder left open and passed on.

    Raises:
        SourceMissingError: the folder, its summary or a step is missing.
        SourceUnreadableError: their content is not what one run wrote.
    """
    if not folder.is_dir():
        msg = f"the folder of the earlier run {folder} does not exist"
        raise SourceMissingError(msg)
    digest = read_json_object(folder / SUMMARY).get("digest")
    storage = LocalStorage(folder)
    try:
        sealed = _last_step(storage, result=digest)
        content = {
            entry.name: whole_file(storage, sealed, name=entry.name)
            for entry in sealed.manifest.files
        }
    except (ArchiveBrokenError, OSError) as error:
        msg = f"{folder} is not as its run wrote it: {error}; run `recon reconcile` into it again"
        raise SourceUnreadableError(msg) from error
    document = json.loads(content.pop(KNOWN))
    tables = {
        name.removesuffix(".parquet"): read_rows(each, name=name) for name, each in content.items()
    }
    sources, files = sources_of_tables(tables), dict[SourceKind, SourceFile]()
    for name in ("settlement", "ledger", "bank"):
        if entry := entry_of(sealed, name=f"{name}.parquet"):
            kind, rows = SourceKind(name), entry.rows
            if name == "bank" and sources.bank is not None:  # an entry is a row
                rows = int(sources.bank.entries["part"].eq(0).sum())
            shown = f"{CARRIED_FORWARD}/{entry.name}"
            files[kind] = SourceFile(kind, shown, entry.sha256, entry.bytes, rows, rows, 0, 0)
    return EarlierRun(
        previous_of_tables(tables),
        sources,
        files,
        tuple(FileReadBefore(**row) for row in document["files"]),
    )


def _last_step(storage: Storage, *, result: object) -> Sealed:
    """The last step (what was passed on), after checking that all steps belong to one result."""
    steps: list[Sealed] = []
    for step in STEPS:
        sealed = sealed_step(storage, folder=f"{NIGHT}/{step}")
        if sealed is None:
            msg = f"{storage.shown}/{NIGHT}/{step}/{MANIFEST} does not exist"
            raise SourceMissingError(msg)
        about = sealed.manifest.about
        after = {before.manifest.about.step: before.sha256 for before in steps}
        if (about.run_id, about.after) != (result, after):
            msg = f"{sealed.folder} is of another run than {SUMMARY} beside it"
            raise ArchiveBrokenError(msg)
        steps.append(sealed)
    return steps[-1]


def refuse_known(tables: Iterable[TableRead], *, earlier: EarlierRun) -> None:
    """Refuse a settlement file that was read before, in this run or an earlier one.

    Files without rows are not refused: those of days without settlements are equal.

    Raises:
        UsageError: names the file and the run that read it.
    """
    before = {file.sha256: file for file in earlier.known}
    given_here: dict[str, str] = {}
    for table in tables:
        file = table.facts.source_file
        if not file.rows_read:
            continue
        name = redacted(file.name)
        if first := before.get(file.sha256):
            msg = (
                f"the settlement file {name} was read by the run {redacted(first.run)} as of "
                f"{first.as_of}, as {redacted(first.name)}; its lines are carried on by "
                "--previous: leave it out"
            )
            raise UsageError(msg)
        if other := given_here.get(file.sha256):
            msg = f"the settlement files {redacted(other)} and {name} are one file; name it once"
            raise UsageError(msg)
        given_here[file.sha256] = file.name


def with_carried(tables: Tables, *, earlier: EarlierRun) -> Tables:
    """The tables of a run with those passed on, each settlement line once.

    Open lines stay open though no newer ones are given. Without a ledger the earlier entries are
    passed on but not compared: none of the run's own payments would be booked in them.
    """
    settled, booked = tables[SourceKind.SETTLEMENT], tables[SourceKind.LEDGER]
    lines, entries = earlier.table(SourceKind.SETTLEMENT), earlier.table(SourceKind.LEDGER)
    if lines is None:
        return {**tables, SourceKind.SETTLEMENT: _each_line_once(settled)}
    refused = earlier.sources.rejects
    settled = _each_line_once((_with_refused(lines, refused=refused, given=settled), *settled))
    if booked and entries is not None:
        booked = (entries, *booked)
    return {**tables, SourceKind.SETTLEMENT: settled, SourceKind.LEDGER: booked}


def _with_refused(
    lines: TableRead, *, refused: Iterable[Reject], given: Sequence[TableRead]
) -> TableRead:
    """The carried lines with the carried rejects, except those whose batch a given file has."""
    batches = {
        key
        for table in given
        for own in [table.frame[~equals(table.frame["entry_type"], PAY_OUT)]]
        for key in zip(*(texts(own[name]) for name in _OF_BATCH), strict=True)
    }
    batches |= {(*key[:2], "", key[3]) for key in batches}
    left = tuple(bad for bad in refused if attrgetter(*_OF_BATCH)(bad) not in batches)
    file = lines.facts.source_file
    file = replace(
        file, rows_read=file.rows_read + len(left), rows_rejected=file.rows_rejected + len(left)
    )
    return TableRead(lines.frame, lines.facts._replace(rejects=left, source_file=file))


def _each_line_once(tables: Sequence[TableRead]) -> tuple[TableRead, ...]:
    """The tables, each without the lines that those before it report.

    A line counts as often as the file that has it most often: its second occurrence in a file is
    repeated by the second in another file, not by the first.
    """
    if not tables[1:]:
        return tuple(tables)
    lines = pd.concat([table.frame[[*_REPORTED]] for table in tables], ignore_index=True)
    sizes = [len(table.frame) for table in tables]
    lines["nth"] = lines.groupby([np.repeat(range(len(sizes)), sizes), *_REPORTED]).cumcount()
    again = np.split(lines.duplicated().to_numpy(), np.cumsum(sizes)[:-1])
    return tuple(without(table, rows=rows) for table, rows in zip(tables, again, strict=True))


def lines_totals(
    read: Tables, *, earlier: EarlierRun, compared: pd.DataFrame | None
) -> Iterator[ControlTotal]:
    """T2 of settlement lines: Σ of the most that one file has of each = Σ of what is compared."""
    lines = earlier.table(SourceKind.SETTLEMENT)
    tables = (*((lines,) if lines else ()), *read[SourceKind.SETTLEMENT])
    if compared is None or not tables[1:]:
        return
    none = Counter[tuple[Any, ...]]()
    rows = (zip(*(table.frame[n].tolist() for n in _REPORTED), strict=True) for table in tables)
    most = reduce(or_, map(Counter, rows), none)
    times, net = Counter[Place](), Counter[Place]()
    for cells, number in most.items():
        line = dict(zip(_REPORTED, cells, strict=True))
        place = line["merchant_id"], line["account_id"], line["currency"]
        times[place] += number
        net[place] += number * line["net"]
    name = "settlement: each line as often as the file that tells it most often = compared"
    yield from paired("T2", name, left=times, right=counts(compared), measure="count")
    right = sums(compared, column="net")
    yield from paired("T2", name, left=net, right=right, measure="amount")


def reported_again(read: Tables, *, tables: Tables) -> Iterator[str]:
    """A sentence per settlement file with lines that another one reports too: number, net sum."""
    kind = SourceKind.SETTLEMENT
    for before, once in zip(read[kind][::-1], tables[kind][::-1], strict=False):
        number = len(before.frame) - len(once.frame)
        if number:
            net = Counter[str]()
            left, right = (sums(table.frame, column="net") for table in (before, once))
            for place in left:
                net[place[2]] += left[place] - right.get(place, 0)
            amounts = (f"{format_minor_units(net[one], currency=one)} {one}" for one in sorted(net))
            yield (
                f"{redacted(before.facts.source_file.name)}: {number} lines, net "
                f"{', '.join(amounts)}, were told by another file, too, and count once."
            )


def without(table: TableRead, *, rows: Bools) -> TableRead:
    """A table less the marked rows, which count as skipped."""
    if not rows.any():
        return table
    file, number = table.facts.source_file, int(rows.sum())
    file = replace(
        file, rows_accepted=file.rows_accepted - number, rows_skipped=file.rows_skipped + number
    )
    frame = table.frame[~rows].reset_index(drop=True)
    return TableRead(frame, table.facts._replace(source_file=file))


def as_compared(sources: Sources, *, earlier: EarlierRun, rules: Rules) -> Sources:
    """The sources with `books_since`; carried lines of other payments are marked as earlier."""
    before = earlier.sources
    known = 0 if before.settlement is None else len(before.settlement)
    sources = with_month_volumes(sources, known=known, rules=rules)
    lines, ledger = sources.settlement, sources.ledger
    if lines is None:
        return sources
    if ledger is not None:
        zone = rules.business_calendar.zone
        since = dict(before.books_since)
        for holder, day in begins_of(ledger, lines=lines, zone=zone).items():
            since[holder] = min(day, since.get(holder, day))
        sources = replace(sources, books_since=since)
    if before.settlement is None:
        return sources
    old = np.arange(len(lines)) < known
    return replace(sources, settlement=as_earlier(lines, rows=old & ~_named(lines, by=sources)))


def _named(lines: pd.DataFrame, *, by: Sources) -> Bools:
    """Marks the lines of payments that an order, an answer or an instruction has."""
    named = np.zeros(len(lines), dtype=np.bool_)
    frames = [frame for frame in (by.orders, by.gateway, by.instructions) if frame is not None]
    for name in _NAMES:
        known = {
            key
            for frame in frames
            for key in zip(*(texts(frame[own]) for own in (*ACCOUNT, name)), strict=True)
            if key[2]
        }
        keys = zip(*(texts(lines[own]) for own in (*ACCOUNT, name)), strict=True)
        named |= np.array([key in known for key in keys], dtype=np.bool_)
    return named


def passed_on(
    result: Reconciliation,
    *,
    sources: Sources,
    tables: Tables,
    banks: BankFiles | None,
    earlier: EarlierRun,
    run: tuple[str, str],
    rules: Rules,
) -> EarlierRun:
    """What a run leaves open and passes on to the next.

    Args:
        result: The result of the comparison.
        sources: What was compared.
        tables: What was read, with what an earlier run passed on.
        banks: Statements that were read, with those passed on by an earlier run.
        earlier: What an earlier run passed on.
        run: Name of the run's folder, and its business date.
        rules: How the ledger books fees, and the banks.
    """
    settled, lines, entries = tables[SourceKind.SETTLEMENT], None, None
    refused: list[Reject] = []
    if settled:
        lines = pd.concat([table.frame for table in settled], ignore_index=True)
        refused = [bad for table in settled for bad in table.facts.rejects]
        refused = [*_by_batch(refused, lines=lines)]
        entries = earlier.sources.ledger
        if sources.ledger is not None or entries is None:
            entries = _cash_of(sources, lines=lines, rules=rules)
        # Under its own source name: files of two runs may have the same name.
        lines, entries = (
            rows.assign(source=CARRIED_FORWARD, line=range(1, len(rows) + 1))
            for rows in (lines, entries)
        )
    bank = None if banks is None else _handed_bank(banks.source, rules=rules)
    files = [table.facts.source_file for table in settled]
    if bank is not None and banks is not None:
        left = {each.sha256 for each in {*banks.source.statements} - {*bank.statements}}
        files += [file for file in banks.files if file.sha256 not in left]
    before = {file.sha256 for file in earlier.known}
    before |= {file.sha256 for file in earlier.files.values()}
    known = (
        FileReadBefore(file.kind.value, file.name, file.sha256, *run)
        for file in files
        if file.sha256 not in before
    )
    return EarlierRun(
        left_open(
            result.breaks,
            moved=result.movements,
            matched=result.matches["match_id"],
            as_of=result.as_of,
            previous=earlier.previous,
            chargebacks=_charged_back(result),
        ),
        replace(
            EarlierRun().sources,
            settlement=lines,
            ledger=entries,
            rejects=tuple(refused),
            bank=bank,
            books_since=sources.books_since or earlier.sources.books_since,
        ),
        known=(*earlier.known, *known),
    )


def _charged_back(result: Reconciliation) -> pd.DataFrame:
    """KEY_COLUMNS of every set that a run saw as charged back."""
    frames = (result.breaks, result.matches, result.pending, result.unverified)
    back = (
        frame.loc[frame["state_gateway"].eq(GatewayState.CHARGEBACK.value), [*KEY_COLUMNS]]
        for frame in frames
    )
    return pd.concat(back, ignore_index=True).drop_duplicates(ignore_index=True)


def seal_night(
    night: Path,
    *,
    result: Reconciliation,
    sources: Sources,
    previous: Previous | None,
    books: Books,
    handed: EarlierRun,
    rules: Rules,
) -> None:
    """Write the steps of a run: what it compared, its result, and what it passes on.

    Args:
        night: The folder of the steps, which must not exist yet.
        result: The result of the comparison.
        sources: What was compared.
        previous: What an earlier run left open.
        books: Every step of the ledger's money.
        handed: See `passed_on`.
        rules: The rules of the comparison.

    Raises:
        OSError: they cannot be written.
    """
    document = {"files": [*map(asdict, handed.known)]}
    small = compared_tables(sources, rules=rules, previous=previous, books=books)
    next_small = compared_tables(handed.sources, rules=rules, previous=handed.previous, books={})
    steps: dict[str, Iterable[Part]] = {
        INPUTS: rows_of(chain(input_tables(sources), small.items())),
        RESULTS: rows_of(result_tables(result)),
        CARRIED_FORWARD: chain(
            rows_of(chain(input_tables(handed.sources), next_small.items())),
            [Document(KNOWN, json.dumps(document, ensure_ascii=False).encode())],
        ),
    }
    after: dict[str, str] = {}
    for step, parts in steps.items():
        about = About(
            run_id=result.digest,
            merchant_id="",
            account_id="",
            business_date=rules.business_calendar.local_date(result.as_of).isoformat(),
            mode=PLAIN_FILES,
            step=step,
            predecessor="",
            rules_digest=rules.digest,
            product_version=__version__,
            history_before="",
            after={**after},
            absent=absent_of(sources) if step == INPUTS else (),
        )
        storage = LocalStorage(night.parent)
        after[step] = write_step(storage, night=night.name, about=about, parts=parts).sha256


def _by_batch(refused: Iterable[Reject], *, lines: pd.DataFrame) -> Iterator[Reject]:
    """Each rejected line once; one without a readable batch once for every batch of its file."""
    for bad in (replace(each, value="", order_no="") for each in refused):
        if bad.batch_id:
            yield bad
            continue
        mine = lines[lines["source"].eq(bad.source)]
        keys = {*zip(*(mine[name].tolist() for name in (*ACCOUNT, "batch_id")), strict=True)}
        for merchant, account, batch in sorted(keys):
            yield replace(bad, merchant_id=merchant, account_id=account, batch_id=batch)


def _cash_of(sources: Sources, *, lines: pd.DataFrame, rules: Rules) -> pd.DataFrame:
    """Ledger entries of fees, reserves and payouts, and those that close a group by naming it."""
    ledger = sources.ledger
    if ledger is None:
        return frame_of((), columns=LEDGER_COLUMNS)
    cash = is_base_type(ledger["entry_type"], *BASES.values(), EntryType.BANK)
    cash &= ~classified_entries(sources)
    closers = is_base_type(ledger["entry_type"], *CLOSERS) & (texts(ledger["transaction_id"]) == "")
    once = entry_versions(ledger) != REPEAT
    entries = ledger[(cash | closers) & once]
    named = grouped(replace(sources, settlement=lines, ledger=entries), rules=rules)
    names = named.groups if named is not None else {"key": np.array([]), "name": np.array([])}
    words = {*names["key"].tolist(), *names["name"].tolist()} - {""}
    order_no = texts(entries["order_no"])
    of_group = equals(entries["order_no"], *words)
    of_group |= (order_no == "") & equals(entries["reference_no"], *words)
    for name in ("order_no", "reference_no"):
        of_group |= entries[name].str.startswith(f"{BALANCE}:").to_numpy(dtype=np.bool_)
    kept: pd.DataFrame = entries[cash[(cash | closers) & once] | of_group]
    return kept


def with_carried_bank(
    banks: BankFiles | None, *, earlier: EarlierRun, settlement: pd.DataFrame | None, rules: Rules
) -> BankFiles | None:
    """The statements of a run and those that were passed on, each with its entries in scope.

    Args:
        banks: What was read now; None where no statement was given.
        earlier: What an earlier run passed on.
        settlement: SETTLEMENT_COLUMNS or None, for the batches that entries may name.
        rules: The banks.

    Raises:
        UsageError: names a file that an earlier run read, and that run.
    """
    carried = earlier.sources.bank
    batches = [] if settlement is None else settlement["batch_id"].unique().tolist()
    if carried is None or banks is None:
        source, files = (carried, [earlier.files[SourceKind.BANK]]) if carried else (None, [])
        if banks is not None:
            source, files = banks.source, [*banks.files]
    else:
        first = len(carried.statements)
        before = {file.sha256: file for file in earlier.known}
        if given_again := [file for file in banks.files if file.sha256 in before]:
            both = together([carried, banks.source])
            own = stored_of(both, batches=batches, listed=(), rules=rules)
            for file in given_again:
                _refuse_known(file, known=before[file.sha256], own=own, first=first)
        # A statement that this run read whole, with all its entries, replaces the one passed on.
        now = {_identity(banks.source, n) for n in range(len(banks.source.statements))}
        old = chosen(carried, numbers=[n for n in range(first) if _identity(carried, n) not in now])
        source = together([old, banks.source])
        files = [earlier.files[SourceKind.BANK], *banks.files]
    if source is None:
        return None
    return BankFiles(stored_of(source, batches=batches, listed=(), rules=rules), (*files,))


def _refuse_known(file: SourceFile, *, known: FileReadBefore, own: BankSource, first: int) -> None:
    """Refuse a file without more of our entries than when an earlier run read it."""
    mine = [n for n, each in enumerate(own.statements) if each.sha256 == file.sha256]
    entries = own.entries[own.entries["statement"].isin(mine)]
    fresh = entries["statement"].ge(first)
    if int(fresh.sum()) > int((~fresh).sum()):
        return
    name = redacted(file.name)
    msg = (
        f"the bank's file {name} was read by the run {redacted(known.run)} as of {known.as_of}, "
        f"as {redacted(known.name)}; what it says of ours is carried on by --previous: leave it out"
    )
    raise UsageError(msg)


def _identity(source: BankSource, number: int) -> tuple[object, ...]:
    statement = source.statements[number]
    named = (statement.iban, statement.form, statement.statement_no, statement.from_date)
    return (*named, statement.created, *content_of(source, number))


def _handed_bank(source: BankSource, *, rules: Rules) -> BankSource | None:
    """The statements that are passed on; None without one.

    A statement of an account that the rules do not name, or in another currency than its bank, is
    not passed on, and its file may be given again.
    """
    currencies = {bank.iban: bank.currency for bank in rules.bank.values()}
    numbers = [
        number
        for number, statement in enumerate(source.statements)
        if currencies.get(statement.iban) == statement.currency
    ]
    kept = chosen(source, numbers=numbers)
    return BankSource(kept.entries, kept.statements) if numbers else None


def by_carried_statements(result: Reconciliation, *, rules: Rules) -> tuple[str, ...]:
    """Says that only statements of earlier runs are used, and to which day they cover each bank."""
    counted = result.bank.get("counted")
    if counted is None:
        return ()
    days = covered_to(counted)
    reach = ", ".join(
        f"{redacted(name)} to {days[name]}" if name in days else f"{redacted(name)} not at all"
        for name in rules.bank
    )
    sentence = "No statement of a bank was given: those that earlier runs read are judged"
    return (f"{sentence}, covered are {reach}." if reach else f"{sentence}.",)
