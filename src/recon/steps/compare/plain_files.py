"""One reconciliation of plain files without a database or a gateway: `recon reconcile`.

The folder of its results also has the sealed steps of the run in `night`: what was compared, the
result, and what a later run (`--previous`) carries forward. A later run classifies all settlement
lines together. A line that another file reports too, in this run or an earlier one, counts once,
and a settlement file that was read before is refused. Lines of payments that the later run does not
compare count in their batch and their fees only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property, partial, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recon import __version__
from recon.archive.rows_file import read_rows
from recon.archive.step_folder import About, Sealed, rows_of, sealed_step, whole_file, write_step
from recon.archive.storage import LocalStorage
from recon.config.fee_contract import FACTS
from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.config.settings import given_layouts, load_rules
from recon.files.formats.json_text import read_json_object
from recon.files.kinds.layouts import refuse_wrong_given
from recon.files.reader import TableFacts, TableRead, plain_table
from recon.files.typing.table_schema import schema_of
from recon.matching.bank.bookings import BALANCE
from recon.matching.bank.receipts import stored_of
from recon.matching.bank.result import covered_to
from recon.matching.bank.statements import content_of
from recon.matching.breaks.movements import left_open, with_reopened
from recon.matching.breaks.result import Reconciliation
from recon.matching.cash.batches import BatchOf, unsure_batches
from recon.matching.cash.fees_charged import charged_fees
from recon.matching.cash.ledger_groups import BASES, begins_of, grouped
from recon.matching.codes import with_table
from recon.matching.frames.arrays import texts
from recon.matching.frames.bank_sources import BankSource, chosen, together
from recon.matching.frames.coding import equals
from recon.matching.frames.grouping import Bools
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTANT,
    INSTRUCTION_COLUMNS,
    KEY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Previous,
    Sources,
    frame_of,
)
from recon.matching.frames.total_rows import (
    ACCOUNT,
    ACCOUNT_KEY,
    AccountKey,
    counts,
    paired,
    sums,
)
from recon.matching.frames.versions import REPEAT
from recon.matching.sides.agreed_fees import with_month_volumes
from recon.matching.sides.instruction_side import with_each_instruction_once
from recon.matching.sides.ledger_side import CLOSERS, entry_versions, is_base_type
from recon.matching.sides.payouts import classified_entries
from recon.matching.sides.settlement_side import PAY_OUT, as_earlier
from recon.model.errors import ArchiveBrokenError, OutputError, SourceUnreadableError, UsageError
from recon.model.figures import (
    BANK_DAYS_AHEAD,
    BATCH_COLUMNS,
    INSTRUCTION_SHEET_COLUMNS,
    OF_RESULT,
    PLAIN_FILES,
    Attention,
    NightFigures,
    matched_of,
)
from recon.model.money import format_minor_units
from recon.model.terms import (
    DOUBTFUL_STATES,
    Clock,
    ControlTotal,
    EntryType,
    GatewayState,
    SourceFile,
    SourceKind,
)
from recon.privacy.shown_text import redacted
from recon.proof.ledger_bridge import LedgerSteps, bridge_of, ledger_steps
from recon.proof.night_tables import (
    absent_of,
    compared_tables,
    input_tables,
    previous_of_tables,
    result_tables,
    sources_of_tables,
)
from recon.steps.compare.result_files import (
    FEE_CLAIMS,
    SUMMARY,
    WORKBOOK,
    claims_csv,
    files_of_lists,
    output_folder,
    reported,
    result_files,
    write_files,
)
from recon.steps.compare.sheets_proven import SheetTotals, held_against, with_t13
from recon.steps.compare.shown_breaks import severe_breaks
from recon.steps.files.bank_files import BankFiles, read_bank_files
from recon.steps.files.incomplete import NO_LEDGER, why_incomplete
from recon.steps.files.newest_export import Export, is_newer, parts_of_name

NIGHT = "night"
"""The folder of a result that holds its sealed steps."""
INPUTS, RESULTS, CARRIED_FORWARD = "inputs", "results", "handed-on"
"""In order; what is passed on is stored there like a night's inputs and what it carried forward."""
NO_ACCOUNT = ("", "")
"""Account of the totals: the files may hold several."""
BATCHES_NAMED_MAX = 5
"""Unread batches that the notes name."""
SEVERAL = "several"
"""Shown as the merchant or account where the files hold more than one."""
_COLUMNS = {
    SourceKind.ORDERS: ORDER_COLUMNS,
    SourceKind.GATEWAY: GATEWAY_COLUMNS,
    SourceKind.LEDGER: LEDGER_COLUMNS,
    SourceKind.INSTRUCTIONS: INSTRUCTION_COLUMNS,
    SourceKind.SETTLEMENT: SETTLEMENT_COLUMNS,
}
"""Columns of each table, under the name that it has in a request and in `Sources`."""
_REPORTED = tuple(name for name in SETTLEMENT_COLUMNS if name not in {"source", "line", *FACTS})
"""Columns in which a line equals its repeat."""
_OF_BATCH = (*ACCOUNT_KEY, "batch_id")
_OF_AN_ORDER = (*ACCOUNT, "order_no")
WriteWorkbook = Callable[[NightFigures, Path], Path]
ReadTotals = Callable[..., SheetTotals]
"""Totals of the sheets of a workbook, as read back from the file. `companions`: name of a file in
the workbook -> its path, which is still a temporary one."""
Tables = Mapping[SourceKind, tuple[TableRead, ...]]
"""Kind -> the files of a run."""


