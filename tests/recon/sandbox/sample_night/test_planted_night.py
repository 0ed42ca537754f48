import json
from datetime import date
from pathlib import Path

import pytest

from recon.model.words import BreakCode
from recon.sandbox.sample_night import Account, SampleNight, sample_night
from recon.sandbox.sample_night.records import ORDER_HEADER
from recon.sandbox.sample_night.sample_files import (
    NOT_SHOWN,
    answer_key_table,
    ledger_csv_text,
    order_rows,
    write_inbox,
)

Effects = tuple[dict[str, str], ...]
ACCOUNT = Account("100042", "100042001", "100042002")
BUSINESS_DATE = date(2026, 11, 20)


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


def test_every_code_is_planted_or_has_a_reason(night: SampleNight) -> None:
    """No break code is left out of the sample without a word about why."""
    planted = {s.expected.code for s in night.stories if s.expected and s.expected.code}

    assert planted | set(NOT_SHOWN) == set(BreakCode)
    assert planted & set(NOT_SHOWN) == set()


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


@pytest.mark.parametrize("name", ["effects", "few_effects"])
def test_any_size_makes_a_night(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A population too small for every discrepancy still makes a night with files and a key."""
    night = night_of(request.getfixturevalue(name))

    files = written(night, tmp_path / "d")

    assert len(json.loads(files["answer-key.json"])["breaks"]) >= 3
