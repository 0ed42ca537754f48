"""Step 1: load order files, settlement files and bank statements, each whole or not at all.

The same content again changes nothing and is reported so; a file whose content does not fit its
name stays in the inbox, is reported, and the night goes on without it (its verdict is INCOMPLETE
then). Until a settlement file that could not be read or did not come has arrived, no payment of its
days is called unsettled.

A bank may serve several accounts: the first of their nights reads a file, the others note that it
is known. Only entries that may be ours are stored; a file is read again when a batch, or a list of
payments, has become known since that may name one of its entries.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from recon.archive.schemas import ORDER_FACTS, SETTLED_FACTS
from recon.config.file_layouts import MENDED_PREFIX, layout_of
from recon.config.file_sources import BankFolder, SettlementFolder
from recon.files.kinds.bank_file import ENDINGS
from recon.files.kinds.instruction_file import is_instruction_file
from recon.files.reader import (
    BankRead,
    OrderRead,
    SpooledRows,
    bank_file,
    instruction_file,
    order_file,
    settlement_file,
)
from recon.instructions.sealing import Seal
from recon.matching.bank.receipts import lists_of_ours, stored_of
from recon.matching.frames.bank_sources import DETAILS
from recon.model.business_date import BusinessCalendar
from recon.model.errors import SourceMissingError, SourceUnreadableError
from recon.model.nights import Account, StepSummary
from recon.model.step_progress import WorkProgress
from recon.model.terms import SourceFile, SourceKind
from recon.privacy.displayed_text import displayed_name
from recon.steps.files.arrivals import DeclaredInbox, Sleep, unreadable_identity
from recon.steps.files.arrived_rows import short_files_reported
from recon.steps.files.file_decisions import dismissed, known_file
from recon.steps.files.incomplete import WHOLE_FILE
from recon.steps.files.lost_facts import missing_read_again, reading_lost_facts
from recon.steps.files.newest_export import Export, is_newer
from recon.steps.files.order_files import refused_actions
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import storage_of, storages_of
from recon.store import Connection
from recon.store.database.engine import Turn
from recon.store.nights import bank_rows, facts_rows, order_rows, runs, settlement_rows
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import Settlements

AFTER_CUT_OFF = timedelta(hours=6)
"""Rows of the first hours after the cut-off belong to the day that closed: files are made then."""
STRAY_ROWS_SHARE = 0.01
"""This share of a file's rows, those with the newest times, may be wrong and is ignored."""
STEP = "ingest"
NAMED_MAX = 3
"""Refused instructions that the step names; `recon order-file check` shows more."""
DISMISSED = "was not read: somebody dismissed it (`recon order-file check`)"


@reading_lost_facts
def ingest(run_id: str, *, environment: Environment, sleep: Sleep = time.sleep) -> StepSummary:
    """Read new files in the account's inboxes, after fetching remote files into them.

    Raises:
        SourceMissingError: the folder of an inbox does not exist.
    """
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    orders = OrderInbox(run, environment, account)
    lost = [*missing_read_again(run.account, environment=environment)]
    figures = dict.fromkeys(("files", "known_files", "rows", "rejected", "refused"), 0)
    refused: list[str] = []
    copies: list[str] = []
    for name, source, problem in orders.each(sleep=sleep):
        if problem is not None:
            is_missing = isinstance(problem, SourceMissingError)
            why = "was gone when it was to be read" if is_missing else problem
            refused.append(f"{name}: {why}")
            continue
        if source is None:
            figures["known_files"] += name not in orders.later
            continue
        if order_rows.is_copy(source):
            copies.append(f"{displayed_name(source.name)} ({source.rows_read} rows)")
        counted = {"files": 1, "rows": source.rows_accepted, "rejected": source.rows_rejected}
        figures |= {name: figures[name] + more for name, more in counted.items()}
    figures["refused"] = len(refused)
    figures["refused_instructions"] = len(orders.against)
    sentence = _sentence(figures, refused=refused, later=orders.later)
    if against := orders.against:
        more = f"; and {len(against) - NAMED_MAX} more" if len(against) > NAMED_MAX else ""
        sentence += (
            f" {len(against)} instructions refused; their rows are compared, and two people "
            f"approve what is meant so: {'; '.join(against[:NAMED_MAX])}{more}."
        )
    sentence += f" Told before, and counted once: {', '.join(copies)}." if copies else ""
    sentence += orders.sentence()
    sentence += f" Not archived: {'; '.join(orders.private)}." if orders.private else ""
    short = short_files_reported(run, until=None, environment=environment)
    figures["short_files"] = len(short)
    sentence += "".join(f" {each}" for each in (*short, *lost))
    if account.settlement is not None:
        settlement = SettlementInbox(run, environment, account.settlement)
        sentence += settlement.read(figures, sleep=sleep)
    for name, folder in environment.settings.banks.items():
        if run.account in environment.settings.rules.bank[name].served:
            bank = BankInbox.of(name, folder=folder, run=run, environment=environment)
            sentence += bank.read(figures, sleep=sleep)
    with environment.store.writing() as connection:
        runs.note_step(connection, run_id, step=STEP)
    return StepSummary(STEP, sentence, figures)