@dataclass(frozen=True, slots=True)
class PlainFilesRequest:
    """Which files to reconcile, as of which business date, and where the results go."""

    orders: tuple[Path, ...]
    gateway: tuple[Path, ...]
    as_of: date
    out: Path
    ledger: tuple[Path, ...] = ()
    """Empty: leg B is not covered."""
    instructions: tuple[Path, ...] = ()
    """Empty: instructions are not checked."""
    settlement: tuple[Path, ...] = ()
    """Empty: settlement, fees and payouts are not covered."""
    bank: tuple[Path, ...] = ()
    rules_file: Path | None = None
    fees_file: Path | None = None
    """The fee contract; None: the one of the configuration."""
    previous: Path | None = None
    """Output folder of an earlier run."""
    layouts: tuple[Path, ...] = ()
    """Layouts of files that are not in the standard format."""


def reconcile_files(
    request: PlainFilesRequest,
    *,
    clock: Clock,
    write_workbook: WriteWorkbook,
    sheet_totals: ReadTotals | None = None,
) -> Reconciliation:
    """Read the files, compare them, and write every result into the output folder.

    The workbook is read back: where its totals differ from those of the results, the run is NOT
    PROVEN by T13, and everything is written once more, with the difference stated.

    Raises:
        UsageError: a file is named twice, or was read before.
        ConfigurationError: the rules are wrong.
        SourceMissingError: a file does not exist.
        SourceUnreadableError: the content of a file does not fit its name.
        OutputError: the results cannot be written; an earlier run's files are kept.
    """
    _refuse_named_twice(request)
    # pandas and the engine take a while to load; a wrong argument should be reported at once.
    from recon.proof.engine import reconcile

    # The columns of a run are large and live as long as it: Arrow's own pool releases their pages
    # and takes them again (a million orders: 3 to 4 s of system time, here under 1 s).
    pa.set_memory_pool(pa.system_memory_pool())
    rules = with_table(
        load_rules(config_dir=None, rules_file=request.rules_file, fees_file=request.fees_file)
    )
    # Imported late like the comparison, so that `--help` does not load it.
    from recon.proof.totals_in_sql import control_totals
    from recon.proof.verdict import with_totals

    with output_folder(request.out) as place:
        run = _Run.read(request, rules=rules)
        as_of = rules.business_calendar.closes_at(request.as_of)
        compared = reconcile(run.sources, rules=rules, as_of=as_of, previous=run.earlier.previous)
        run.seal(compared, place=place)
        totals = control_totals(place / NIGHT, account=NO_ACCOUNT)
        result = with_totals(compared, totals=[*totals, *run.lines_totals()])
        notes, there = (*run.notes(compared),), frozenset(request.out.iterdir())
        write = partial(run.write, place, notes=notes, clock=clock, write_workbook=write_workbook)
        figures, workbook = write(result)
        sheets: tuple[ControlTotal, ...] = ()
        if sheet_totals is not None:
            _, sheets = held_against(
                sheet_totals(workbook, companions={path.name: path for path in place.iterdir()}),
                results=place / NIGHT / RESULTS,
                files=figures.files_named(),
                verdict=result.verdict,
                account=NO_ACCOUNT,
            )
        if not all(total.passed for total in sheets):
            result = with_t13(result, totals=sheets)
            # A workbook that equals an earlier run's is that run's file, and stays.
            if workbook not in there:
                workbook.unlink()
            write(result)
    if figures.fees is None:
        (request.out / FEE_CLAIMS).unlink(missing_ok=True)
    return result


