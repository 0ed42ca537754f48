"""The folder of a run in the archive of nights, and the history links that record it.

Each step's files are written first, its manifest last; then the manifest's hash becomes a link of
the history, in the transaction that ends the step. A step without its link does not count.

The ledger as the run read it is a step, linked before anything is compared with it: what is
compared is a part of it (the window, the account); its proof, and the chargebacks, use all of it.
The result of a run is read from the files that its night sealed.
"""

import gzip
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon import __version__
from recon.archive.rows_file import read_rows, row_batches
from recon.archive.schemas import SCHEMAS, FileSchema
from recon.archive.step_folder import (
    MANIFEST,
    SUPERSEDED,
    About,
    FileEntry,
    Sealed,
    StepFile,
    entry_of,
    find_sealed,
    opened_file,
    rows_of,
    whole_file,
    write_step,
)
from recon.archive.storage import MAKE_WRITABLE, Storage, open_storage, reachable
from recon.config.night_archive import DEFAULT_FOLDER, ArchiveSettings
from recon.matching.breaks.result import (
    BANK_TABLES,
    BANKED,
    SECTIONS,
    Deferred,
    Reconciliation,
)
from recon.matching.frames.sources import LEDGER_COLUMNS
from recon.model.errors import ArchiveBrokenError, NightPurgedError
from recon.model.figures import LISTS_IN_FILES, ListFile
from recon.model.nights import Mode
from recon.model.terms import REVERSAL_SUFFIX, ControlTotal, EntryType, SourceFile
from recon.proof.night_tables import frame_of_table, totals_of
from recon.steps.runtime.environment import Environment
from recon.store import Connection
from recon.store.database import history
from recon.store.database.record import SUMMARY, changed
from recon.store.nights import journal_rows, results, runs
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import PurgedNight, Run, purged_night_of

DECISIONS, WORKBOOK = "decisions.jsonl.gz", "workbook.xlsx"
"""Files of the proof: people's decisions, and the workbook as it was written that night."""
RULES = "rules.json"
"""The rules of the comparison, with every default."""


def packed_lines(lines: str) -> bytes:
    """Gzip lines without a timestamp, so that the same lines give the same bytes."""
    return gzip.compress(lines.encode(), mtime=0)


def stored_decisions(packed: bytes) -> list[str]:
    """The decisions of a night, one per line, from the content of DECISIONS in its proof."""
    return gzip.decompress(packed).decode().splitlines()


INPUTS, COMPARED, RESULTS, PROOF = STEPS = ("inputs", "compared", "results", "proof")
"""Steps of a night in their order."""
SIGNED = "signed-"
"""Prefix of a role: the step of a signature, which comes after all of the night's own."""
ANSWERS = "answers-"
"""Prefix of a number: steps with the gateway's answers before money moved and after it."""
BUCKETS = "in-parts"
"""Folder of the parts of a comparison until its results are sealed; no link covers it."""
LEDGER_STEP = "ledger"
"""The step before all others: the whole ledger as the night read it."""
NOT_READ = (
    "could not be read; money and answers of the night are kept as they are: put the archive back, "
    "then start the night again, or, where money has moved, bring it to its end with `recon "
    "nightly --only finish --merchant M --account A --business-date D`"
)


@dataclass(frozen=True, slots=True)
class Link:
    """One history link that records a step."""

    step: str
    folder: str
    """Path below the archive."""
    sha256: str
    """Of the manifest."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a manifest says of its night, in addition to run and account."""

    predecessor: str
    rules_digest: str
    absent: Sequence[str] = ()


def storage_of(run: Run, *, environment: Environment) -> Storage:
    """The archive that holds a run's night; see `storage_at`."""
    return storage_at(run.account, environment=environment)


def storage_at(account: tuple[str, str], *, environment: Environment) -> Storage:
    """The archive of an account's nights.

    Raises:
        ConfigurationError: the account is not declared, or a key of the storage is missing.
    """
    archive = archive_of_account(account, environment=environment)
    deadline = environment.archive_deadline
    return open_storage(archive, variables=environment.variables, deadline=deadline)


