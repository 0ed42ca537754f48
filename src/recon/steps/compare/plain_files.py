"""One reconciliation of plain files without a gateway or a database of its own: `recon reconcile`.

What a night takes from its facts and its archive is here taken from the files: which rows of them
stand is decided by the same SQL, over a temporary folder. The folder of the results has the sealed
steps of the run in `night`, as a night's own folder: what was compared, the result, its proof, and
what a later run (`--previous`) carries forward.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recon import __version__
from recon.archive.schemas import ORDER_FACTS, SETTLED_FACTS, FileSchema
from recon.archive.step_folder import About, Sealed, StepFile, rows_of, write_step
from recon.archive.storage import LocalStorage
from recon.config.fee_contract import FACTS
from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.config.settings import given_layouts, load_rules
from recon.files.kinds.layouts import refuse_wrong_given
from recon.files.reader import TableFacts, TableRead, plain_table
from recon.files.typing.table_schema import schema_of
from recon.matching.bank.result import covered_to
from recon.matching.breaks.movements import with_reopened
from recon.matching.breaks.result import BANKED, COUNTED, Reconciliation
from recon.matching.cash.fees_charged import charged_fees
from recon.matching.codes import with_table
from recon.matching.frames.arrays import texts
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    INSTANT,
    INSTRUCTION_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Previous,
    Sources,
    frame_of,
)
from recon.matching.frames.total_rows import AccountKey, sums
from recon.model.errors import UsageError
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
from recon.model.terms import DOUBTFUL_STATES, Clock, SourceKind
from recon.privacy.displayed_text import redacted
from recon.privacy.own_files import folder_for_now
from recon.proof.ledger_bridge import REPEATS, REPLACED, LedgerSteps, bridge_of, ledger_steps
from recon.proof.night_tables import (
    absent_of,
    compared_tables,
    input_tables,
    result_tables,
)
from recon.steps.compare.carried_files import (
    CARRIED_FORWARD,
    NIGHT,
    EarlierRun,
    as_compared,
    passed_on,
    read_earlier_run,
    what_is_left_open,
    with_carried_bank,
    with_unread,
)
from recon.steps.compare.listed_breaks import severe_breaks
from recon.steps.compare.result_files import (
    FEE_CLAIMS,
    SUMMARY,
    WORKBOOK,
    claims_csv,
    files_of_lists,
    output_folder,
    reported,
    row_files,
    summary_json,
    write_files,
)
from recon.steps.compare.sheets_proven import (
    SheetTotals,
    proof_parts,
    proven_by_sheets,
    rules_document,
)
from recon.steps.compare.stored_sources import sources_of_night
from recon.steps.files.bank_files import BankFiles, read_bank_files
from recon.steps.files.incomplete import NO_LEDGER, why_incomplete
from recon.steps.files.newest_export import Export, is_newer, name_key
from recon.steps.runtime.night_folder import INPUTS, PROOF, RESULTS, SealedNight
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import StorageOf, StoredFacts, Written
from recon.store.nights.settlement_rows import repeats_of
from recon.store.nights.stored_orders import (
    OrderSteps,
    counts_by_file,
    frame_of_orders,
    rows_of_files,
    steps_of,
)

NO_ACCOUNT = ("", "")
"""Account of the totals: the files may hold several."""
_REPORTED = tuple(name for name in SETTLEMENT_COLUMNS if name not in {"source", "line", *FACTS})
"""Columns in which a line equals its repeat."""
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
_COMPARED = tuple(kind for kind in _COLUMNS if kind is not SourceKind.INSTRUCTIONS)
"""Sources whose accepted rows T2 leads to the rows compared; instructions say their steps alone."""
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
    layouts: tuple[Path, ...] = ()
    """Layouts of files that are not in the standard format."""


def reconcile_files(
    request: PlainFilesRequest,
    *,
    clock: Clock,
    write_workbook: WriteWorkbook,
    sheet_totals: ReadTotals,
) -> Reconciliation:
    """Read the files, compare them, and write every result into the output folder.

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
    from recon.proof.totals_in_sql import control_totals, sql_files
    from recon.proof.verdict import with_totals

    with output_folder(request.out) as place:
        night = _Night(request, rules, place)
        run, given = _Run.read(request, rules=rules)
        night.seal(INPUTS, run.inputs(given), absent=absent_of(given))
        del given  # only what was sealed is compared, and in memory
        sources, previous = night.compared()
        as_of = rules.business_calendar.closes_at(request.as_of)
        compared = reconcile(sources, rules=rules, as_of=as_of, previous=previous)
        night.seal(RESULTS, rows_of(result_tables(compared)), run_id=compared.digest)
        result = with_totals(compared, totals=control_totals(place / NIGHT, account=NO_ACCOUNT))
        result, sheets = run.report(
            place,
            result,
            sources=sources,
            clock=clock,
            write_workbook=write_workbook,
            sheet_totals=sheet_totals,
        )
        texts = sql_files(banks=COUNTED in result.bank, bank_booked=BANKED in result.bank)
        files = proof_parts(
            result, sheets=sheets, documents=[rules_document(rules.document)], statements=texts
        )
        night.seal(PROOF, files, run_id=compared.digest)
        night.seal(CARRIED_FORWARD, run.passed_on(sources, result=compared), run_id=compared.digest)
        has_claims = (place / FEE_CLAIMS).exists()
    if not has_claims:
        (request.out / FEE_CLAIMS).unlink(missing_ok=True)
    return result