def _refuse_named_twice(request: PlainFilesRequest) -> None:
    for kind in (*_COLUMNS, SourceKind.BANK):
        for path, times in Counter(getattr(request, kind.value)).items():
            if times > 1:
                msg = f"{path} is named twice as {kind}; its rows would count twice"
                raise UsageError(msg)


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What an earlier run left open and passed on."""

    previous: Previous | None = None
    lines: TableRead | None = None
    """Settlement lines as the files reported them."""
    entries: TableRead | None = None
    """Ledger entries of fees, reserves, payouts and banks, and those that close their groups."""
    bank: BankFiles | None = None
    """Every statement, with the entries in scope."""
    unread: frozenset[BatchOf] = frozenset()
    """Batches with a line that could not be read and that no file has delivered since."""
    ledger_since: Mapping[tuple[str, str], str] = field(default_factory=dict)
    known: tuple[SourceFile, ...] = ()
    """Settlement files that it or a run before it read, each under the name of its run."""


def read_earlier_run(folder: Path) -> EarlierRun:
    """What the run that wrote a folder left open and passed on.

    Raises:
        SourceMissingError: the folder or its summary is missing.
        SourceUnreadableError: their content is not what one run wrote.
    """
    digest, storage = read_json_object(folder / SUMMARY).get("digest"), LocalStorage(folder)
    try:
        sealed = _of_result(storage, digest=digest)
        entries = {entry.name.removesuffix(".parquet"): entry for entry in sealed.manifest.files}
        tables = {
            name: read_rows(whole_file(storage, sealed, name=entry.name), name=entry.name)
            for name, entry in entries.items()
        }
    except (ArchiveBrokenError, OSError) as error:
        msg = f"{folder} is not as its run wrote it: {error}; run `recon reconcile` into it again"
        raise SourceUnreadableError(msg) from error
    sources = sources_of_tables(tables)

    def file(kind: SourceKind, frame: pd.DataFrame) -> SourceFile:
        entry, rows = entries[kind], len(frame)
        name = f"{CARRIED_FORWARD}/{entry.name}"
        return SourceFile(kind, name, entry.sha256, entry.bytes, rows, rows, 0, 0)

    def table(kind: SourceKind, frame: pd.DataFrame | None) -> TableRead | None:
        if frame is None:
            return None
        return TableRead(frame, TableFacts((), file(kind, frame), (), ""))

    bank = sources.bank
    return EarlierRun(
        previous_of_tables(tables),
        table(SourceKind.SETTLEMENT, sources.settlement),
        table(SourceKind.LEDGER, sources.ledger),
        None
        if bank is None
        else BankFiles(bank, (file(SourceKind.BANK, bank.entries[bank.entries["part"].eq(0)]),)),
        sources.unread_batches or frozenset(),
        sources.ledger_since,
        sources.files,
    )


def _of_result(storage: LocalStorage, *, digest: object) -> Sealed:
    """What the run of a result passed on."""
    sealed = sealed_step(storage, folder=f"{NIGHT}/{CARRIED_FORWARD}")
    if sealed is None or sealed.manifest.about.run_id != digest:
        msg = f"{NIGHT}/{CARRIED_FORWARD} is of another run than {SUMMARY} beside it"
        raise ArchiveBrokenError(msg)
    return sealed


@dataclass(frozen=True)
class _Run:
    """What a run read, and what it carries forward from an earlier one."""

    request: PlainFilesRequest
    rules: Rules
    earlier: EarlierRun
    given: Tables
    tables: Tables
    """With what was carried forward, each settlement line once."""
    banks: BankFiles | None
    """With what was carried forward."""
    sources: Sources
    """What is compared."""

    @classmethod
    def read(cls, request: PlainFilesRequest, *, rules: Rules) -> "_Run":
        """Read the files, and refuse those that an earlier run has read already."""
        earlier = EarlierRun() if request.previous is None else read_earlier_run(request.previous)
        layouts = given_layouts(request.layouts)
        refuse_wrong_given(layouts)
        given = {
            kind: tuple(
                plain_table(
                    path, schema=schema_of(kind), rules=rules, layout=layouts.of(path, kind=kind)
                )
                for path in getattr(request, kind.value)
            )
            for kind in _COLUMNS
        }
        _refuse_known(given[SourceKind.SETTLEMENT], earlier=earlier)
        how = [layouts.of(path, kind=SourceKind.ORDERS) for path in request.orders]
        current = {SourceKind.ORDERS: _newest_rows(given[SourceKind.ORDERS], layouts=how)}
        tables = _with_carried(given | current, earlier=earlier)
        facts = [table.facts for several in tables.values() for table in several]
        frames: dict[str, Any] = {
            kind.value: pd.concat([table.frame for table in several], ignore_index=True)[[*columns]]
            if (several := tables[kind])
            else None
            for kind, columns in _COLUMNS.items()
        }
        sources = Sources(
            **frames,
            rejects=tuple(reject for each in facts for reject in each.rejects),
            files=tuple(each.source_file for each in facts),
        )
        statements = (
            read_bank_files(request.bank, rules=rules, layouts=layouts) if request.bank else None
        )
        banks = _with_carried_bank(
            statements, earlier=earlier, settlement=sources.settlement, rules=rules
        )
        if banks is not None:  # a refused file is reported by its own entry
            sources = replace(sources, bank=banks.source, files=(*sources.files, *banks.files))
        if earlier.unread:
            listed = _batches(table.frame for table in given[SourceKind.SETTLEMENT])
            unread = frozenset({*unsure_batches(sources), *(earlier.unread - listed)})
            sources = replace(sources, unread_batches=unread)
        sources = with_each_instruction_once(sources)
        compared = _as_compared(sources, earlier=earlier, rules=rules)
        return cls(request, rules, earlier, given, tables, banks, compared)

    @cached_property
    def ledger_sums(self) -> LedgerSteps:
        """Every step of the ledger's money."""
        return ledger_steps(self.sources, rules=self.rules)

    def notes(self, result: Reconciliation) -> Iterator[str]:
        """What is missing, which columns were not read, and what rests on earlier files alone."""
        request, earlier = self.request, self.earlier
        for lack in why_incomplete(result, sources=self.sources, rules=self.rules):
            what = "no ledger was given (--ledger)" if lack == NO_LEDGER else lack
            yield f"Incomplete: {what.rstrip('.')}."
        for several in self.tables.values():
            for table in several:
                if columns := table.facts.ignored_columns:
                    yield (
                        f"{redacted(table.facts.source_file.name)}: nothing was read from the "
                        f"unknown columns {', '.join(map(redacted, columns))}."
                    )
        # Carried lines come first, so files are paired from the last one on.
        kind = SourceKind.SETTLEMENT
        for before, once in zip(self.given[kind][::-1], self.tables[kind][::-1], strict=False):
            if number := len(before.frame) - len(once.frame):
                net = Counter[str]()
                left, right = (sums(table.frame, column="net") for table in (before, once))
                for place in left:
                    net[place[2]] += left[place] - right.get(place, 0)
                amounts = (
                    f"{format_minor_units(net[one], currency=one)} {one}" for one in sorted(net)
                )
                yield (
                    f"{redacted(before.facts.source_file.name)}: {number} lines, net "
                    f"{', '.join(amounts)}, are in another file, too, and count once."
                )
        kind = SourceKind.ORDERS
        for before, once in zip(self.given[kind], self.tables[kind], strict=True):
            if number := len(before.frame) - len(once.frame):
                name = redacted(before.facts.source_file.name)
                yield f"{name}: rows that a later file of its layout replaces: {number}."
        if batches := sorted({batch for *_, batch in self.sources.unread_batches or ()}):
            named = ", ".join(map(redacted, batches[:BATCHES_NAMED_MAX]))
            yield (
                f"Settlement batches with a line that could not be read: {len(batches)} ({named}); "
                "have their file delivered again."
            )
        if earlier.lines is not None and not request.settlement:
            days = texts(earlier.lines.frame["settled_on"])
            newest = f", the newest settled on {days.max()}" if days.size else ""
            yield (
                f"No settlement file was given: the {days.size} lines that earlier runs read are "
                f"compared{newest}."
            )
        if earlier.bank is not None and not request.bank and "counted" in result.bank:
            until = covered_to(result.bank["counted"])
            days_of = {name: f"to {until[name]}" for name in until}
            banks = self.rules.bank
            reach = ", ".join(f"{redacted(n)} {days_of.get(n, 'not at all')}" for n in banks)
            sentence = "No statement of a bank was given: those that earlier runs read are compared"
            yield f"{sentence}, covered are {reach}." if reach else f"{sentence}."

    def lines_totals(self) -> Iterator[ControlTotal]:
        """T2 of settlement lines: Σ of the most that one file has of each = Σ compared."""
        lines, compared = self.earlier.lines, self.sources.settlement
        tables = [*([lines] if lines else []), *self.given[SourceKind.SETTLEMENT]]
        if compared is None or not tables[1:]:
            return
        rows = (zip(*(each.frame[n].tolist() for n in _REPORTED), strict=True) for each in tables)
        none = Counter[tuple[Any, ...]]()
        times, net = Counter[AccountKey](), Counter[AccountKey]()
        for cells, number in reduce(or_, map(Counter, rows), none).items():
            line = dict(zip(_REPORTED, cells, strict=True))
            place = line["merchant_id"], line["account_id"], line["currency"]
            times[place] += number
            net[place] += number * line["net"]
        name = "settlement: each line as often as in the file that has it most often = compared"
        yield from paired("T2", name, left=times, right=counts(compared), measure="count")
        right = sums(compared, column="net")
        yield from paired("T2", name, left=net, right=right, measure="amount")

    def seal(self, result: Reconciliation, *, place: Path) -> None:
        """Write the sealed steps of the run below a temporary folder."""
        rules, sources, storage = self.rules, self.sources, LocalStorage(place)
        before, after = self.earlier.previous, dict[str, str]()
        handed, left = self._passed_on(), _left_open(result, previous=before)
        small = compared_tables(sources, rules=rules, previous=before, ledger_sums=self.ledger_sums)
        next_small = compared_tables(handed, rules=rules, previous=left, ledger_sums={})
        with reported(self.request.out / NIGHT):
            for step, tables in (
                (INPUTS, chain(input_tables(sources), small.items())),
                (RESULTS, result_tables(result)),
                (CARRIED_FORWARD, chain(input_tables(handed), next_small.items())),
            ):
                about = About(
                    run_id=result.digest,
                    merchant_id="",
                    account_id="",
                    business_date=self.request.as_of.isoformat(),
                    mode=PLAIN_FILES,
                    step=step,
                    predecessor="",
                    rules_digest=rules.digest,
                    product_version=__version__,
                    history_before="",
                    after={**after},
                    absent=absent_of(sources) if step == INPUTS else (),
                )
                sealed = write_step(storage, night=NIGHT, about=about, parts=rows_of(tables))
                after[step] = sealed.sha256

    def _passed_on(self) -> Sources:
        """What the next run compares with its own files: no order and no payment."""
        sources, earlier, banks = self.sources, self.earlier, self.banks
        none = Sources(
            orders=frame_of((), columns=ORDER_COLUMNS),
            gateway=frame_of((), columns=GATEWAY_COLUMNS),
            ledger=None,
            instructions=None,
            ledger_since=sources.ledger_since or earlier.ledger_since,
        )
        if banks is not None:
            # A statement of an account that the rules do not name, or in another currency than its
            # bank, may be given again.
            currencies = {bank.iban: bank.currency for bank in self.rules.bank.values()}
            statements = enumerate(banks.source.statements)
            own = [n for n, each in statements if currencies.get(each.iban) == each.currency]
            needed = chosen(banks.source, numbers=own)
            none = replace(
                none, bank=BankSource(needed.entries, needed.statements) if own else None
            )
        settled = self.tables[SourceKind.SETTLEMENT]
        if not settled:
            return none
        lines = pd.concat([table.frame for table in settled], ignore_index=True)
        entries = None if earlier.entries is None else earlier.entries.frame
        if sources.ledger is not None or entries is None:
            entries = _cash_of(sources, lines=lines, rules=self.rules)
        # Under its own source name: files of two runs may have the same name.
        lines, entries = (
            rows.assign(source=CARRIED_FORWARD, line=range(1, len(rows) + 1))
            for rows in (lines, entries)
        )
        run, before = self.request.out.resolve().name, {file.sha256 for file in earlier.known}
        known = (
            replace(file, name=f"{run}/{file.name}")
            for table in self.given[SourceKind.SETTLEMENT]
            for file in [table.facts.source_file]
            if file.sha256 not in before
        )
        unread = frozenset(batch for batch in unsure_batches(sources) if batch[-1])
        return replace(
            none,
            settlement=lines,
            ledger=entries,
            unread_batches=unread,
            files=(*earlier.known, *known),
        )

    def write(
        self,
        place: Path,
        result: Reconciliation,
        *,
        notes: tuple[str, ...],
        clock: Clock,
        write_workbook: WriteWorkbook,
    ) -> tuple[NightFigures, Path]:
        """Write the result files and the workbook; return what it shows, and its path.

        Next to an earlier run's workbook, that path has another name than the usual one.
        """
        out, sources, opening = self.request.out, self.sources, self.earlier.previous
        day = self.request.as_of
        figures = plain_figures(
            result, sources=sources, business_date=day, clock=clock, rules=self.rules
        )
        claims = {} if figures.fees is None else {FEE_CLAIMS: claims_csv(figures.fees)}
        files = result_files(result, rejects=sources.rejects, files=sources.files)
        write_files(place, {**claims, **files})
        figures = replace(
            figures,
            notes=notes,
            ledger_sums=self.ledger_sums,
            opening_breaks=None if opening is None else len(opening.breaks),
            list_files=files_of_lists(place, result=result),
        )
        path = out / WORKBOOK
        try:
            return figures, write_workbook(figures, path)
        except OSError as error:
            msg = (
                f"the workbook {path} cannot be written: {error.strerror}; the files of an earlier "
                "run were kept; close the workbook or name another folder and run again"
            )
            raise OutputError(msg) from error


