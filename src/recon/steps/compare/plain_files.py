"""One reconciliation of plain files without a database or a gateway: `recon reconcile`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.config.settings import given_layouts, load_rules
from recon.files.kinds.layouts import refuse_wrong_given
from recon.files.reader import TableRead, plain_table
from recon.files.typing.table_schema import schema_of
from recon.matching.breaks.movements import with_reopened
from recon.matching.breaks.result import Reconciliation
from recon.matching.cash.fees_charged import charged_fees
from recon.matching.frames.arrays import texts
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTANT,
    INSTRUCTION_COLUMNS,
    LEDGER_COLUMNS,
    MINOR_UNITS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    TEXT,
    Sources,
)
from recon.matching.sides.instruction_side import with_each_instruction_once
from recon.model.errors import OutputError, UsageError
from recon.model.figures import (
    BANK_DAYS_AHEAD,
    BATCH_COLUMNS,
    INSTRUCTION_SHEET_COLUMNS,
    OF_RESULT,
    PLAIN_FILES,
    Attention,
    ListFile,
    NightFigures,
    matched_of,
)
from recon.model.terms import DOUBTFUL_STATES, Clock, ControlTotal, SourceKind
from recon.privacy.shown_text import redacted
from recon.proof.books_bridge import Books, books_of, bridge_of
from recon.steps.compare.carried import (
    NIGHT,
    RESULTS,
    EarlierRun,
    Tables,
    as_compared,
    by_carried_statements,
    lines_totals,
    passed_on,
    read_earlier_run,
    refuse_known,
    reported_again,
    seal_night,
    with_carried,
    with_carried_bank,
    without,
)
from recon.steps.compare.result_files import (
    FEE_CLAIMS,
    WORKBOOK,
    claims_csv,
    files_of_lists,
    output_folder,
    publish,
    result_files,
    stage,
    staged_folder,
)
from recon.steps.compare.sheets_proven import SheetTotals, held_against, with_t13
from recon.steps.compare.shown_breaks import severe_breaks
from recon.steps.files.bank_files import BankFiles, read_bank_files
from recon.steps.files.incomplete import NO_LEDGER, why_incomplete
from recon.steps.files.newest_export import Export, is_newer, parts_of_name

_OF_AN_ORDER = ("merchant_id", "account_id", "order_no")
NO_ACCOUNT = ("", "")
"""Account of the totals: the files may hold several."""
SEVERAL = "several"
"""Shown as the merchant or account where the files hold more than one."""


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

    moves = pd.DataFrame() if sources.instructions is None else sources.instructions
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
        instructions=pd.DataFrame(
            {
                name: moves[name].reset_index(drop=True)
                if name in moves
                else pd.Series([cell] * len(moves), dtype=kind)  # what a file cannot state
                for name in INSTRUCTION_SHEET_COLUMNS
                for kind, cell in [_BLANK.get(name, (TEXT, ""))]
            }
        ),
        batches=pd.DataFrame({name: pd.Series(dtype=TEXT) for name in BATCH_COLUMNS}),
        files=sources.files,
        rejects=sources.rejects,
        bridge=bridge_of(sources),
        attention=(*doubtful, *severe),
        not_covered=result.not_covered,
        ledger_covered=sources.ledger is not None,
    )


_BLANK: Mapping[str, tuple[str, object]] = {
    **dict.fromkeys(("sent_at", "outcome_at", "in_doubt_since"), (INSTANT, pd.NaT)),
    **dict.fromkeys(("amount", "attempt"), (MINOR_UNITS, 0)),
}
"""Columns that are not text -> their type, and the value where none is given."""


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


_COLUMNS = {
    SourceKind.ORDERS: ORDER_COLUMNS,
    SourceKind.GATEWAY: GATEWAY_COLUMNS,
    SourceKind.LEDGER: LEDGER_COLUMNS,
    SourceKind.INSTRUCTIONS: INSTRUCTION_COLUMNS,
    SourceKind.SETTLEMENT: SETTLEMENT_COLUMNS,
}
"""Columns of each table, under the name that it has in a request and in `Sources`."""
WriteWorkbook = Callable[[NightFigures, Path], Path]
ReadTotals = Callable[..., SheetTotals]
"""Totals of the sheets of a workbook, as read back from the file. `companions`: name of a file in
the workbook -> its path, which is still a temporary one."""


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
    config_dir: Path | None = None
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
        UsageError: no file of a kind that is needed, or one named twice.
        ConfigurationError: the rules are wrong.
        SourceMissingError: a file does not exist.
        SourceUnreadableError: the content of a file does not fit its name.
        OutputError: the results cannot be written; an earlier run's files are kept.
    """
    _refuse_unfit(request)
    # pandas and the engine take a while to load; a wrong argument should be reported at once.
    from recon.proof.engine import reconcile

    # The columns of a run are large and live as long as it: Arrow's own pool releases their pages
    # and takes them again (a million orders: 3 to 4 s of system time, here under 1 s).
    pa.set_memory_pool(pa.system_memory_pool())
    rules = load_rules(
        config_dir=request.config_dir, rules_file=request.rules_file, fees_file=request.fees_file
    )
    # Imported late like the comparison, so that `--help` does not load it.
    from recon.proof.proven import proven_by_files
    from recon.proof.verdict import with_totals

    with output_folder(request.out):
        run = _Run.read(request, clock=clock, rules=rules)
        as_of = rules.business_calendar.closes_at(request.as_of)
        sources, earlier = run.sources, run.earlier
        compared = reconcile(sources, rules=rules, as_of=as_of, previous=earlier.previous)
        there = frozenset(request.out.iterdir())
        notes = run.notes(compared)
        night = run.sealed(compared)
        lines = lines_totals(run.given, earlier=earlier, compared=sources.settlement)
        proven = proven_by_files(compared, folder=night, account=NO_ACCOUNT)
        result = with_totals(proven, totals=lines)
        staged, files, workbook = run.write(result, notes=notes, write_workbook=write_workbook)
        sheets: tuple[ControlTotal, ...] = ()
        if sheet_totals is not None:
            staged_files = {target.name: path for path, target in staged.items()}
            _, sheets = held_against(
                sheet_totals(workbook, companions=staged_files),
                results=night / RESULTS,
                files=files,
                verdict=result.verdict,
                account=NO_ACCOUNT,
            )
        if not all(total.passed for total in sheets):
            result = with_t13(result, totals=sheets)
            # A workbook that equals an earlier run's is that run's file, and stays.
            for path in {*staged, workbook} - there:
                path.unlink(missing_ok=True)
            staged, *_ = run.write(result, notes=notes, write_workbook=write_workbook)
        # The next run reads the folder only if the summary, which is renamed last, belongs to it.
        publish({night: request.out / NIGHT, **staged})
        if request.out / FEE_CLAIMS not in staged.values():
            (request.out / FEE_CLAIMS).unlink(missing_ok=True)
    return result