def _refuse_named_twice(request: PlainFilesRequest) -> None:
    for kind in (*_COLUMNS, SourceKind.BANK):
        for path, times in Counter(getattr(request, kind.value)).items():
            if times > 1:
                msg = f"{path} is named twice as {kind}; its rows would count twice"
                raise UsageError(msg)


@dataclass
class _Night:
    """The sealed steps of a run, below the temporary folder of its results."""

    request: PlainFilesRequest
    rules: Rules
    place: Path
    steps: dict[str, Sealed] = field(default_factory=dict)

    def seal(
        self, step: str, files: Iterable[StepFile], *, run_id: str = "", absent: Sequence[str] = ()
    ) -> None:
        """Write a step, whose manifest names those before it."""
        about = About(
            run_id=run_id,
            merchant_id="",
            account_id="",
            business_date=self.request.as_of.isoformat(),
            mode=PLAIN_FILES,
            step=step,
            predecessor="",
            rules_digest=self.rules.digest,
            product_version=__version__,
            history_before="",
            after={name: sealed.sha256 for name, sealed in self.steps.items()},
            absent=tuple(absent),
        )
        with reported(self.request.out / NIGHT):
            sealed = write_step(LocalStorage(self.place), night=NIGHT, about=about, files=files)
        self.steps[step] = sealed

    def compared(self) -> tuple[Sources, Previous | None]:
        """What was sealed to be compared."""
        return sources_of_night(SealedNight("", LocalStorage(self.place), self.steps))