def _sentence(figures: dict[str, int], *, refused: Sequence[str], later: Mapping[str, str]) -> str:
    if not figures["files"] and not figures["known_files"] and not refused and not later:
        return "The inbox is empty: no order file has arrived."
    sentence = (
        f"{figures['files']} new order files with {figures['rows']} rows accepted and "
        f"{figures['rejected']} rejected; {figures['known_files']} files were known already."
    )
    for name, why in later.items():
        sentence += f" {name} {why}." if why == DISMISSED else f" {name} was left: {why}."
    if refused:
        sentence += (
            f" {len(refused)} refused as a whole and left in the inbox: {'; '.join(refused)}."
        )
    return sentence


@dataclass
class OrderInbox(DeclaredInbox[SourceFile | None]):
    """The inbox of order files and of files of instructions."""

    private: list[str] = field(default_factory=list, init=False)
    """Files that are not archived, and why."""
    later: dict[str, str] = field(default_factory=dict, init=False)
    """Files that are left for a later night, and why."""
    against: list[str] = field(default_factory=list, init=False)
    """Instructions that their own rows contradict."""

    def take(self, path: Path) -> SourceFile | None:
        """Store one file; None for the version that a person dismissed, which is not opened."""
        displayed = displayed_name(path.name)
        with self.environment.store.reading() as connection:
            identity = dismissed(connection, self.run, name=displayed, environment=self.environment)
        if identity and identity == unreadable_identity(path, name=displayed):
            self.later[displayed] = DISMISSED
            return None
        return super().take(path)

    def take_new(self, path: Path) -> SourceFile | None:
        """Read and store a new file; None where it is left for a later night."""
        if is_instruction_file(path):
            return self._take_instructions(path)
        archive, rules = self.account.archive, self.environment.settings.rules
        layout = self.layout_of(path)
        with order_file(path, rules=rules, layout=layout, keep=archive is not None) as read:
            if why := left_for_later(read, run=self.run, environment=self.environment):
                self.later[displayed_name(path.name)] = why
                return None
            self._archive(path, read.facts.source_file, why=read.facts.private)
            return self._save(read)

    def is_noted(self, connection: Connection, source: SourceFile) -> bool:
        """Whether this version is the current one, unless people decided to have it read again."""
        return self._known(connection, source.name, sha256=source.sha256) is not None

    def known(self, path: Path, *, sha256: str) -> tuple[bool, SourceFile | None]:
        """Whether the content is known; under a new name it is noted under that name too.

        Refused files are not recognised by their content: they are reported each night.
        """
        with self.environment.store.reading() as connection:
            known = self._known(connection, path.name, sha256=sha256)
        if known is None or not self.is_stored(path, sha256=sha256):
            return False, None
        if known.name == path.name:
            return True, None
        with self.environment.store.writing(turn=Turn.ORDERS) as connection:
            return self._known_copy(connection, path.name, sha256=sha256)

    def _known(self, connection: Connection, name: str, *, sha256: str) -> SourceFile | None:
        environment = self.environment
        return known_file(connection, self.run, name=name, sha256=sha256, environment=environment)

    def _known_copy(
        self, connection: Connection, name: str, *, sha256: str
    ) -> tuple[bool, SourceFile | None]:
        """Whether content is known, and the noted copy where it is known under another name."""
        known = self._known(connection, name, sha256=sha256)
        if known is None or known.name == name:
            return known is not None, None
        at = self.environment.clock()
        sender = self.sender_of(name, reach=None, connection=connection)
        copy = order_rows.save_copy(connection, self.run, of=known, name=name, sender=sender, at=at)
        return True, copy

    def sender_of(self, name: str, *, reach: datetime | None, connection: Connection) -> str:
        """Inbox and name, or the pattern of names whose newest file counts; see `StoredFacts`.

        The inbox is the first of the accounts that share it: they have one sender. A mended file
        counts as the file whose rows it mends. A file that is not surely newer than the newest of
        its pattern is a sender of its own.
        """
        every = self.environment.settings.accounts
        inbox = min(own for own, each in every.items() if each.inbox == self.account.inbox)
        meant = name.removeprefix(MENDED_PREFIX)
        layout = layout_of(meant, layouts=every[inbox].layouts)
        if layout.newest_file_counts:
            pattern = f"{inbox}/{layout.files}"
            last = facts_rows.newest_of_sender(connection, self.run, sender=pattern)
            this = Export(meant, reach, self.run.business_date)
            if last is None or is_newer(
                this, than=Export(last[0].removeprefix(MENDED_PREFIX), *last[1:])
            ):
                return pattern
        return f"{inbox}/{name}"

    def _archive(self, path: Path, source: SourceFile, *, why: str) -> None:
        if unkept := self.keep(path, source, private=why):
            self.private.append(unkept)

    def _save(self, read: OrderRead) -> SourceFile | None:
        """Store a file that was read whole; None when its content was read before.

        Its rows are written to the archive before the database's lock is taken.
        """
        store, run, source = self.environment.store, self.run, read.facts.source_file
        facts = facts_rows.written(
            run.business_date,
            _counted(read),
            schema=ORDER_FACTS,
            storage=storage_of(run, environment=self.environment),
        )
        self.environment.crash_point("archived the orders")
        found: dict[int, str] = {}

        def looked_through() -> Iterator[SpooledRows]:
            """The rows; instructions that contradict their row are noted as they pass."""
            for part in read.parts():
                found.update(refused_actions(part.actions))
                yield part

        with store.writing(turn=Turn.ORDERS) as connection:
            is_known, copy = self._known_copy(connection, source.name, sha256=source.sha256)
            if is_known:
                return copy
            if facts is not None:
                reach = max(each.ordered_to for each in facts.accounts)
                sender = self.sender_of(source.name, reach=reach, connection=connection)
                facts = facts.by(sender)
            order_rows.save_file(
                connection,
                run,
                source=source,
                facts=facts,
                parts=looked_through,
                rejects=read.facts.rejects,
                at=self.environment.clock(),
            )
        name = displayed_name(source.name)
        self.against += [f"{name} line {line}: {why}" for line, why in found.items()]
        return source

    def _take_instructions(self, path: Path) -> SourceFile | None:
        settings = self.environment.settings
        read = instruction_file(
            path,
            rules=settings.rules,
            seal=Seal(settings.seal_key) if settings.seal_key else None,
            review_flags=settings.gateway.review_flags,
            interface=settings.interface,
            layout=self.layout_of(path),
            keep=self.account.archive is not None,
        )
        source = read.source_file
        self._archive(path, source, why=read.private)
        with self.environment.store.writing(turn=Turn.ORDERS) as connection:
            is_known, copy = self._known_copy(connection, source.name, sha256=source.sha256)
            if is_known:
                return copy
            order_rows.save_file(
                connection,
                self.run,
                actions=read.actions,
                rejects=read.rejects,
                source=source,
                at=self.environment.clock(),
            )
        return source


