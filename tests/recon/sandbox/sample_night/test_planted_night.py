import csv
import io
import json
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from recon.model.words import BreakCode, GatewayState, UnverifiedReason
from recon.sandbox.sample_night import Account, SampleNight, sample_night
from recon.sandbox.sample_night.answer_key import NOT_SHOWN, answer_key
from recon.sandbox.sample_night.records import LEDGER_HEADER, ORDER_HEADER, cells_of
from recon.sandbox.sample_night.sample_files import (
    answer_key_table,
    ledger_csv_text,
    ledger_lines,
    order_file_names,
    order_rows,
    write_inbox,
    write_ledger_table,
)
from recon.sandbox.sample_night.true_payments import payments_of

Effects = tuple[dict[str, str], ...]
ACCOUNT = Account("100042", "100042001", "100042002")
BUSINESS_DATE = date(2026, 11, 20)
CLOSES_AT = datetime(2026, 11, 21, tzinfo=UTC)


def night_of(effects: Effects, *, seed: int = 42) -> SampleNight:
    """The demo's night over these effects."""
    return sample_night(effects, account=ACCOUNT, business_date=BUSINESS_DATE, seed=seed)


@pytest.fixture
def night(effects: Effects) -> SampleNight:
    """The demo's own night."""
    return night_of(effects)


def written(night: SampleNight, folder: Path) -> dict[str, bytes]:
    """Everything the night writes, by name."""
    folder.mkdir()
    write_inbox(night, inbox=folder)
    (folder / "ledger.csv").write_text(ledger_csv_text(night), encoding="utf-8", newline="")
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return files | {"answer-key.json": json.dumps(answer_key_table(night)).encode()}


def test_the_same_seed_writes_the_same_bytes(effects: Effects, tmp_path: Path) -> None:
    """A sample night can be made again, byte for byte, and another seed makes another."""
    first = written(night_of(effects), tmp_path / "first")
    again = written(night_of(effects), tmp_path / "again")
    other = written(night_of(effects, seed=43), tmp_path / "other")

    assert first == again
    assert first.keys() == other.keys()
    assert first["ledger.csv"] != other["ledger.csv"]


def test_what_the_api_did_is_no_part_of_the_truth_before_the_night(effects: Effects) -> None:
    """Only seeded effects count: the night may have run before the files are written again."""
    done_since = [{**effect, "origin": "api"} for effect in effects[-3:]]

    assert night_of((*effects, *done_since)) == night_of(effects)


def test_every_code_is_planted_or_has_a_reason(night: SampleNight) -> None:
    """No break code is left out of the sample without a word about why."""
    planted = {s.expected.code for s in night.stories if s.expected and s.expected.code}

    assert planted | set(NOT_SHOWN) == set(BreakCode)
    assert planted & set(NOT_SHOWN) == set()


def test_every_unverified_reason_of_files_is_planted(night: SampleNight) -> None:
    """The three reasons that files alone can give are there."""
    planted = {s.expected.unverified for s in night.stories if s.expected} - {None}

    assert planted == {
        UnverifiedReason.REFUND_AMOUNT_UNKNOWN,
        UnverifiedReason.ENTRY_ID_CONFLICT,
        UnverifiedReason.ROW_QUARANTINED,
    }


def test_most_orders_simply_match(night: SampleNight) -> None:
    """Nineteen of twenty orders have nothing to find, or match with a flag."""
    odd = sum(
        1
        for s in night.stories
        if s.expected and (s.expected.code or s.expected.unverified or s.expected.pending)
    )

    assert odd / len(night.stories) <= 0.05


def test_instructions_fill_several_batches(night: SampleNight) -> None:
    """The captures need more than one batch of fifty, refunds come in full and in part."""
    instructions = answer_key(night)["instructions"]
    lines = [line for s in night.stories for line in s.orders if line.action == "refund"]

    assert instructions["capture"] > 350
    assert 15 <= instructions["cancel"] <= 40
    assert 35 <= instructions["refund"] <= 60
    assert {line.action_amount is None for line in lines} == {True, False}


def test_an_order_has_one_story(night: SampleNight) -> None:
    """No two stories speak of the same order of an account."""
    keys = Counter(
        (line.account_id, line.order_no)
        for s in night.stories
        for line in {(one.account_id, one.order_no): one for one in s.orders}.values()
    )

    assert [key for key, count in keys.items() if count > 1] == []