def _left_open(result: Reconciliation, *, previous: Previous | None) -> Previous:
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


def _refuse_known(tables: Iterable[TableRead], *, earlier: EarlierRun) -> None:
    """Refuse a settlement file that was read before, in this run or an earlier one.

    Files without rows are not refused: those of days without settlements are equal.

    Raises:
        UsageError: names the file, and how it was named when it was read.
    """
    known = {file.sha256: file.name for file in earlier.known}
    for file in (table.facts.source_file for table in tables):
        if file.rows_read and file.sha256 in known:
            msg = (
                f"the settlement file {redacted(file.name)} was read before, as "
                f"{redacted(known[file.sha256])}, and its lines count: leave it out"
            )
            raise UsageError(msg)
        known[file.sha256] = file.name


def _with_carried(tables: Tables, *, earlier: EarlierRun) -> Tables:
    """The tables of a run with those passed on, each settlement line once.

    Open lines stay open though no newer ones are given. Without a ledger the earlier entries are
    passed on but not compared: none of the run's own payments would be booked in them.
    """
    settled, booked = tables[SourceKind.SETTLEMENT], tables[SourceKind.LEDGER]
    if earlier.lines is not None:
        settled = (earlier.lines, *settled)
    if booked and earlier.entries is not None:
        booked = (earlier.entries, *booked)
    return {**tables, SourceKind.SETTLEMENT: _each_line_once(settled), SourceKind.LEDGER: booked}


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
    return tuple(_without(table, rows=rows) for table, rows in zip(tables, again, strict=True))


