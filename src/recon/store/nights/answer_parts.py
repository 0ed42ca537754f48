"""Which archive files hold a run's queries to the gateway and the answers to them.

A file counts once its row is stored here. Its phase is `baseline` or `after` (before or after the
money steps), or the baseline of another account of the merchant.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime

import pandas as pd
from sqlalchemy import ColumnElement, Connection, func, insert, select

from recon.archive.step_folder import FileEntry
from recon.matching.frames.sources import KEY_COLUMNS, frame_of
from recon.store.database.bulk_rows import add_rows, read
from recon.store.nights.runs import BY_HAND, Run
from recon.store.schema import answer_part, charged_back_order
from recon.store.schema.columns import Owner, in_account

CODES_MAX = 1_000
FIELDS = ("payment_status", "query_result")


@dataclass(frozen=True, slots=True)
class CodeCount:
    """One gateway code of one field, with its frequency."""

    field: str
    code: str
    count: int
    order_no: str
    """One of the orders whose answer had it."""


def code_counts(connection: Connection, owner: Owner) -> list[CodeCount]:
    """Return the codes in an account's stored answers by field, the most frequent first."""
    mine = *in_account(answer_part, owner), answer_part.c.answered > 0
    documents = connection.execute(select(answer_part.c.codes).where(*mine)).scalars()
    seen: dict[tuple[str, str], tuple[int, str]] = {}
    for document in map(json.loads, documents):
        for field in FIELDS:
            for code, (count, order_no) in document.get(field, {}).items():
                before, first = seen.get((field, code), (0, order_no))
                seen[field, code] = (before + count, min(first, order_no))
    codes = [CodeCount(*key, *figures) for key, figures in seen.items()]
    codes.sort(key=lambda code: (FIELDS.index(code.field), -code.count, code.code))
    return [
        code
        for field in FIELDS
        for code in [each for each in codes if each.field == field][:CODES_MAX]
    ]


BASELINE = "baseline"
AFTER = "after"
OWN_PHASES = (BASELINE, AFTER)
OF_ACCOUNT = f"{BASELINE} of "


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """One archive file of query keys or of answers."""

    run_id: str
    phase: str
    merchant_id: str
    account_id: str
    path: str
    """Relative to the archive."""
    schema_label: str
    sha256: str
    size_bytes: int
    row_count: int
    asked: int = 0
    """Number of keys to query; 0 in a file of answers."""
    answered: int = 0
    """Number of keys with a final answer."""
    last_at: datetime | None = None
    """Time of its newest answer."""
    asked_after: int = 0
    """The newest link of the history when the last of its answers was queried."""
    codes: str = "{}"
    """JSON: field -> code -> count, and one order that has it."""
    chargeback_codes: str = ""
    """Codes that the rules mapped to chargeback at that time, separated by `;`."""
    part_id: int = 0
    """Set by the database, in order of arrival."""

    @property
    def folder(self) -> str:
        """Folder of its step, relative to the archive."""
        return self.path.rpartition("/")[0]

    @property
    def is_of_run(self) -> bool:
        """Whether a night or a part of one wrote it, not a person by hand."""
        return not self.run_id.startswith(BY_HAND)

    @property
    def entry(self) -> FileEntry:
        """Its entry in the folder's manifest."""
        return FileEntry(
            name=self.path.rpartition("/")[2],
            rows=self.row_count,
            bytes=self.size_bytes,
            sha256=self.sha256,
            schema=self.schema_label,
        )


_NAMES = tuple(each.name for each in fields(AnswerPart))


def sibling_phase(account_id: str) -> str:
    """Return the phase under which a run queries another account of the merchant."""
    return f"{OF_ACCOUNT}{account_id}"


def save(
    connection: Connection, part: AnswerPart, *, charged_back: Iterable[tuple[str, str]] = ()
) -> None:
    """Store a file's row, and the orders (with their codes) that it shows as charged back."""
    values = {name: getattr(part, name) for name in _NAMES if name != "part_id"}
    part_id = connection.execute(
        insert(answer_part).values(values).returning(answer_part.c.part_id)
    ).scalar_one()
    keys = {*charged_back}
    if not keys:
        return
    table = charged_back_order
    query = select(table.c.order_no, table.c.payment_status).where(*in_account(table, part))
    of_part = {
        "merchant_id": part.merchant_id,
        "account_id": part.account_id,
        "run_id": part.run_id,
        "part_id": part_id,
    }
    new = sorted(keys - {*connection.execute(query).tuples()})
    add_rows(
        connection,
        table,
        [{**of_part, "order_no": order_no, "payment_status": code} for order_no, code in new],
    )


def of_run(connection: Connection, run_id: str) -> list[AnswerPart]:
    """Return all files of a run in order of arrival."""
    return _parts(connection, answer_part.c.run_id == run_id)


def of_account(connection: Connection, owner: Owner, *, after: int = 0) -> list[AnswerPart]:
    """Return files with answers about an account, queried at or after link `after`, in order."""
    later = answer_part.c.asked_after >= after
    return _parts(connection, *in_account(answer_part, owner), answer_part.c.answered > 0, later)


def _parts(connection: Connection, *which: ColumnElement[bool]) -> list[AnswerPart]:
    return read(connection, AnswerPart, answer_part, *which, order=[answer_part.c.part_id])


def counted(connection: Connection, run_id: str, *, phase: str) -> tuple[int, int]:
    """Return how many keys of a phase had to be queried, and how many have a final answer."""
    sums = (func.coalesce(func.sum(answer_part.c[name]), 0) for name in ("asked", "answered"))
    own = answer_part.c.run_id == run_id, answer_part.c.phase == phase
    queried, answered = connection.execute(select(*sums).where(*own)).one()
    return int(queried), int(answered)


def newest(connection: Connection) -> int:
    """Return the number of the newest file; 0 if there is none."""
    return connection.execute(select(func.max(answer_part.c.part_id))).scalar() or 0


def charged_back_keys(
    connection: Connection, run: Run, *, codes: Collection[str], until: int
) -> pd.DataFrame:
    """Return KEY_COLUMNS of orders that answers of earlier runs showed with one of these codes."""
    table = charged_back_order
    rows = connection.execute(
        select(table.c.merchant_id, table.c.account_id, table.c.order_no)
        .where(
            *in_account(table, run),
            table.c.payment_status.in_(codes),
            table.c.run_id != run.run_id,
            table.c.part_id <= until,
        )
        .distinct()
        .order_by(table.c.order_no)
    )
    return frame_of([dict(row) for row in rows.mappings()], columns=KEY_COLUMNS)


def read_otherwise(
    connection: Connection, run: Run, *, codes: Collection[str], until: int
) -> list[AnswerPart]:
    """Return files of earlier runs with some of `codes`, not mapped to chargeback at that time."""
    parts = _parts(
        connection,
        *in_account(answer_part, run),
        answer_part.c.run_id != run.run_id,
        answer_part.c.part_id <= until,
        answer_part.c.answered > 0,
        answer_part.c.chargeback_codes != joined_codes(codes),
    )
    return [part for part in parts if _new_codes(part, codes)]


def joined_codes(codes: Collection[str]) -> str:
    """Return codes in the form in which a row stores them."""
    return ";".join(sorted(codes))


def _new_codes(part: AnswerPart, codes: Collection[str]) -> bool:
    codes_of: Mapping[str, object] = json.loads(part.codes).get("payment_status", {})
    return not set(codes).intersection(codes_of) <= set(part.chargeback_codes.split(";"))