def _counted(read: OrderRead) -> Iterator[pd.DataFrame]:
    """The rows of a file, with progress reported as they are stored."""
    source = read.facts.source_file
    progress = WorkProgress(
        f"rows of {displayed_name(source.name)} stored", of=source.rows_accepted
    )
    for orders, _ in read.parts():
        yield orders
        progress.advance(len(orders))


def left_for_later(read: OrderRead, *, run: Run, environment: Environment) -> str:
    """Why a file is not taken by this night; "" where it belongs to it.

    The first run of a night takes a file that reaches into a day that is still open: there is no
    other night for it yet. A corrected version of a file of this night always belongs to it.
    """
    calendar, now = environment.settings.rules.business_calendar, environment.clock()
    day = run.business_date
    following = _business_day(day + timedelta(days=1), calendar=calendar)
    with environment.store.reading() as connection:
        has_night = day in runs.live_nights(connection, run)
        files = [file for file, _ in order_rows.files_of_night(connection, run)]
    # Whether a finished live night of this date had an order file already.
    names = {file.name for file in files if file.kind is SourceKind.ORDERS and file.rows_accepted}
    had_file = has_night and bool(names)
    same_name = read.facts.source_file.name in names
    if same_name or not (had_file or calendar.closes_at(following) <= now):
        return ""
    newest = _reach(read)
    if newest is None:
        return ""
    own = _business_day(calendar.business_date_of(newest - AFTER_CUT_OFF), calendar=calendar)
    if own <= day or not (had_file or calendar.closes_at(own) <= now):
        return ""
    return f"its newest rows are of {newest:%Y-%m-%d %H:%M} UTC: the night of {own} takes it"