@dataclass(frozen=True)
class _Run:
    """What a run read, and what it carries forward from an earlier one."""

    request: PlainFilesRequest
    clock: Clock
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
    def read(cls, request: PlainFilesRequest, *, clock: Clock, rules: Rules) -> "_Run":
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
        refuse_known(given[SourceKind.SETTLEMENT], earlier=earlier)
        how = [layouts.of(path, kind=SourceKind.ORDERS) for path in request.orders]
        current = {SourceKind.ORDERS: _newest_rows(given[SourceKind.ORDERS], layouts=how)}
        tables = with_carried(given | current, earlier=earlier)
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
        banks = with_carried_bank(
            statements, earlier=earlier, settlement=sources.settlement, rules=rules
        )
        if banks is not None:  # a refused file is reported by its own entry
            sources = replace(sources, bank=banks.source, files=(*sources.files, *banks.files))
        sources = with_each_instruction_once(sources)
        compared = as_compared(sources, earlier=earlier, rules=rules)
        return cls(request, clock, rules, earlier, given, tables, banks, compared)

    @cached_property
    def books(self) -> Books:
        """Every step of the ledger's money."""
        return books_of(self.sources, rules=self.rules)

    def notes(self, result: Reconciliation) -> tuple[str, ...]:
        """What is missing, which columns were not read, and what rests on earlier files alone."""
        request, earlier = self.request, self.earlier.sources
        lacking = why_incomplete(result, sources=self.sources, rules=self.rules)
        given = (
            "no ledger was given (--ledger)" if each == NO_LEDGER else each for each in lacking
        )
        lines = [f"Incomplete: {each.rstrip('.')}." for each in given]
        lines += [
            f"{redacted(table.facts.source_file.name)}: nothing was read from the unknown columns "
            f"{', '.join(map(redacted, table.facts.ignored_columns))}."
            for several in self.tables.values()
            for table in several
            if table.facts.ignored_columns
        ]
        lines += reported_again(self.given, tables=self.tables)
        kind = SourceKind.ORDERS
        for before, left in zip(self.given[kind], self.tables[kind], strict=True):
            if number := len(before.frame) - len(left.frame):
                name = redacted(before.facts.source_file.name)
                lines.append(f"{name}: rows that a later file of its layout replaces: {number}.")
        if earlier.settlement is not None and not request.settlement:
            days = texts(earlier.settlement["settled_on"])
            newest = f", the newest settled on {days.max()}" if days.size else ""
            lines.append(
                f"No settlement file was given: the {days.size} lines that earlier runs read are "
                f"judged{newest}."
            )
        if earlier.bank is not None and not request.bank:
            lines += by_carried_statements(result, rules=self.rules)
        return (*lines,)

    def sealed(self, result: Reconciliation) -> Path:
        """Write the folder of the run's sealed steps under a temporary name, and return it."""
        out = self.request.out
        handed = passed_on(
            result,
            sources=self.sources,
            tables=self.tables,
            banks=self.banks,
            earlier=self.earlier,
            run=(out.resolve().name, self.request.as_of.isoformat()),
            rules=self.rules,
        )
        with staged_folder(out / NIGHT) as night:
            seal_night(
                night,
                result=result,
                sources=self.sources,
                previous=self.earlier.previous,
                books=self.books,
                handed=handed,
                rules=self.rules,
            )
        return night

    def write(
        self, result: Reconciliation, *, notes: tuple[str, ...], write_workbook: WriteWorkbook
    ) -> tuple[Mapping[Path, Path], Mapping[str, ListFile], Path]:
        """Staged result files, the files that the workbook names, and the path of the workbook.

        Next to an earlier run's workbook, that path has another name than the usual one.
        """
        out, sources, previous = self.request.out, self.sources, self.earlier.previous
        day = self.request.as_of
        figures = plain_figures(
            result, sources=sources, business_date=day, clock=self.clock, rules=self.rules
        )
        claims = {} if figures.fees is None else {FEE_CLAIMS: claims_csv(figures.fees)}
        files = result_files(result, rejects=sources.rejects, files=sources.files)
        staged = stage(out, files={**claims, **files})
        figures = replace(
            figures,
            notes=notes,
            books=self.books,
            opening_breaks=None if previous is None else len(previous.breaks),
            list_files=files_of_lists(staged, result=result),
        )
        path = out / WORKBOOK
        try:
            return staged, figures.files_named(), write_workbook(figures, path)
        except OSError as error:
            msg = (
                f"the workbook {path} cannot be written: {error.strerror}; the files of an earlier "
                "run were kept; close the workbook or name another folder and run again"
            )
            raise OutputError(msg) from error


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
            current[at] = without(tables[at], rows=over.to_numpy())
            anew = pd.concat([later, own]).groupby(level=[*_OF_AN_ORDER]).max()
    return tuple(current)


def _refuse_unfit(request: PlainFilesRequest) -> None:
    for kind in (*_COLUMNS, SourceKind.BANK):
        paths: tuple[Path, ...] = getattr(request, kind.value)
        if not paths and kind in {SourceKind.ORDERS, SourceKind.GATEWAY}:
            msg = f"name at least one file of {kind}"
            raise UsageError(msg)
        for index, path in enumerate(paths):
            if path in paths[:index]:
                msg = f"{path} is named twice as {kind}; its rows would count twice"
                raise UsageError(msg)