def _without(table: TableRead, *, rows: Bools) -> TableRead:
    """A table less the marked rows, which count as skipped."""
    if not rows.any():
        return table
    file, number = table.facts.source_file, int(rows.sum())
    file = replace(
        file, rows_accepted=file.rows_accepted - number, rows_skipped=file.rows_skipped + number
    )
    frame = table.frame[~rows].reset_index(drop=True)
    return TableRead(frame, table.facts._replace(source_file=file))


def _batches(frames: Iterable[pd.DataFrame]) -> set[tuple[str, ...]]:
    """The batches that settlement lines tell of, each also without its currency."""
    batches = {
        key
        for lines in frames
        for own in [lines[~equals(lines["entry_type"], PAY_OUT)]]
        for key in zip(*(texts(own[name]) for name in _OF_BATCH), strict=True)
    }
    return batches | {(merchant, account, "", batch) for merchant, account, _, batch in batches}


def _newest_rows(
    tables: Sequence[TableRead], *, layouts: Sequence[FileLayout]
) -> tuple[TableRead, ...]:
    """The order files; where their layout says so, without the rows that a newer file repeats.

    A row that states since when it holds is not replaced by one that states an older time. A file
    that is not surely newer than the one before it (by name) neither replaces nor is replaced.
    """
    never_older = pd.Timestamp.max.tz_localize("UTC").floor("us")
    exports = [
        Export(table.facts.source_file.name, reach=None if times.empty else times.max())
        for table in tables
        for times in [table.frame["ordered_at"]]
    ]
    chains: dict[str, list[int]] = {}
    for at in sorted(range(len(tables)), key=lambda at: parts_of_name(exports[at].name)):
        if layouts[at].newest_file_counts:
            chain = chains.setdefault(layouts[at].files, [])
            if not chain or is_newer(exports[at], than=exports[chain[-1]]):
                chain.append(at)
    current = list(tables)
    for chain in chains.values():
        anew: pd.Series[Any] | None = None
        for at in reversed(chain):
            frame = tables[at].frame
            keys = pd.MultiIndex.from_frame(frame[[*_OF_AN_ORDER]].astype(str))
            since = pd.Series(frame["updated_at"].array, index=keys)
            own = since.fillna(never_older)
            later = own.iloc[:0] if anew is None else anew
            stated = later.reindex(keys)
            over = stated.notna() & (since.isna() | (stated >= since))
            current[at] = _without(tables[at], rows=over.to_numpy())
            anew = pd.concat([later, own]).groupby(level=[*_OF_AN_ORDER]).max()
    return tuple(current)


