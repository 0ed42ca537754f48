from random import Random

import duckdb

from recon.config.rules import Rules
from recon.matching.frames.sources import LEDGER_COLUMNS, frame_of
from recon.matching.sides.ledger_side import exchange_gaps, unrated_entries, unrated_texts

RULES = Rules.of(
    {
        "calendar": {"timezone": "Europe/Berlin"},
        "rate": {
            "USD.EUR": {
                "on": {"2026-11-02": "0.92", "2026-11-05": "0.9", "2026-11-20": "0.95"},
                "valid_days": 5,
                "basis_points": 20,
            },
            "JPY.EUR": {"on": {"2026-11-01": "0.0061"}, "valid_days": 60},
        },
    },
    source="test",
)


def entry(number, *, foreign, stated, amount, at):
    """One entry in euros of a payment in another currency."""
    return {
        "entry_id": f"L{number}",
        "merchant_id": "M",
        "account_id": "A",
        "order_no": "O",
        "entry_type": "capture",
        "currency": "EUR",
        "amount": amount,
        "booked_at": at,
        "transaction_currency": foreign,
        "transaction_amount": stated,
        "source": "l.csv",
        "line": number + 2,
    }


def test_each_entry_is_held_against_the_rate_of_its_own_day():
    """DuckDB joins the newest rate that is good on the local day, and comes to the same gaps."""
    chance = Random(19)
    rows = []
    for number in range(400):
        foreign = chance.choice(("USD", "USD", "JPY", "GBP"))
        stated = chance.randrange(100, 9_999_999)
        near = {"USD": "0.92", "JPY": "0.61", "GBP": "1.1"}[foreign]
        amount = int(stated * float(near)) + chance.choice((0, 0, 1, -1, chance.randrange(9_999)))
        day, hour = chance.randrange(1, 31), chance.randrange(24)
        at = f"2026-11-{day:02}T{hour:02}:30:00Z"
        rows.append(entry(number, foreign=foreign, stated=stated, amount=amount, at=at))
    rates = [
        (pair[:3], day.isoformat(), str(rate), own.valid_days, own.basis_points)
        for pair, own in RULES.rate.items()
        for day, rate in own.on.items()
    ]
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE e (n INT, f TEXT, stated DECIMAL(20, 4), booked DECIMAL(20, 4), day DATE);"
        "CREATE TABLE r (f TEXT, day DATE, rate DECIMAL(12, 6), valid INT, bp INT);"
    )
    for row in rows:
        units = row["transaction_amount"] / (1 if row["transaction_currency"] == "JPY" else 100)
        # Berlin is an hour ahead of UTC in November.
        local = f"(TIMESTAMP '{row['booked_at'][:19]}' + INTERVAL 1 HOUR)::DATE"
        connection.execute(
            f"INSERT INTO e SELECT ?, ?, ?, ?, {local}",  # our own
            [row["line"] - 2, row["transaction_currency"], units, row["amount"] / 100],
        )
    connection.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?)", rates)
    found = connection.execute(
        """
        SELECT n, e.f, booked - stated * rate AS gap, abs(stated * rate) * bp / 10000 AS bound, rate
        FROM e ASOF LEFT JOIN r ON e.f = r.f AND e.day >= r.day
        WHERE rate IS NOT NULL AND e.day <= r.day + valid
        """
    ).fetchall()
    expected = {
        number: round(float(gap) / float(rate) * (1 if foreign == "JPY" else 100))
        for number, foreign, gap, bound, rate in found
        if abs(gap) > max(bound, 0.01)
    }
    gaps = exchange_gaps(frame_of(rows, columns=LEDGER_COLUMNS), rules=RULES)
    assert {at: gap for at, gap in enumerate(gaps.tolist()) if gap} == expected
    assert len(expected) > 50
    assert len(found) < len(rows) - 100


def test_what_no_rate_is_held_against_is_told_by_pair():
    """Too old, not declared at all: how many entries, and of which day the first is."""
    rows = [
        entry(1, foreign="USD", stated=100, amount=90, at="2026-11-12T12:00:00Z"),
        entry(2, foreign="USD", stated=100, amount=90, at="2026-11-10T23:30:00Z"),
        entry(3, foreign="GBP", stated=100, amount=110, at="2026-11-10T12:00:00Z"),
        entry(4, foreign="JPY", stated=100, amount=61, at="2026-11-10T12:00:00Z"),
        entry(5, foreign="EUR", stated=100, amount=100, at="2026-11-10T12:00:00Z"),
    ]
    ledger = frame_of(rows, columns=LEDGER_COLUMNS)
    assert [*unrated_texts(unrated_entries(ledger, rules=RULES))] == [
        (
            "exchange GBP.EUR of 1 entry of the ledger: [rate] of the rules names no rate GBP.EUR "
            "of 10 Nov 2026 or before"
        ),
        (
            "exchange USD.EUR of 2 entries of the ledger: the newest rate USD.EUR of the rules "
            "before 11 Nov 2026 is of 5 Nov 2026, and holds for 5 days"
        ),
    ]
    assert exchange_gaps(ledger, rules=RULES).tolist() == [0, 0, 0, 0, 0]
    assert not unrated_entries(None, rules=RULES)