def _reach(read: OrderRead) -> datetime | None:
    """Newest time of a file's rows but for the few that may be mistakes; None without rows."""
    instants = []
    for part in read.parts():
        times = part.orders[["ordered_at", "updated_at"]].max(axis=1).dropna()
        microseconds = times.astype("datetime64[us, UTC]").to_numpy("datetime64[us]")
        instants.append(microseconds.astype(np.int64))
    every = np.sort(np.concatenate(instants)) if instants else np.array([], dtype=np.int64)
    if not every.size:
        return None
    rank = every.size - 1 - int(every.size * STRAY_ROWS_SHARE)
    return datetime.fromtimestamp(int(every[rank]) / 1_000_000, UTC)


def _business_day(day: date, *, calendar: BusinessCalendar) -> date:
    """The day itself, or the first business day after it: other days have no night of their own."""
    while not calendar.is_business_day(day):
        day += timedelta(days=1)
    return day


@dataclass
class SettlementInbox(DeclaredInbox[tuple[SourceFile | None, str]]):
    """The inbox of an account's settlement files."""

    folder: SettlementFolder
    called: str = "settlement.inbox"
    prefix: str = settlement_rows.NAME_PREFIX
    kind: ClassVar[SourceKind] = SourceKind.SETTLEMENT

    def read(self, figures: dict[str, int], *, sleep: Sleep) -> str:
        """Read new files; returns sentences on what happened."""
        new = rows = 0
        words = ""
        for name, taken, problem in self.each(sleep=sleep):
            source, sentence = taken or (None, _not_taken(name, problem, figures=figures))
            words += sentence
            if source is not None:
                new, rows = new + 1, rows + source.rows_accepted
        figures["settlement_files"], figures["settlement_lines"] = new, rows
        known = len(self.waiting.files) - new
        what = f" {new} new settlement files with {rows} lines accepted; {known} known or refused."
        if not self.waiting.files:
            what = " No settlement file has arrived."
        return what + words + self.sentence()

    def known(
        self, path: Path, *, sha256: str
    ) -> tuple[bool, tuple[SourceFile | None, str] | None]:
        """Whether the content is noted and, with an archive, archived too."""
        return self._is_noted(path, sha256) and self.is_stored(path, sha256=sha256), (None, "")

    def _is_noted(self, path: Path, sha256: str) -> bool:
        with self.environment.store.reading() as connection:
            noted = bank_rows.newest_of(connection, self.run, name=self.name_of(path))
        return noted is not None and noted.sha256 == sha256

    def take_new(self, path: Path) -> tuple[SourceFile | None, str]:
        """The stored file, None when its content was read before; and a sentence for people.

        Its lines are written to the archive before the database's lock is taken.
        """
        run, environment, name = self.run, self.environment, self.name_of(path)
        rules, stored = environment.settings.rules, self.account.archive is not None
        lines, facts = settlement_file(path, rules=rules, layout=self.layout_of(path), keep=stored)
        source = replace(facts.source_file, name=name)
        why = self.keep(path, source, private=facts.private)
        words = f" Not archived: {why}." if why else ""
        if self._is_noted(path, source.sha256):
            return None, words
        storage = storage_of(run, environment=environment)
        settled = facts_rows.written(
            run.business_date, [lines], schema=SETTLED_FACTS, storage=storage
        )
        environment.crash_point("archived the lines")
        with environment.store.writing(turn=Turn.ORDERS) as connection:
            order_rows.save_file(
                connection,
                run,
                source=source,
                facts=settled,
                rejects=[replace(reject, source=name) for reject in facts.rejects],
                at=environment.clock(),
            )
        return source, words

    def missed(self, connection: Connection) -> set[str]:
        """Names of missed settlement files: what was settled on their days is unknown till then."""
        settled = Settlements(connection, self.run, storages_of(self.environment))
        return {name for _, name in settled.missing(whole_file=WHOLE_FILE)}