@dataclass(frozen=True)
class _Run:
    """What a run read, and what it carries forward from an earlier one."""

    request: PlainFilesRequest
    rules: Rules
    earlier: EarlierRun
    facts: tuple[TableFacts, ...]
    """Of the files that it read itself."""
    repeated: tuple[tuple[str, pd.DataFrame], ...]
    """Settlement files, the newest first, with their lines that another file has too."""
    banks: BankFiles | None
    """With what was carried forward."""
    lines: pd.DataFrame | None
    """Settlement lines, those carried forward first, each once."""
    ledger_sums: LedgerSteps
    """Every step of the ledger's money."""

    @classmethod
    def read(cls, request: PlainFilesRequest, *, rules: Rules) -> tuple["_Run", Sources]:
        """Read the files and refuse those that an earlier run has read; also what is compared."""
        earlier = EarlierRun() if request.previous is None else read_earlier_run(request.previous)
        layouts = given_layouts(request.layouts)
        refuse_wrong_given(layouts)
        given = {
            kind: [
                plain_table(
                    path, schema=schema_of(kind), rules=rules, layout=layouts.of(path, kind=kind)
                )
                for path in getattr(request, kind.value)
            ]
            for kind in _COLUMNS
        }
        earlier.refuse_known(given[SourceKind.SETTLEMENT])
        facts = tuple(table.facts for several in given.values() for table in several)
        tables = earlier.with_carried(given)
        how = [layouts.of(path, kind=SourceKind.ORDERS) for path in request.orders]
        orders, became = _current_orders(given[SourceKind.ORDERS], layouts=how, day=request.as_of)
        settled, repeated, twice = _each_line_once(tables[SourceKind.SETTLEMENT], day=request.as_of)
        frames = {kind: [table.frame for table in several] for kind, several in tables.items()} | {
            SourceKind.ORDERS: [orders],
            SourceKind.SETTLEMENT: settled,
        }
        each: dict[str, Any] = {
            kind.value: pd.concat(frames[kind], ignore_index=True)[[*columns]]
            if frames[kind]
            else None
            for kind, columns in _COLUMNS.items()
        }
        every = [table.facts for several in tables.values() for table in several]
        taken = {SourceKind.ORDERS: became.steps, SourceKind.SETTLEMENT: {REPEATS: -twice}}
        sources = Sources(
            **each,
            rejects=tuple(reject for one in every for reject in one.rejects),
            files=tuple(one.source_file for one in every),
            merged_rows=became.taken,
            arrived={kind: taken.get(kind, {}) for kind in _COMPARED if frames[kind]},
            reported=_most_in_one_file(tables[SourceKind.SETTLEMENT]),
        )
        statements = (
            read_bank_files(request.bank, rules=rules, layouts=layouts) if request.bank else None
        )
        banks = with_carried_bank(
            statements, earlier=earlier, settlement=sources.settlement, rules=rules
        )
        if banks is not None:  # a refused file is reported by its own entry
            sources = replace(sources, bank=banks.source, files=(*sources.files, *banks.files))
        sources = with_unread(sources, earlier=earlier, given=given[SourceKind.SETTLEMENT])
        compared = as_compared(sources, earlier=earlier, rules=rules)
        return (
            cls(
                request,
                rules,
                earlier,
                facts,
                repeated,
                banks,
                sources.settlement,
                ledger_steps(compared, rules=rules),
            ),
            compared,
        )

    def inputs(self, sources: Sources) -> Iterator[StepFile]:
        """The files of what the run compares."""
        small = compared_tables(
            sources,
            rules=self.rules,
            previous=self.earlier.previous,
            ledger_sums=self.ledger_sums,
        )
        return rows_of(chain(input_tables(sources), small.items()))

    def notes(self, result: Reconciliation, *, sources: Sources) -> Iterator[str]:
        """What is missing, which columns were not read, and what rests on earlier files alone."""
        request, carried = self.request, self.earlier.carried
        for lack in why_incomplete(result, sources=sources, rules=self.rules):
            what = "no ledger was given (--ledger)" if lack == NO_LEDGER else lack
            yield f"Incomplete: {what.rstrip('.')}."
        for file in self.facts:
            if columns := file.ignored_columns:
                yield (
                    f"{redacted(file.source_file.name)}: nothing was read from the unknown columns "
                    f"{', '.join(map(redacted, columns))}."
                )
        for name, lines in self.repeated:
            nets = lines.groupby("currency")["net"].sum().sort_index().items()
            amounts = ", ".join(
                f"{format_minor_units(int(net), currency=str(one))} {one}" for one, net in nets
            )
            yield (
                f"{redacted(name)}: {len(lines)} lines, net {amounts}, are in another file, too, "
                "and count once."
            )
        if number := -sources.arrived[SourceKind.ORDERS][REPLACED]:
            yield f"Order rows that newer ones replace: {number:,}."
        if batches := sorted({batch for *_, batch in sources.unread_batches or ()}):
            named = ", ".join(map(redacted, batches[:BATCHES_NAMED_MAX]))
            yield (
                f"Settlement batches with a line that could not be read: {len(batches)} ({named}); "
                "have their file delivered again."
            )
        if carried.settlement is not None and not request.settlement:
            days = texts(carried.settlement["settled_on"])
            newest = f", the newest settled on {days.max()}" if days.size else ""
            yield (
                f"No settlement file was given: the {days.size} lines that earlier runs read are "
                f"compared{newest}."
            )
        if carried.bank is not None and not request.bank and "counted" in result.bank:
            until = covered_to(result.bank["counted"])
            days_of = {name: f"to {until[name]}" for name in until}
            banks = self.rules.bank
            reach = ", ".join(f"{redacted(n)} {days_of.get(n, 'not at all')}" for n in banks)
            sentence = "No statement of a bank was given: those that earlier runs read are compared"
            yield f"{sentence}, covered are {reach}." if reach else f"{sentence}."

    def passed_on(self, sources: Sources, *, result: Reconciliation) -> Iterator[StepFile]:
        """The files of what the next run continues."""
        on = passed_on(
            sources,
            earlier=self.earlier,
            lines=self.lines,
            banks=self.banks,
            files=(each.source_file for each in self.facts),
            run=self.request.out.resolve().name,
            rules=self.rules,
        )
        left = what_is_left_open(result, previous=self.earlier.previous)
        small = compared_tables(on, rules=self.rules, previous=left, ledger_sums={})
        return rows_of(chain(input_tables(on), small.items()))

    def report(
        self,
        place: Path,
        result: Reconciliation,
        *,
        sources: Sources,
        clock: Clock,
        write_workbook: WriteWorkbook,
        sheet_totals: ReadTotals,
    ) -> tuple[Reconciliation, pa.Table]:
        """Write the result files and the workbook; return the result with T13, and its sheets."""
        out, opening = self.request.out, self.earlier.previous
        figures = plain_figures(
            result,
            sources=sources,
            business_date=self.request.as_of,
            clock=clock,
            rules=self.rules,
        )
        claims = {} if figures.fees is None else {FEE_CLAIMS: claims_csv(figures.fees)}
        write_files(place, {**claims, **row_files(result, rejects=sources.rejects)})
        figures = replace(
            figures,
            notes=(*self.notes(result, sources=sources),),
            ledger_sums=self.ledger_sums,
            opening_breaks=None if opening is None else len(opening.breaks),
            list_files=files_of_lists(place, result=result),
        )
        there, made = frozenset(out.iterdir()), list[Path]()

        def drawn(shown: Reconciliation) -> Path:
            # A workbook that equals an earlier run's is that run's file, and stays.
            for path in made:
                if path not in there:
                    path.unlink()
            write_files(place, {SUMMARY: summary_json(shown, files=sources.files)})
            agreed = replace(figures, verdict=shown.verdict, control_totals=shown.control_totals)
            with reported(out / WORKBOOK):
                made.append(write_workbook(agreed, out / WORKBOOK))
            return made[-1]

        def read(path: Path) -> SheetTotals:
            return sheet_totals(path, companions={file.name: file for file in place.iterdir()})

        proven, _, sheets = proven_by_sheets(
            result,
            results=place / NIGHT / RESULTS,
            files=figures.files_named(),
            account=NO_ACCOUNT,
            draw=drawn,
            read=read,
        )
        return proven, sheets