def _as_compared(sources: Sources, *, earlier: EarlierRun, rules: Rules) -> Sources:
    """The sources with `ledger_since`; carried lines of other payments are marked as earlier."""
    known = 0 if earlier.lines is None else len(earlier.lines.frame)
    sources = with_month_volumes(sources, known=known, rules=rules)
    lines, ledger = sources.settlement, sources.ledger
    if lines is None:
        return sources
    if ledger is not None:
        zone = rules.business_calendar.zone
        since = dict(earlier.ledger_since)
        for holder, day in begins_of(ledger, lines=lines, zone=zone).items():
            since[holder] = min(day, since.get(holder, day))
        sources = replace(sources, ledger_since=since)
    if earlier.lines is None:
        return sources
    # Lines of payments that an order, an answer or an instruction has stay as they are.
    old = np.arange(len(lines)) < known
    for name in ("order_no", "transaction_id"):
        frames = (sources.orders, sources.gateway, sources.instructions)
        own = pd.concat([each[[*ACCOUNT, name]] for each in frames if each is not None])
        keys = pd.MultiIndex.from_frame(own[own[name].ne("")])
        old &= ~pd.MultiIndex.from_frame(lines[[*ACCOUNT, name]]).isin(keys)
    return replace(sources, settlement=as_earlier(lines, rows=old))


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


