"""The books as a run read them: a step of its night, bound before anything is judged by them.

What is compared is a part of them (the window, the account); what they are proven by, and what
shoppers' banks took back, is asked of the whole.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recon.archive.rows_file import row_batches
from recon.archive.schemas import SCHEMAS
from recon.archive.step_folder import Sealed, entry_of, opened_file, rows_of
from recon.archive.storage import Storage, reachable
from recon.matching.frames.sources import LEDGER_COLUMNS
from recon.model.errors import ArchiveBrokenError
from recon.model.terms import REVERSAL_SUFFIX, EntryType, SourceFile
from recon.proof.night_tables import frame_of_table
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import (
    BOOKS,
    NOT_READ,
    Link,
    Terms,
    bound_step,
    links,
    refuse_let_go,
    storage_of,
    write,
)
from recon.store import Connection
from recon.store.nights import journal_rows, runs
from recon.store.nights.runs import Run

LEDGER = "ledger"
"""The one file of the step, of the schema that compared entries have."""
UNREAD = f"the books of the night {NOT_READ}"
_TAKEN_BACK = (
    *("merchant_id", "account_id", "order_no", "transaction_id", "entry_type"),
    *("currency", "amount", "transaction_currency", "transaction_amount"),
)
"""What an entry says of a chargeback."""
_SCHEMAS = {LEDGER: SCHEMAS[LEDGER]}


def sums_of_entries(table: pa.Table) -> dict[tuple[str, str], int]:
    """(entry type, currency) -> minor units, added up by Arrow and not by what is compared."""
    by = ["entry_type", "currency"]
    plain = {name: table[name].cast(pa.string()) for name in by}
    summed = pa.table({**plain, "amount": table["amount"]}).group_by(by)
    rows = summed.aggregate([("amount", "sum")]).to_pylist()
    return {(row["entry_type"], row["currency"]): row["amount_sum"] for row in rows}


def write_books(run: Run, *, entries: pa.Table, environment: Environment) -> Sealed:
    """Write what a run read of its books, of the schema; whoever notes its source binds it.

    Raises:
        ArchiveError: the archive cannot be written; nothing was sent.
    """
    sealed = write(
        run,
        BOOKS,
        parts=[*rows_of([(LEDGER, entries)])],
        terms=Terms("", environment.settings.rules.digest),
        after={},
        environment=environment,
    )
    environment.crash_point("archived the books")
    return sealed


@dataclass(frozen=True, slots=True)
class StoredBooks:
    """The books as a run read them.

    What is asked of them raises ArchiveError where the file cannot be reached, or is not the one
    that the history binds.
    """

    connection: Connection
    run: Run
    environment: Environment

    @property
    def rows(self) -> int:
        """How many entries they have, of any account."""
        _, sealed, name = self._place()
        entry = entry_of(sealed, name=name)
        return entry.rows if entry else 0

    @property
    def source(self) -> SourceFile | None:
        """Where the entries came from; None when the run read none."""
        return journal_rows.source_of(self.connection, self.run.run_id)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of them in their order, some rows at a time."""
        storage, sealed, name = self._place()
        with reachable(storage, doing=UNREAD), opened_file(storage, sealed, name=name) as file:
            path = f"{sealed.folder}/{name}"
            yield from row_batches(file, name=path, schemas=_SCHEMAS, columns=columns)

    def frames(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Columns of the account's entries and `row`, their number in the books, as `batches`."""
        at = 0
        for table in self.batches([*dict.fromkeys(("merchant_id", "account_id", *columns))]):
            frame = frame_of_table(table).assign(row=np.arange(at, at + len(table)))
            at += len(table)
            yield frame[self.are_own(frame)]

    def are_own(self, frame: pd.DataFrame) -> "pd.Series[bool]":
        """Which entries are of the run's account."""
        of_account = frame["account_id"].eq(self.run.account_id)
        return frame["merchant_id"].eq(self.run.merchant_id) & of_account

    def of_types(self, types: Collection[str]) -> pd.DataFrame | None:
        """LEDGER_COLUMNS of the entries of some types, and of all that bear the id of one of them.

        None where the run read no books.
        """
        if self.source is None:
            return None
        words, ids = pa.array([*types], pa.string()), set[str]()
        for table in self.batches(("entry_id", "entry_type")):
            of_type = pc.is_in(table["entry_type"].cast(pa.string()), value_set=words)
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

        By the books that the run read itself, else by the newest that any run of the account read;
        reversals count against it.
        """
        books, run = self, self.run
        # A row that hides that this very run read some changes nothing.
        if not self._bound():
            run_id = journal_rows.newest_reader(self.connection, run)
            if run_id is None:
                return {}
            books = replace(self, run=runs.get(self.connection, run_id))
        kind = EntryType.CHARGEBACK.value
        wanted = {
            "merchant_id": [run.merchant_id],
            "account_id": [run.account_id],
            "entry_type": [kind, kind + REVERSAL_SUFFIX],
        }
        sums: Counter[tuple[str, str, str]] = Counter()
        for table in books.batches(_TAKEN_BACK):
            rows = table
            for name, words in wanted.items():
                among = pa.array(words)
                rows = rows.filter(pc.is_in(rows[name].cast(pa.string()), value_set=among))
            for row in rows.to_pylist():
                amount, currency = row["transaction_amount"], row["transaction_currency"]
                if amount is None:
                    amount, currency = row["amount"], row["currency"]
                sign = 1 if row["entry_type"] == kind else -1
                sums[row["order_no"], row["transaction_id"], currency] += sign * amount
        return dict(sums)

    def _bound(self) -> list[Link]:
        every = links(self.connection, self.run.run_id)
        return [link for link in every if link.step == BOOKS]

    def _place(self) -> tuple[Storage, Sealed, str]:
        """Where they lie: archive, step and file."""
        bound = self._bound()
        if not bound:
            msg = (
                f"the history binds no books of run {self.run.run_id}, though its row says that it "
                "read some: put back a backup of the database"
            )
            raise ArchiveBrokenError(msg)
        refuse_let_go(self.connection, self.run.run_id)
        storage = storage_of(self.run, environment=self.environment)
        return storage, bound_step(storage, bound[-1], doing=UNREAD), f"{LEDGER}.parquet"