@contextmanager
def _facts(
    tables: Iterable[TableRead], *, schema: FileSchema, day: date
) -> Iterator[tuple[list[Written], StorageOf]]:
    """The rows of files as SQL reads them, by their number; files without rows have none."""
    with folder_for_now("recon-facts-") as folder:
        storage, files = LocalStorage(folder), []
        for number, table in enumerate(tables):
            written = facts_rows.written(day, [table.frame], schema=schema, storage=storage)
            if written is not None:
                name = table.facts.source_file.name
                facts = replace(written.facts, file_id=number, name=name)
                files.append(written._replace(facts=facts))
        yield files, lambda _: storage


def _current_orders(
    tables: Sequence[TableRead], *, layouts: Sequence[FileLayout], day: date
) -> tuple[pd.DataFrame, OrderSteps]:
    """The order rows that count, by the SQL of a night, and what became of the others.

    A file is a sender of its own, unless its layout says that the newest file counts: then it is
    one with those before it (by name) where it is surely newer.
    """
    newest: dict[str, Export] = {}
    named = zip(tables, layouts, strict=True)
    in_order = sorted(named, key=lambda each: name_key(each[0].facts.source_file.name))
    with _facts((table for table, _ in in_order), schema=ORDER_FACTS, day=day) as (every, storages):
        files: list[StoredFacts] = []
        for written in every:
            number, layout = written.facts.file_id, in_order[written.facts.file_id][1]
            sender = str(number)
            if layout.newest_file_counts:
                reach = max(each.ordered_to for each in written.accounts)
                this, last = Export(written.facts.name, reach), newest.get(layout.files)
                if last is None or is_newer(this, than=last):
                    sender, newest[layout.files] = layout.files, this
            files.append(written.by(sender).facts)
        rows = rows_of_files(files, of=files, storages=storages)
    became = steps_of(counts_by_file(rows), names={file.file_id: file.name for file in files})
    return frame_of_orders(rows.filter(rows["is_current"])), became