def _with_carried_bank(
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
    every = [each for each in (earlier.bank, banks) if each is not None]
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


def plain_figures(
    result: Reconciliation, *, sources: Sources, business_date: date, clock: Clock, rules: Rules
) -> NightFigures:
    """Everything that the workbook shows of plain files; no database knows this run."""
    matches = result.matches  # before the digest, which is computed from the same rows
    doubtful = _attention(sources.instructions, as_of=result.as_of)
    calendar = rules.business_calendar
    severe = severe_breaks(result.breaks, answers={}, calendar=calendar, began_at=result.as_of)

    def only(name: str) -> str:
        names = sorted({*sources.orders[name].unique(), *sources.gateway[name].unique()} - {""})
        return SEVERAL if len(names) > 1 else "".join(names)

    moves = sources.instructions
    if moves is None:
        moves = frame_of((), columns=INSTRUCTION_COLUMNS)
    blank: dict[str, Any] = {name: "" for name in INSTRUCTION_SHEET_COLUMNS if name not in moves}
    blank |= {"attempt": 0, "in_doubt_since": pd.Series(dtype=INSTANT)}
    return NightFigures(
        **{name: getattr(result, name) for name in OF_RESULT},
        merchant_id=only("merchant_id"),
        account_id=only("account_id"),
        merchant_name="",
        business_date=business_date,
        run_id=result.digest[:12],
        mode=PLAIN_FILES,
        generated_at=clock(),
        timezone=rules.calendar.timezone,
        bank_until=rules.bank_calendar.business_day_after(business_date, days=BANK_DAYS_AHEAD),
        breaks=with_reopened(result),
        matches=matched_of(matches),
        gateway_holds=result.gateway_holds,
        fees=charged_fees(sources, contract=rules.fee_contract),
        instructions=moves.assign(**blank)[[*INSTRUCTION_SHEET_COLUMNS]],
        batches=pd.DataFrame(columns=[*BATCH_COLUMNS], dtype="str"),
        files=sources.files,
        rejects=sources.rejects,
        bridge=bridge_of(sources),
        attention=(*doubtful, *severe),
        not_covered=result.not_covered,
        ledger_covered=sources.ledger is not None,
    )


def _attention(frame: pd.DataFrame | None, *, as_of: datetime) -> tuple[Attention, ...]:
    """One item per instruction whose money may or may not have moved."""
    if frame is None:
        return ()
    doubtful = frame[frame["state"].isin([str(state) for state in DOUBTFUL_STATES])]
    return tuple(
        Attention(
            what=f"{row['kind']} in doubt",
            order_no=row["order_no"],
            transaction_id=row["transaction_id"],
            currency=row["currency"],
            amount=int(row["amount"]),
            since=as_of if pd.isna(row["sent_at"]) else row["sent_at"].to_pydatetime(),
            next_step="Look the payment up at the gateway and settle the instruction by hand.",
            is_urgent=True,
        )
        for row in doubtful.to_dict("records")
    )