@dataclass
class BankInbox(DeclaredInbox[str | None]):
    """The inbox of one bank's statements."""

    folder: BankFolder
    bank: str = ""
    kind: ClassVar[SourceKind] = SourceKind.BANK
    endings: ClassVar = ENDINGS

    @classmethod
    def of(
        cls, name: str, *, folder: BankFolder, run: Run, environment: Environment
    ) -> "BankInbox":
        """The inbox of a bank, by the bank's name in merchants.toml."""
        prefix = bank_rows.name_of(name, "")
        return cls(run, environment, folder, f"bank.{name}.inbox", prefix, name)

    @property
    def served(self) -> frozenset[Account]:
        """All accounts whose payouts go to this bank."""
        return self.environment.settings.rules.bank[self.bank].served

    def read(self, figures: dict[str, int], *, sleep: Sleep) -> str:
        """Read new files; returns sentences on what happened."""
        new, sentences, here = 0, "", set[str]()
        for name, notes, problem in self.each(sleep=sleep):
            here.add(name)
            new += notes is not None
            sentences += notes or _not_taken(name, problem, figures=figures)
        # A refused file that was removed since: nobody waits for it any more.
        with self.environment.store.reading() as connection:
            noted = self.missed(connection)
        for name in sorted(noted):
            own = name.removeprefix(self.prefix)
            if name.startswith(self.prefix) and own not in here | {*self.watched}:
                self.note_absent(name)
        figures["bank_files"] = figures.get("bank_files", 0) + new
        known = len(self.waiting.files) - new
        words = f" {new} new files of the bank {self.bank}; {known} known or refused."
        if not self.waiting.files:
            words = f" No file of the bank {self.bank} has arrived."
        return words + sentences + self.sentence()

    def take_new(self, path: Path) -> str | None:
        """Read and store a new file; returns the notes on it."""
        rules = self.environment.settings.rules
        with bank_file(path, rules=rules, layout=self.layout_of(path)) as read:
            self._save(read, name=self.name_of(path))
            return "".join(f" {note}" for note in read.facts.notes)

    def missed(self, connection: Connection) -> set[str]:
        """Names of missed bank files: what came in on their days is unknown till then."""
        return bank_rows.not_right(connection, self.run)

    def known(self, path: Path, *, sha256: str) -> tuple[bool, str | None]:
        """Whether any night read it, and no batch or list that may name an entry came since."""
        name, of_bank = self.name_of(path), {"bank": self.bank, "sha256": sha256}
        with self.environment.store.writing(turn=Turn.ORDERS) as connection:
            before = bank_rows.read_before(connection, name=name, sha256=sha256)
            if before is None:
                return False, None
            if bank_rows.reported_since(connection, **of_bank, accounts=self.served):
                return False, None
            if not self.is_noted(connection, before):
                at = self.environment.clock()
                bank_rows.note_known(connection, self.run, source=before, at=at)
        return True, None

    def _save(self, read: BankRead, *, name: str) -> None:
        """Store the statements and those of their entries that are in scope."""
        environment, facts = self.environment, read.facts
        with environment.store.writing(turn=Turn.ORDERS) as connection:
            batches = bank_rows.batch_ids(
                connection, accounts=self.served, storages=storages_of(environment)
            )
            known = bank_rows.source_of(connection, self.run, banks=[self.bank], until=None)
            if known is not None:  # only the lists of payments
                forms = [statement.form for statement in known.statements]
                lists = [at for at, form in enumerate(forms) if form == DETAILS]
                of_lists = known.entries["statement"].isin(lists)
                known = replace(known, entries=known.entries[of_lists])
            stored = stored_of(
                read.source,
                batches=batches,
                listed=lists_of_ours(known) if known else (),
                rules=environment.settings.rules,
            )
            ours = int(stored.entries["part"].eq(0).sum())
            # Entries of other parties are skipped by rule: only their number and sum are stored.
            skipped = facts.source_file.rows_read - ours
            source = replace(facts.source_file, rows_accepted=ours, rows_skipped=skipped, name=name)
            statements = tuple(replace(statement, source=name) for statement in stored.statements)
            bank_rows.save_file(
                connection,
                self.run,
                read=replace(stored, statements=statements),
                source=source,
                bank=self.bank,
                at=environment.clock(),
            )


def _not_taken(
    name: str,
    problem: SourceMissingError | SourceUnreadableError | None,
    *,
    figures: dict[str, int],
) -> str:
    """Sentence on why a file was not read; "" for one that was read or is known."""
    if problem is None:
        return ""
    if isinstance(problem, SourceMissingError):
        return f" {name} was gone when it was to be read."
    figures["refused"] += 1
    return f" {name} was refused as a whole and left where it is: {problem}."