def archive_of_account(account: tuple[str, str], *, environment: Environment) -> ArchiveSettings:
    """Location of an account's nights, with a default path where archive.toml names none.

    Raises:
        ConfigurationError: the account is not declared.
    """
    settings, database = environment.settings, environment.store.path
    if settings.archive.path:
        return settings.archive
    default_parent = (
        settings.account(account[0], account_id=account[1]).reports
        if database is None
        else database.parent
    )
    return settings.archive.model_copy(update={"path": str(default_parent / DEFAULT_FOLDER)})


def storages_of(environment: Environment) -> StorageOf:
    """Function from merchant and account to the archive of that account."""
    return partial(storage_at, environment=environment)


def folder_of(run: Run) -> str:
    """Path of a run's steps, below the archive."""
    return f"nights/{run.merchant_id}/{run.account_id}/{run.business_date}/{run.run_id}"


def write(
    run: Run,
    step: str,
    *,
    files: Iterable[StepFile],
    terms: Terms,
    after: Mapping[str, str],
    environment: Environment,
) -> Sealed:
    """Write a step of a run's night; `after` has the manifests of the steps before it.

    Raises:
        ArchiveError: the archive cannot be written; nothing that was sealed is changed.
    """
    about = about_of(run, step, terms=terms, after=after, environment=environment)
    storage = storage_of(run, environment=environment)
    with reachable(storage, doing=_not_done(run, step=step)):
        return write_step(
            storage,
            night=folder_of(run),
            about=about,
            files=files,
            crash_point=environment.crash_point,
        )


def about_of(
    run: Run, step: str, *, terms: Terms, after: Mapping[str, str], environment: Environment
) -> About:
    """The description of a step and its night for the manifest."""
    with environment.store.reading() as connection:
        head = history.head(connection)
    return About(
        run_id=run.run_id,
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        business_date=run.business_date.isoformat(),
        mode=run.mode.value,
        step=step,
        predecessor=terms.predecessor,
        rules_digest=terms.rules_digest,
        product_version=__version__,
        history_before=f"{head.sequence}:{head.hash}",
        after=dict(after),
        absent=tuple(terms.absent),
    )


def record_sealed(
    connection: Connection,
    run: Run,
    *,
    sealed: Sequence[Sealed],
    environment: Environment,
    details: Mapping[str, object] | None = None,
) -> None:
    """Record the manifests as history links; one that is its step's newest already is not repeated.

    `details`: further data of these links.
    """
    known = [link.data for link in runs.run_links(connection, run.run_id, event=runs.SEALED)]
    recorded = {each["step"]: each for each in known}
    events = []
    for each in sealed:
        step = each.manifest.about.step
        data = {"step": step, "folder": each.folder, "manifest": each.sha256, **(details or {})}
        if recorded.get(step) != data:
            events.append(history.Event("run", run.run_id, runs.SEALED, data))
    if events:
        history.append(connection, events, at=environment.clock())


def links(connection: Connection, run_id: str) -> list[Link]:
    """The links that record steps of a run, oldest first."""
    recorded = [link.data for link in runs.run_links(connection, run_id, event=runs.SEALED)]
    return [Link(each["step"], each["folder"], each["manifest"]) for each in recorded]


def recorded_step(storage: Storage, link: Link, *, doing: str) -> Sealed:
    """The step that a link records, set aside or not; `doing` says what was not done and kept.

    Raises:
        ArchiveError: the archive cannot be read, or does not have it.
    """
    night = link.folder.rpartition("/")[0]
    with reachable(storage, doing=doing):
        sealed = find_sealed(storage, night=night, step=link.step, sha256=link.sha256)
    if sealed is None:
        msg = (
            f"{doing}: {link.folder} is not in the archive {storage.shown}, or is not what the "
            "history binds: put the night's folder back from a backup of the archive, or from the "
            "archive that archive.toml named before"
        )
        raise ArchiveBrokenError(msg)
    return sealed


def is_attempt(path: str) -> bool:
    """Whether an unsealed file was left by an attempt; `path` is relative to the night's folder.

    Such files are those of a step that was moved aside, of parts of a comparison, or of a signature
    that was interrupted before it counted.
    """
    step = path.partition("/")[0]
    return SUPERSEDED in step or step == BUCKETS or step.startswith(SIGNED)


