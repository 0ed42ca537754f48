"""One contender of the benchmark of workbooks: writes what it is told to and prints its cost.

Started as a process of its own, so that CPU and peak memory are its own: NAME ROWS FOLDER.
"""

import csv
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from peers import peak_mib

COLUMNS = 15
"""Of the sheet Matched."""
BATCH_ROWS = 10_000
CURRENCIES = (("EUR", 2), ("JPY", 0), ("KWD", 3))


def rows(first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """Ten texts and five amounts (minor units) for each number: no two rows are alike."""
    for number in range(first, last):
        currency, _ = CURRENCIES[number % 3]
        amount = 1_000 + number * 7919 % 9_999_999
        yield (
            f"ORD-{number * 104729 % 10**9:09d}",
            f"{number * 15485863 % 10**18:020d}",
            f"L{number:09d}",
            "paid",
            "paid",
            currency,
            *(amount, amount, amount, 0, 0),
            "instructed" if number % 5 == 0 else "",
            "order_no",
            "100042001",
            f"{number * 2654435761 % 2**64:016x}",
        )


def recon(count: int, folder: Path) -> None:
    """The workbook of a night of so many matches, as a night writes it."""
    from reports.workbook import write_workbook

    write_workbook(night(count), folder / "recon.xlsx")


def night(matches: int, *, breaks: int = 0) -> Any:
    """The figures of a night; its matches come in parts."""
    import pandas as pd

    from recon.matching.breaks import result as of
    from recon.model.figures import (
        BATCH_COLUMNS,
        INSTRUCTION_SHEET_COLUMNS,
        MatchedRows,
        NightFigures,
    )
    from recon.model.words import Verdict

    names = ("order_no", "transaction_id", "entry_id", "state_orders", "state_gateway", "currency")
    amounts = ("order_amount", "gateway_amount", "ledger_amount", "effect_orders", "effect_ledger")
    order = (*names, *amounts, "flags", "rule", "account_id", "match_id")

    def batches() -> Iterator[pd.DataFrame]:
        for first in range(0, matches, BATCH_ROWS):
            part = list(rows(first, min(matches, first + BATCH_ROWS)))
            yield pd.DataFrame(part, columns=list(order)).assign(merchant_id="100042")

    def empty(columns: tuple[str, ...]) -> pd.DataFrame:
        return pd.DataFrame({name: pd.Series(dtype="str") for name in columns})

    sides = ("source", "merchant_id", "account_id", "currency", "state", "count", "amount")
    at = datetime(2026, 11, 21, tzinfo=UTC)
    return NightFigures(
        merchant_id="100042",
        account_id="100042001",
        merchant_name="Benchmark",
        business_date=date(2026, 11, 20),
        run_id="benchmark",
        mode="live",
        as_of=at,
        generated_at=at,
        timezone="UTC",
        verdict=Verdict.BREAKS_OPEN,
        breaks=broken(breaks),
        effects=empty(of.EFFECT_COLUMNS),
        matches=MatchedRows(matches, batches),
        pending=empty(of.PENDING_COLUMNS),
        unverified=empty(of.UNVERIFIED_COLUMNS),
        sides=empty(sides),
        control_totals=(),
        instructions=empty(INSTRUCTION_SHEET_COLUMNS),
        batches=empty(BATCH_COLUMNS),
        movements=empty(of.MOVEMENT_COLUMNS),
        journals=empty(of.JOURNAL_COLUMNS),
        files=(),
        rejects=(),
    )


def broken(count: int) -> Any:
    """So many breaks, each of an amount of its own."""
    import pandas as pd

    from recon.matching.breaks.result import BREAK_COLUMNS

    cells = {"code": "AMOUNT_OVER", "severity": "LOW", "currency": "EUR", "state_orders": "paid"}
    cells |= {"state_gateway": "paid", "merchant_id": "100042", "account_id": "100042001"}
    cells |= {"first_seen": "2026-11-20", "owed_to": "shopper", "reason": "the amounts differ"}
    breaks = [
        {**dict.fromkeys(BREAK_COLUMNS, ""), **cells, "break_id": f"{number:016x}"}
        | {"order_no": f"BRK-{number:09d}", "transaction_id": f"{number:020d}", "age_days": 1}
        | {"order_amount": 1_000, "gateway_amount": 1_000 + number, "ledger_amount": 1_000}
        | {"effect_orders": number, "effect_ledger": number, "exposure": number}
        for number in range(1, count + 1)
    ]
    return pd.DataFrame(breaks, columns=list(BREAK_COLUMNS))


def whole_night(count: int, folder: Path) -> None:
    """A night of so many orders and 300 breaks, every sheet."""
    from reports.workbook import write_workbook

    write_workbook(night(count - 300, breaks=300), folder / "night.xlsx")


def xlsxwriter_constant_memory(count: int, folder: Path) -> None:
    """XlsxWriter, a row at a time, typed calls, amounts and texts in formats."""
    import xlsxwriter

    book = xlsxwriter.Workbook(folder / "peer.xlsx", {"constant_memory": True})
    sheet = book.add_worksheet("Matched")
    text = book.add_format({"num_format": "@", "bottom": 1})
    money = {
        currency: book.add_format({"num_format": "#,##0" + (f".{'0' * places}" if places else "")})
        for currency, places in CURRENCIES
    }
    places = dict(CURRENCIES)
    for number, row in enumerate(rows(0, count)):
        for column, cell in enumerate(row):
            if isinstance(cell, int):
                scaled = float(Decimal(cell).scaleb(-places[row[5]]))
                sheet.write_number(number, column, scaled, money[row[5]])
            else:
                sheet.write_string(number, column, cell, text)
    book.close()


def openpyxl_write_only(count: int, folder: Path) -> None:
    """Openpyxl's write-only mode, plain values without any format."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Matched")
    places = dict(CURRENCIES)
    for row in rows(0, count):
        sheet.append(
            [
                Decimal(cell).scaleb(-places[row[5]]) if isinstance(cell, int) else cell
                for cell in row
            ]
        )
    book.save(folder / "plain.xlsx")


def zlib_of_the_same(count: int, folder: Path) -> None:
    """Level 6 of the sheet that recon wrote, in pieces: the floor of these bytes."""
    del count
    packer, size = zlib.compressobj(6), 0
    with (folder / "sheet.xml").open("rb") as file:
        while piece := file.read(1 << 16):
            size += len(packer.compress(piece))
    size += len(packer.flush())


def as_csv(count: int, folder: Path) -> None:
    """The same rows as CSV."""
    places = dict(CURRENCIES)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        for row in rows(0, count):
            writer.writerow(
                [
                    Decimal(cell).scaleb(-places[row[5]]) if isinstance(cell, int) else cell
                    for cell in row
                ]
            )


def returned(count: int, folder: Path) -> None:
    """A workbook of so many answered breaks, read back and held against its rows."""
    from reports.drawing.listing import rows_of
    from reports.reading.read_back import altered_cells, read_back

    answers = read_back(folder / "answered.xlsx")
    stored = {str(row["break_id"]): row for row in rows_of(broken(count))}
    if len(answers.rows) != count or altered_cells(answers.rows, breaks=stored):
        msg = "the returned workbook was not read as it was answered"
        raise SystemExit(msg)


CONTENDERS: dict[str, Callable[[int, Path], None]] = {
    writer.__name__: writer
    for writer in (
        recon,
        whole_night,
        xlsxwriter_constant_memory,
        openpyxl_write_only,
        zlib_of_the_same,
        as_csv,
        returned,
    )
}


def main() -> None:
    """Run one contender; its cost leaves out what makes the rows, and the imports."""
    name, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if name in {"recon", "whole_night"}:
        import reports.workbook
    elif name == "returned":
        import reports.reading.read_back  # noqa: F401 - not part of the cost
    started = time.process_time()
    for _ in rows(0, count):
        pass
    making = time.process_time() - started
    started = time.process_time()
    CONTENDERS[name](count, folder)
    # recon asks for its rows twice: once for the totals, once to write them.
    times = {"recon": 2, "whole_night": 2, "zlib_of_the_same": 0, "returned": 0}.get(name, 1)
    cpu = time.process_time() - started - times * making
    print(json.dumps({"cpu": cpu, "peak_mib": peak_mib()}))


if __name__ == "__main__":
    main()
