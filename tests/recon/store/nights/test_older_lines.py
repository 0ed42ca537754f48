"""Which older lines a night has one by one, and what the others come to, beside a plain model."""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from recon.matching.frames.sources import SETTLEMENT_COLUMNS, frame_of
from recon.model.words import SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import OLDER, AskedFor, NightLines, Settlements
from tests.recon.store.kept_lines import keep_lines

SINCE = "2026-11-10"
TYPES = ("capture", "refund", "fee", "payout", "reserve", "reserve_reversal", "chargeback")
Line = dict[str, Any]


def some_lines(chance: random.Random, run: Run, *, name: str) -> list[Line]:
    """Lines of a file, most of them older than the window; some name nothing."""
    return [
        {
            "batch_id": f"B{chance.randrange(3)}",
            "merchant_id": run.merchant_id,
            "account_id": chance.choice((run.account_id, run.account_id, "another")),
            "settled_on": f"2026-11-{chance.randrange(1, 13):02}",
            "entry_type": chance.choice(TYPES),
            "order_no": chance.choice(("", "", *"ABCDEF")),
            "transaction_id": chance.choice(("", "", *"ABCDEF")),
            "reference_no": f"{name}-{at}",
            "own_reference": chance.choice(("", "", "ours")),
            "method": chance.choice(("", "card")),
            "currency": chance.choice(("EUR", "SEK")),
            "gross": chance.randrange(-900, 900),
            "fee": chance.choice((0, 3)),
            "net": chance.randrange(-900, 900),
            "line": at,
        }
        for at in range(chance.randrange(9))
    ]


def stored(store: Store, run: Run, name: str, lines: Sequence[Line], *, of: StorageOf) -> None:
    """One version of a settlement file."""
    frame = frame_of(lines, columns=SETTLEMENT_COLUMNS)
    text, size = f"settlement/{name}", len(lines)
    source = SourceFile(SourceKind.SETTLEMENT, text, _sha256(lines), 9, size, size, 0, 0)
    keep_lines(store, run, frame, source=source, storages=of)


def _sha256(lines: Sequence[Line]) -> str:
    return hashlib.sha256(str(lines).encode()).hexdigest()


def modelled(
    files: Sequence[tuple[str, Sequence[Line]]],
    run: Run,
    *,
    asked: dict[str, set[str]],
    by_payment: bool,
) -> list[tuple[Any, ...]]:
    """What a night has, row by row: sums, older lines, and those of its window."""
    newest = dict(files)
    last = {name: at for at, (name, _) in enumerate(files)}
    counted = Counter[str]()
    sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    older, recent = [], []
    for name in sorted(newest, key=lambda each: last[each]):
        told_here = Counter[str]()
        for line in newest[name]:
            same = str([line[each] for each in sorted({*line} - {"line", "method"})])
            told_here[same] += 1
            if line["account_id"] != run.account_id or told_here[same] <= counted[same]:
                continue
            counted[same] += 1
            told = _row({**line, "source": f"settlement/{name}"})
            is_asked = any(line[key] and line[key] in asked[key] for key in asked)
            if line["settled_on"] >= SINCE:
                recent.append(told)
            elif is_asked and line["entry_type"] != "payout":
                older.append(told)
            else:
                for at, amount in enumerate(("gross", "fee", "net")):
                    sums[_group(line, by_payment=by_payment)][at] += line[amount]
    summed = [
        _row({**dict(key), **dict(zip(("gross", "fee", "net"), amounts, strict=True))})
        for key, amounts in sums.items()
    ]
    return [*sorted(summed), *older, *recent]


def _group(line: Line, *, by_payment: bool) -> tuple[Any, ...]:
    kind = "earlier"
    if line["entry_type"] == "payout" and not line["own_reference"]:
        kind = "payout"
    elif line["entry_type"].startswith("reserve"):
        kind = "reserve"
    names = ("merchant_id", "account_id", "batch_id", "settled_on", "currency")
    cells = {name: line[name] for name in names} | {"entry_type": kind, "source": OLDER}
    if by_payment and kind == "earlier" and line["fee"]:
        cells |= {name: line[name] for name in ("order_no", "transaction_id")}
    return tuple(sorted(cells.items()))


def _row(cells: Line) -> tuple[Any, ...]:
    return tuple(
        str(cells.get(name, "")) if kind == "string" else int(cells.get(name, 0))
        for name, kind in ((name, _kind(name)) for name in SETTLEMENT_COLUMNS)
    )


def _kind(name: str) -> str:
    return "number" if name in {"gross", "fee", "net", "line"} else "string"


def as_read(lines: NightLines) -> list[tuple[Any, ...]]:
    """The same by the files; sums, whose order nobody goes by, sorted."""
    rows = [_row(row) for table in lines.batches() for row in table.to_pylist()]
    at = [*SETTLEMENT_COLUMNS].index("source")
    sums = [row for row in rows if row[at] == OLDER]
    return [*sorted(sums), *(row for row in rows if row[at] != OLDER)]


@pytest.mark.parametrize("seed", range(8))
def test_a_night_has_what_a_plain_model_says(
    store: Store, run: Run, storages: StorageOf, seed: int
) -> None:
    """In any files and versions, whatever is asked for."""
    chance = random.Random(seed)
    files: list[tuple[str, Sequence[Line]]] = []
    for at in range(7):
        name = f"S{chance.randrange(5)}"
        lines = some_lines(chance, run, name=f"{name}-{at}")
        # Others tell some of them again, some twice, with the tariff or without.
        lines += [
            {**chance.choice(before), "line": 100 + number, "method": chance.choice(("", "card"))}
            for number, (_, before) in enumerate(chance.choices(files, k=8) if files else ())
            if before
        ]
        chance.shuffle(lines)
        lines = [{**line, "line": number} for number, line in enumerate(lines)]
        stored(store, run, name, lines, of=storages)
        files.append((name, lines))
    for by_payment in (False, True):
        asked = {
            name: {*chance.sample("ABCDEFZ", chance.randrange(4))}
            for name in ("order_no", "transaction_id")
        }
        with store.reading() as connection:
            wanted = replace(AskedFor.of(*asked.values()), by_payment=by_payment)
            settled = Settlements(connection, run, storages)
            lines_of_night = settled.lines(since=SINCE, asked=wanted)
        expected = modelled(files, run, asked=asked, by_payment=by_payment)
        assert as_read(lines_of_night) == expected