def newest(recorded: Sequence[Link]) -> dict[str, str]:
    """Step -> the hash of its newest manifest."""
    return {link.step: link.sha256 for link in recorded}


def answer_steps(steps: Iterable[str]) -> list[str]:
    """Those of some steps that hold answers of the gateway, by number.

    >>> answer_steps(["answers-10", "inputs", "answers-2"])
    ['answers-2', 'answers-10']
    """
    numbers = [step.removeprefix(ANSWERS) for step in steps if step.startswith(ANSWERS)]
    return [f"{ANSWERS}{number}" for number in sorted(numbers, key=int)]


def before(step: str, *, recorded: Mapping[str, str]) -> dict[str, str]:
    """The manifests of the steps that come before one of a night."""
    return {name: recorded[name] for name in STEPS[: STEPS.index(step)] if name in recorded}


def _not_done(run: Run, *, step: str) -> str:
    """State of the night when its archive fails, and what to do."""
    if step in {LEDGER_STEP, INPUTS}:
        return f"what the night read could not be kept, so nothing was sent: {MAKE_WRITABLE}"
    if step not in STEPS:
        return "nobody's name was put under the night: make the archive writable, then sign again"
    if run.status == "finished":
        again = f"recon workbook {run.run_id}"
    elif run.mode is Mode.LIVE:
        options = f"--merchant {run.merchant_id} --account {run.account_id}"
        again = f"recon nightly --only finish {options} --business-date {run.business_date}"
    else:
        again = "the same dry run again"
    return (
        "money and answers of the night are kept in the database, only its folder could not be "
        f"written: make the archive writable, then run `{again}`"
    )


STORED_FILES = frozenset(
    {"results/breaks.parquet", "proof/totals.parquet", f"proof/{DECISIONS}", f"proof/{RULES}"}
)
"""Files that stay when a night is purged, besides manifests and files that people signed."""
SIGNED_FILES = (f"proof/{WORKBOOK}", SIGNED)
"""Path prefixes of files that stay as well where somebody signed the night."""


def is_stored(path: str, *, is_signed: bool = False) -> bool:
    """Whether a file stays when its night is purged; `path` is relative to the night's folder."""
    name = path.rpartition("/")[2]
    return name == MANIFEST or path in STORED_FILES or (is_signed and path.startswith(SIGNED_FILES))


def refuse_purged(connection: Connection, run_id: str) -> None:
    """Refuse to read what was purged with the folder of a night.

    Raises:
        NightPurgedError: it was purged; the message says when and by whom.
    """
    going = purged_night_of(connection, run_id)
    if going is not None:
        raise NightPurgedError(str(going))


UNREAD = "the folder of a night could not be read"