def _each_line_once(
    tables: Sequence[TableRead], *, day: date
) -> tuple[list[pd.DataFrame], tuple[tuple[str, pd.DataFrame], ...], int]:
    """The settlement lines of each file that count, by the SQL of a night.

    Second, the lines of those files that another one has too, the newest file first; third, how
    many they are by SQL.
    """
    frames = [table.frame for table in tables]
    if not frames[1:]:
        return frames, (), 0
    with _facts(tables, schema=SETTLED_FACTS, day=day) as (every, storages):
        repeats = repeats_of([each.facts for each in every], storages=storages).to_pydict()
    again = [np.zeros(len(frame), np.bool_) for frame in frames]
    for file_id, row in zip(repeats["file_id"], repeats["row"], strict=True):
        again[file_id][row] = True
    marked = [*zip(tables, again, strict=True)]
    once = [table.frame[~rows].reset_index(drop=True) for table, rows in marked]
    repeated = tuple(
        (table.facts.source_file.name, table.frame[rows])
        for table, rows in reversed(marked)
        if rows.any()
    )
    return once, repeated, len(repeats["row"])


def _most_in_one_file(tables: Sequence[TableRead]) -> Mapping[AccountKey, tuple[int, int]]:
    """Count and net of the files' lines, each as often as the file that has it most often has it.

    By pandas and apart from the SQL that chooses the lines, so that the two can contradict. {} with
    one file, whose lines all count.
    """
    if not tables[1:]:
        return {}
    each = [
        table.frame.groupby([*_REPORTED], dropna=False, observed=True).size() for table in tables
    ]
    levels = [*range(len(_REPORTED))]
    most = pd.concat(each).groupby(level=levels, dropna=False).max().reset_index(name="count")
    net = sums(most.assign(net=most["net"] * most["count"]), column="net")
    return {key: (count, net[key]) for key, count in sums(most, column="count").items()}


def plain_figures(
    result: Reconciliation, *, sources: Sources, business_date: date, clock: Clock, rules: Rules
) -> NightFigures:
    """Everything that the workbook shows of plain files; no database knows this run."""
    matches = result.matches
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
