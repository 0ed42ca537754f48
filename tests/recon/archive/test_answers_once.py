"""Answers that a night compared are written once, whatever was asked again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from recon.archive.answer_schemas import REPLIES
from recon.archive.answers_once import as_answers, compared_once, whole_answers
from recon.archive.rows_file import sorted_rows, write_rows
from recon.archive.schemas import SCHEMAS
from recon.proof.answers_in_sql import answers_view
from recon.proof.second_engine import reading

AT = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)
ANSWERS = SCHEMAS["answers"]
BEFORE, AFTER = "answers-1/replies-00001.parquet", "answers-2/replies-00003.parquet"


def replies(*rows: dict[str, Any]) -> pa.Table:
    """A file of answers, sorted as it would be written."""
    blank: dict[str, Any] = {
        field.name: None if field.nullable else 0 if pa.types.is_int64(field.type) else ""
        for field in REPLIES.columns
    }
    own = {"phase": "baseline", "merchant_id": "M", "account_id": "1", "currency": "EUR"}
    cells = [blank | own | {"answer": "found", "answered_at": AT, **row} for row in rows]
    columns = [pa.array([row[field.name] for row in cells]) for field in REPLIES.columns]
    table = pa.table(
        [column.cast(field.type) for column, field in zip(columns, REPLIES.columns, strict=True)],
        schema=REPLIES.columns,
    )
    return sorted_rows(table, schema=REPLIES)


def payment(order_no: str, *, minutes: int = 0, **cells: Any) -> dict[str, Any]:
    """An answer that shows a payment."""
    at = AT + timedelta(minutes=minutes)
    number = {"order_no": order_no, "transaction_id": f"T{order_no}", "amount": 1200}
    return {**number, "payment_status": "5", "queried_at": at, **cells}


FIRST = replies(
    payment("A"),
    payment("B", transaction_date=AT),
    payment("C"),
    {"order_no": "D", "answer": "not_found", "currency": ""},
    payment("E", account_id="2"),
)
SECOND = replies(payment("B", minutes=9, amount=900, payment_status="6"))
FILES = [(BEFORE, FIRST), (AFTER, SECOND)]


def answers(*parts: pa.Table) -> pa.Table:
    """What is compared, by its key."""
    whole = pa.concat_tables(
        [SCHEMAS["answers"].columns.empty_table(), *parts]
    ).unify_dictionaries()
    return sorted_rows(whole, schema=ANSWERS)


def rows_of(table: pa.Table, *order_nos: str) -> pa.Table:
    """Some rows of a file as they are compared."""
    is_named = [order_no in order_nos for order_no in table["order_no"].to_pylist()]
    return as_answers(table.filter(pa.array(is_named)))


def said_otherwise(table: pa.Table, **cells: Any) -> pa.Table:
    """The rows with other words in some columns."""
    for name, cell in cells.items():
        field = table.schema.field(name)
        at = table.schema.get_field_index(name)
        table = table.set_column(at, field, pa.array([cell] * len(table)).cast(field.type))
    return table


COMPARED = {
    "asked again": answers(rows_of(FIRST, "A", "C", "D"), as_answers(SECOND)),
    "older left out": answers(rows_of(FIRST, "C", "D"), as_answers(SECOND)),
    "nothing": answers(),
    "of another account in other words": answers(
        rows_of(FIRST, "A", "C", "D"),
        as_answers(SECOND),
        said_otherwise(rows_of(FIRST, "E"), answer="not_found"),
    ),
    "of no file": answers(
        rows_of(FIRST, "A"), said_otherwise(rows_of(FIRST, "C"), captured_amount=700)
    ),
    "twice": answers(rows_of(FIRST, "A"), rows_of(FIRST, "A"), rows_of(FIRST, "D")),
    "the older answer": answers(rows_of(FIRST, "A", "B", "C", "D")),
}
OWN_ROWS = {"of another account in other words": 1, "of no file": 1, "twice": 1}


@pytest.mark.parametrize("case", COMPARED)
def test_what_was_compared_comes_back_from_the_files_of_the_answers(case: str) -> None:
    """Only rows that no file has in the same words are written once more; none is lost or new."""
    compared = COMPARED[case]
    passed_over, own = compared_once(compared, replies=FILES[::-1])
    assert len(own) == OWN_ROWS.get(case, 0)
    back = whole_answers(own, passed_over=passed_over, replies=FILES)
    assert sorted_rows(back, schema=ANSWERS).equals(compared)
    some = whole_answers(own, passed_over=passed_over, replies=FILES, columns=["order_no"])
    assert sorted(some["order_no"].to_pylist()) == compared["order_no"].to_pylist()


@pytest.mark.parametrize("case", COMPARED)
@pytest.mark.parametrize("moved", [False, True], ids=["in its place", "set aside"])
def test_another_engine_finds_the_same_rows_in_the_folder(
    case: str, tmp_path: Path, *, moved: bool
) -> None:
    """DuckDB with the sealed view has every row and column that was compared."""
    compared = COMPARED[case]
    passed_over, own = compared_once(compared, replies=FILES[::-1])
    step = "compared.aside-1" if moved else "compared"
    named = {"inputs/answers.parquet": own, f"{step}/passed_over.parquet": passed_over}
    schemas = [ANSWERS, SCHEMAS["passed_over"], REPLIES, REPLIES]
    for (name, table), schema in zip([*named.items(), *FILES], schemas, strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with (tmp_path / name).open("wb") as file:
            write_rows(file, sorted_rows(table, schema=schema), schema=schema)

    view = answers_view([BEFORE, AFTER]).replace("'compared/", f"'{step}/")
    for name in ("inputs", step, "answers-1", "answers-2"):
        view = view.replace(f"'{name}/", f"'{tmp_path}/{name}/")
    with reading(tmp_path) as connection:
        connection.execute(view)
        columns = ", ".join(ANSWERS.columns.names)
        seen = connection.execute(f"SELECT {columns} FROM answers").to_arrow_table()  # noqa: S608
    kinds = [
        pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type)
        for field in ANSWERS.columns
    ]
    plain = pa.schema(kinds)

    def as_rows(table: pa.Table) -> list[str]:
        return sorted(map(str, table.cast(plain).to_pylist()))

    assert as_rows(seen) == as_rows(compared)