@dataclass(frozen=True, slots=True)
class SealedNight:
    """The steps of one run that the history records, each by its newest link.

    Its members raise ArchiveError where the archive cannot be reached, lacks a step, or has a file
    that differs from what was sealed.
    """

    run_id: str
    storage: Storage
    steps: Mapping[str, Sealed]
    purged: PurgedNight | None = None
    """How its folder was purged; None while it is stored."""

    @property
    def moved(self) -> dict[str, str]:
        """Files in another place than their schema says: path -> path, from the night's folder.

        A later step has them as well, or their step was written anew.
        """
        return self._moved_files(lambda schema: schema.path)

    @property
    def superseded(self) -> dict[str, str]:
        """Files whose step was set aside: path as in the sealed SQL statements -> path now.

        A step that was written anew takes the place of the one that this night compared.
        """

        def as_named(schema: FileSchema) -> str:
            sealed, file = self._place(schema.name)
            return f"{sealed.manifest.about.step}/{file}"

        return self._moved_files(as_named)

    def has(self, name: str) -> bool:
        """Whether the night sealed a table of this name; not every night has every one."""
        sealed, file = self._place(name)
        return any(entry.name == file for entry in sealed.manifest.files)

    def rows(self, name: str) -> int:
        """Number of rows of a table, from its manifest alone; 0 for one that was not sealed."""
        sealed, file = self._place(name)
        return sum(entry.rows for entry in sealed.manifest.files if entry.name == file)

    def entry(self, name: str) -> tuple[str, FileEntry]:
        """The step that has a sealed table, and the table's entry in the manifest."""
        sealed, file = self._place(name)
        entry = next(entry for entry in sealed.manifest.files if entry.name == file)
        return sealed.manifest.about.step, entry

    def content(self, name: str) -> tuple[bytes, str]:
        """The bytes of a table as they were sealed, and the file's path for messages.

        Raises:
            NightPurgedError: it was purged.
        """
        sealed, file = self._saved(name)
        with reachable(self.storage, doing=UNREAD):
            return whole_file(self.storage, sealed, name=file), f"{sealed.folder}/{file}"

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[BinaryIO, str]]:
        """Like `content`, as an open file for a table of which only parts are read."""
        sealed, file = self._saved(name)
        with (
            reachable(self.storage, doing=UNREAD),
            opened_file(self.storage, sealed, name=file) as opened,
        ):
            yield opened, f"{sealed.folder}/{file}"

    def table(self, name: str) -> pa.Table:
        """A table by the name of its schema; see `content`."""
        content, path = self.content(name)
        return read_rows(content, name=path)

    def batches(self, name: str, *, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of a stored file, in batches of rows; see `content`."""
        content, path = self.content(name)
        yield from row_batches(content, name=path, columns=columns)

    def as_sealed(self, file: str) -> bytes:
        """The bytes of a file by its path in the night's folder; see `content`."""
        step, _, name = file.partition("/")
        sealed = self._step(step)
        with reachable(self.storage, doing=UNREAD):
            return whole_file(self.storage, sealed, name=name)

    def frame(self, name: str) -> pd.DataFrame:
        """A table as the frame that it was made of, its rows by key; see `content`."""
        return frame_of_table(self.table(name))

    def statements(self) -> dict[str, str]:
        """The SQL that was sealed with the night, by name, byte for byte."""
        sealed = self.steps[PROOF]
        names = [entry.name for entry in sealed.manifest.files if entry.name.endswith(".sql")]
        with reachable(self.storage, doing=UNREAD):
            return {name: whole_file(self.storage, sealed, name=name).decode() for name in names}

    def _place(self, name: str) -> tuple[Sealed, str]:
        """The place of a table: the newest among its own step and the later ones that has it.

        Inputs that neither a later step nor the step `inputs` has are the ledger as it was read.
        """
        folder, file = SCHEMAS[name].folder, f"{name}.parquet"
        own = self._step(folder)
        if folder == INPUTS and RESULTS in self.steps:
            self._step(COMPARED)  # a lost one may have had it
        order = (
            *STEPS[: STEPS.index(folder) : -1],
            folder,
            *([LEDGER_STEP] if folder == INPUTS else []),
        )
        for sealed in (self.steps[step] for step in order if step in self.steps):
            if entry_of(sealed, name=file) is not None:
                return sealed, file
        return own, file

    def _saved(self, name: str) -> tuple[Sealed, str]:
        sealed, file = self._place(name)
        if self.purged is not None and not is_stored(f"{sealed.manifest.about.step}/{file}"):
            raise NightPurgedError(str(self.purged))
        return sealed, file

    def _step(self, step: str) -> Sealed:
        if step not in self.steps:
            msg = (
                f"the step {step} of run {self.run_id} is not in the archive {self.storage.shown}, "
                "or is not the one whose hash the history keeps: put the night's folder back from "
                "a backup of the archive"
            )
            raise ArchiveBrokenError(msg)
        return self.steps[step]

    def _moved_files(self, named: Callable[[FileSchema], str]) -> dict[str, str]:
        """Path by the given naming -> path now, of the files where they differ."""
        lies = {}
        for schema in SCHEMAS.values():
            if schema.folder in self.steps:
                sealed, file = self._place(schema.name)
                lies[named(schema)] = f"{sealed.folder.rpartition('/')[2]}/{file}"
        return {path: other for path, other in lies.items() if other != path}


def sealed_night(connection: Connection, run: Run, *, environment: Environment) -> SealedNight:
    """The sealed steps of a run, without those that are missing from the archive.

    Raises:
        ArchiveError: the archive cannot be reached, or a manifest is not valid.
    """
    storage = storage_of(run, environment=environment)
    recorded = {link.step: link for link in links(connection, run.run_id)}
    with reachable(storage, doing=UNREAD):
        each_step = {
            step: find_sealed(
                storage, night=link.folder.rpartition("/")[0], step=step, sha256=link.sha256
            )
            for step, link in recorded.items()
        }
        inputs = each_step.get(INPUTS)
        meant = inputs.manifest.about.after.get(LEDGER_STEP) if inputs else None
        if meant is not None:
            # A ledger that was read anew since, when the run was started again, is not the one
            # compared.
            each_step[LEDGER_STEP] = find_sealed(
                storage, night=folder_of(run), step=LEDGER_STEP, sha256=meant
            )
    steps = {step: sealed for step, sealed in each_step.items() if sealed is not None}
    return SealedNight(run.run_id, storage, steps, purged_night_of(connection, run.run_id))


def sealed_totals(
    connection: Connection, run: Run, *, environment: Environment
) -> tuple[ControlTotal, ...] | None:
    """The totals that a run sealed, by their key; None where the archive has no proof of it.

    Raises:
        ArchiveError: its folder cannot be reached, or they differ from what was sealed.
    """
    night = sealed_night(connection, run, environment=environment)
    return totals_of(night.table("totals")) if PROOF in night.steps else None


def changed_totals(connection: Connection, run: Run, *, environment: Environment) -> Iterator[str]:
    """Sentences on each control total of a run where the database differs from its folder.

    Raises:
        ArchiveError: see `sealed_totals`.
    """
    sealed = sealed_totals(connection, run, environment=environment)
    if sealed is None:
        return  # it was never sealed, or the check of the folder names what is missing
    saved = results.load_totals(connection, run.run_id)
    more, fewer = Counter(saved) - Counter(sealed), Counter(sealed) - Counter(saved)
    for total in sorted({*map(_which, more), *map(_which, fewer)}, key=str):
        yield (
            f"run {run.run_id}: the database says {_sides(more, of=total)} of {_shown(total)}, "
            f"the night sealed {_sides(fewer, of=total)}; it was changed past the code"
        )


def changed_summary(connection: Connection, run_id: str) -> Iterator[str]:
    """Sentences on verdict, rows and exposure in the database that the night did not record."""
    return changed(connection, SUMMARY, of=run_id)


def refuse_changed_result(connection: Connection, run: Run, *, environment: Environment) -> None:
    """Refuse totals that the run did not seal, and a summary that it did not record.

    Raises:
        ArchiveError: see `sealed_totals`; or the database has others, and which.
    """
    changed = next(changed_totals(connection, run, environment=environment), "")
    if changed:
        msg = f"a control total was changed past the code, so no workbook is made of it: {changed}"
        raise ArchiveBrokenError(msg)
    if changed := next(changed_summary(connection, run.run_id), ""):
        msg = f"a result was changed past the code, so no workbook is made of it: {changed}"
        raise ArchiveBrokenError(msg)


def _which(total: ControlTotal) -> ControlTotal:
    return replace(total, left=0, right=0)


def _sides(totals: Iterable[ControlTotal], *, of: ControlTotal) -> str:
    sides = sorted(f"{each.left} = {each.right}" for each in totals if _which(each) == of)
    return " and ".join(sides) or "nothing"


def _shown(total: ControlTotal) -> str:
    terms = (total.id, total.name, total.merchant_id, total.account_id, total.currency)
    return " ".join(term for term in (*terms, total.measure) if term)


LEDGER = "ledger"
"""The one file of the step, with the schema of compared entries."""
LEDGER_UNREAD = f"the ledger of the night {NOT_READ}"
_TAKEN_BACK = (
    *("merchant_id", "account_id", "order_no", "transaction_id", "entry_type"),
    *("currency", "amount", "transaction_currency", "transaction_amount"),
)
"""Columns of an entry that describe a chargeback."""
_SCHEMAS = {LEDGER: SCHEMAS[LEDGER]}


def sums_of_entries(table: pa.Table) -> dict[tuple[str, str], int]:
    """(entry type, currency) -> minor units, summed by Arrow, independently of the comparison."""
    by = ["entry_type", "currency"]
    plain = {name: table[name].cast(pa.string()) for name in by}
    summed = pa.table({**plain, "amount": table["amount"]}).group_by(by)
    rows = summed.aggregate([("amount", "sum")]).to_pylist()
    return {(row["entry_type"], row["currency"]): row["amount_sum"] for row in rows}


def write_ledger(run: Run, *, entries: pa.Table, environment: Environment) -> Sealed:
    """Write the ledger that a run read, in its schema; the caller links it with its source.

    Raises:
        ArchiveError: the archive cannot be written; nothing was sent.
    """
    sealed = write(
        run,
        LEDGER_STEP,
        files=[*rows_of([(LEDGER, entries)])],
        terms=Terms("", environment.settings.rules.digest),
        after={},
        environment=environment,
    )
    environment.crash_point("archived the entries")
    return sealed


@dataclass(frozen=True, slots=True)
class StoredLedger:
    """The ledger as a run read it.

    Its members raise ArchiveError where the file cannot be reached, or is not the one that the
    history records.
    """

    connection: Connection
    run: Run
    environment: Environment

    @property
    def rows(self) -> int:
        """Number of entries, of any account."""
        _, sealed, name = self._place()
        entry = entry_of(sealed, name=name)
        return entry.rows if entry else 0

    @property
    def source(self) -> SourceFile | None:
        """Where the entries came from; None when the run read none."""
        return journal_rows.source_of(self.connection, self.run.run_id)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of the entries in their order, in batches of rows."""
        storage, sealed, name = self._place()
        with (
            reachable(storage, doing=LEDGER_UNREAD),
            opened_file(storage, sealed, name=name) as file,
        ):
            path = f"{sealed.folder}/{name}"
            yield from row_batches(file, name=path, schemas=_SCHEMAS, columns=columns)

    def frames(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Like `batches`, for the account's entries, with `row`, their number in the ledger."""
        at = 0
        for table in self.batches([*dict.fromkeys(("merchant_id", "account_id", *columns))]):
            frame = frame_of_table(table).assign(row=np.arange(at, at + len(table)))
            at += len(table)
            yield frame[self.are_own(frame)]

    def are_own(self, frame: pd.DataFrame) -> "pd.Series[bool]":
        """Marks the entries of the run's account."""
        of_account = frame["account_id"].eq(self.run.account_id)
        return frame["merchant_id"].eq(self.run.merchant_id) & of_account

    def of_types(self, types: Collection[str]) -> pd.DataFrame | None:
        """LEDGER_COLUMNS of the entries of some types, and of all with the id of one of them.

        None where the run read no ledger.
        """
        if self.source is None:
            return None
        types_of, ids = pa.array([*types], pa.string()), set[str]()
        for table in self.batches(("entry_id", "entry_type")):
            of_type = pc.is_in(table["entry_type"].cast(pa.string()), value_set=types_of)
            ids.update(table["entry_id"].filter(of_type).to_pylist())
        columns, named = SCHEMAS[LEDGER].columns, pa.array(sorted(ids), pa.string())
        rows = (
            table.filter(pc.is_in(table["entry_id"], value_set=named)).cast(columns)
            for table in (self.batches(columns.names) if ids else ())
        )
        whole = pa.concat_tables([columns.empty_table(), *rows])
        return frame_of_table(whole)[[*LEDGER_COLUMNS]]

    def charged_back(self) -> dict[tuple[str, str, str], int]:
        """Order, transaction ("" where none is booked) and currency -> minor units charged back.

        Taken from the ledger that the run read itself, else from the newest that any run of the
        account read; reversals are subtracted.
        """
        of_run, run = self, self.run
        # Asks the history: a changed row that hides this run's own reading has no effect.
        if not self._recorded():
            run_id = journal_rows.newest_reader(self.connection, run)
            if run_id is None:
                return {}
            of_run = replace(self, run=runs.get(self.connection, run_id))
        kind = EntryType.CHARGEBACK.value
        codes_of = {
            "merchant_id": [run.merchant_id],
            "account_id": [run.account_id],
            "entry_type": [kind, kind + REVERSAL_SUFFIX],
        }
        sums: Counter[tuple[str, str, str]] = Counter()
        for table in of_run.batches(_TAKEN_BACK):
            rows = table
            for name, codes in codes_of.items():
                among = pa.array(codes)
                rows = rows.filter(pc.is_in(rows[name].cast(pa.string()), value_set=among))
            for row in rows.to_pylist():
                amount, currency = row["transaction_amount"], row["transaction_currency"]
                if amount is None:
                    amount, currency = row["amount"], row["currency"]
                sign = 1 if row["entry_type"] == kind else -1
                sums[row["order_no"], row["transaction_id"], currency] += sign * amount
        return dict(sums)

    def _recorded(self) -> list[Link]:
        every = links(self.connection, self.run.run_id)
        return [link for link in every if link.step == LEDGER_STEP]

    def _place(self) -> tuple[Storage, Sealed, str]:
        recorded = self._recorded()
        if not recorded:
            msg = (
                f"the history binds no ledger of run {self.run.run_id}, though its row says that "
                "it read some: put back a backup of the database"
            )
            raise ArchiveBrokenError(msg)
        refuse_purged(self.connection, self.run.run_id)
        storage = storage_of(self.run, environment=self.environment)
        return (
            storage,
            recorded_step(storage, recorded[-1], doing=LEDGER_UNREAD),
            f"{LEDGER}.parquet",
        )


@dataclass(frozen=True)
class StoredResult:
    """The result of a run.

    Its members raise ArchiveError where the night's folder cannot be reached, or differs from what
    was sealed.
    """

    connection: Connection
    run_id: str
    environment: Environment

    @cached_property
    def _night(self) -> SealedNight:
        run = runs.get(self.connection, self.run_id)
        return sealed_night(self.connection, run, environment=self.environment)

    @property
    def _is_there(self) -> bool:
        return results.load_summary(self.connection, self.run_id) is not None

    def whole(self) -> Reconciliation | None:
        """The whole result; None when the run never got that far.

        Its matches are read on first use; `match_batches` reads them in batches.
        """
        summary = results.load_summary(self.connection, self.run_id)
        if summary is None:
            return None
        night = self._night
        names = ("breaks", "effects", "pending", "unverified", "sides", "movements")
        same: dict[str, Any] = {name: getattr(summary, name) for name in results.OF_RESULT}
        saved = Reconciliation(
            **(same | self.frames(*names)),
            every_match=Deferred(lambda: night.frame("matches")),
            control_totals=results.load_totals(self.connection, self.run_id),
            digest=summary.digest,
            journals=_in_pairs(night.frame("journals")),
            bank={name: night.frame(name) for name in (*BANK_TABLES, BANKED) if night.has(name)},
        )
        return replace(saved, held=night.frame("held")) if night.has("held") else saved

    def frames(self, *names: str) -> dict[str, pd.DataFrame]:
        """Some of its files, by name."""
        return {name: self._night.frame(name) for name in names}

    def list_files(self) -> dict[str, ListFile]:
        """Each of LISTS_IN_FILES -> its file, as described by the manifest."""
        entries = ((section, self._night.entry(SECTIONS[section])) for section in LISTS_IN_FILES)
        return {
            section: ListFile(f"{step}/{entry.name}", entry.rows, entry.bytes, entry.sha256)
            for section, (step, entry) in entries
        }

    def open_breaks(self) -> pd.DataFrame | None:
        """The open breaks of the run, BREAK_COLUMNS; None without a result."""
        return self._night.frame("breaks") if self._is_there else None

    def orders_left_open(self) -> set[str]:
        """The orders of the run's open breaks and of its pending sets."""
        names = ("breaks", "pending") if self._is_there else ()
        return {
            order_no
            for name in names
            for order_no in self._night.table(name)["order_no"].to_pylist()
        }

    def match_batches(self, *, rows_max: int) -> Iterator[pd.DataFrame]:
        """The matches of the run in order, at most `rows_max` at a time."""
        content, name = self._night.content("matches")
        for table in row_batches(content, name=name, rows_max=rows_max):
            yield frame_of_table(table)


def _in_pairs(journals: pd.DataFrame) -> pd.DataFrame:
    """Journal lines by break, each debit followed by its credit, in the order of the proposal."""
    if journals.empty:
        return journals
    amount = journals["debit"] + journals["credit"]
    by = ["merchant_id", "account_id", "break_id", "currency", "_amount", "credit"]
    ordered = journals.assign(_amount=amount).sort_values(by, kind="stable", ignore_index=True)
    return ordered.drop(columns="_amount")