def test_effects_follow_from_the_sides(night: SampleNight) -> None:
    """An order changed by some cents shows exactly these cents, with the sign of G - O."""
    by_code = {s.expected.code: s for s in night.stories if s.expected and s.expected.code}
    over, under = by_code[BreakCode.AMOUNT_OVER], by_code[BreakCode.AMOUNT_UNDER]

    assert [(e.leg, e.amount) for e in over.expected.effects] == [
        ("orders", over.ledger[0].amount - over.orders[0].amount)
    ]
    assert over.expected.effects[0].amount > 0 > under.expected.effects[0].amount


def test_a_wrong_account_nets_to_nothing(night: SampleNight) -> None:
    """The order stands in one account, its money in the other: -x and +x."""
    story = next(
        s for s in night.stories if s.expected and s.expected.code is BreakCode.WRONG_ACCOUNT
    )

    assert {e.account_id for e in story.expected.effects} == {"100042001", "100042002"}
    assert sum(e.amount for e in story.expected.effects) == 0


def test_rows_stand_where_the_key_says(night: SampleNight, tmp_path: Path) -> None:
    """File, line and column of each unreadable row are those of the written file."""
    files = written(night, tmp_path / "d")
    rejected = json.loads(files["answer-key.json"])["rejected_rows"]
    lines = files[rejected[0]["file"]].decode().splitlines()

    assert len(rejected) >= 15
    by_kind = {row["kind"]: lines[row["line"] - 1] for row in rejected}
    assert '"12,50"' in by_kind["decimal comma"]
    assert by_kind["header repeated"] == ",".join(ORDER_HEADER)
    assert by_kind["one cell too many"].endswith("surplus")


def test_repeats_come_in_another_file(night: SampleNight) -> None:
    """Repeated rows are identical, and a repeated refund keeps its request id."""
    rows = order_rows(night)
    late = set(rows.pop("web-corrections"))
    repeats = late & {row for channel in rows.values() for row in channel}
    actions = [dict(zip(ORDER_HEADER, row, strict=True)) for row in repeats]

    assert len(repeats) >= 4
    assert all(row["request_id"] for row in actions if row["action"])
    assert {row["action"] for row in actions} == {"", "refund"}


def test_the_files_are_what_a_csv_reader_reads(night: SampleNight, tmp_path: Path) -> None:
    """Header and cells survive a round trip; every channel has its file."""
    paths = write_inbox(night, inbox=tmp_path)
    with paths[0].open(encoding="utf-8", newline="") as file:
        rows = [tuple(row) for row in csv.reader(file)]

    assert [path.name for path in paths] == list(order_file_names(night).values())
    assert rows[0] == ORDER_HEADER
    assert rows[1:] == order_rows(night)["web"]


def test_table_and_csv_hold_the_same_ledger(night: SampleNight, tmp_path: Path) -> None:
    """The ledger behind SQL is the ledger in the CSV file, row by row."""
    import sqlite3

    text = ledger_csv_text(night)
    table = write_ledger_table(text, path=tmp_path / "ledger.sqlite")
    connection = sqlite3.connect(table)
    stored = connection.execute("SELECT * FROM ledger_entries").fetchall()
    connection.close()

    rows = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""))]
    assert rows == [LEDGER_HEADER, *stored]
    assert stored == [cells_of(line) for line in ledger_lines(night)]


@pytest.mark.parametrize("name", ["effects", "few_effects"])
def test_any_size_makes_a_night(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A population too small for every discrepancy still makes a night with files and a key."""
    night = night_of(request.getfixturevalue(name))

    files = written(night, tmp_path / "d")

    assert len(json.loads(files["answer-key.json"])["breaks"]) >= 3


def test_payments_are_read_from_their_effects(effects: Effects) -> None:
    """Each state that has effects is found, and what was captured less refunded is the net."""
    payments = payments_of(effects, now=CLOSES_AT)
    part = next(p for p in payments if p.state is GatewayState.PARTIALLY_REFUNDED)

    assert {p.state for p in payments} == {
        GatewayState.AUTHORISED,
        GatewayState.PAID,
        GatewayState.PARTIALLY_REFUNDED,
        GatewayState.REFUNDED,
        GatewayState.CANCELLED,
        GatewayState.CHARGEBACK,
        GatewayState.EXPIRED,
    }
    assert part.net == part.captured - part.refunded > 0
    assert all(p.net == 0 for p in payments if p.state is GatewayState.CHARGEBACK)
