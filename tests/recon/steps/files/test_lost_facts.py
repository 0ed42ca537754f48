"""Lost facts are read again from their file; what cannot be read again is named."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from recon.model.errors import ArchiveBrokenError
from recon.steps.care.doctor import Check, checks
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, Merchant
from tests.recon.steps.night.test_sealed_settle import archive_of

pytestmark = pytest.mark.xdist_group("two deliveries")
"""They begin with the same nights, which are played once."""


def facts_of(merchant: Merchant) -> dict[Path, bytes]:
    """Every file of facts."""
    root = Path(archive_of(merchant).shown) / "facts"
    return {path: path.read_bytes() for path in sorted(root.rglob("*.parquet"))}


def two_deliveries(merchant: Merchant) -> None:
    """A file, and a later version under its name that changes a row, repeats one and adds one."""
    one, two, three, *_ = merchant.payments("captured")
    file = merchant.drop("a.csv", merchant.order(one), merchant.order(two))
    merchant.move_money()
    shutil.move(file, merchant.inbox.parent / "first.csv")
    rows = (merchant.order(one, status="refunded"), merchant.order(two), merchant.order(three))
    merchant.drop("a.csv", *rows)
    merchant.move_money()


def next_night(merchant: Merchant) -> str:
    """A night that has a new row of a known order; what its steps said."""
    two, *_, last = merchant.payments("captured")[1:5]
    merchant.drop("b.csv", merchant.order(two, status="refunded"), merchant.order(last))
    merchant.move_money()
    return " ".join(told.sentence for told in merchant.told)


def facts_told(merchant: Merchant) -> Check:
    """The doctor's line."""
    every = checks(merchant.variables, clock=merchant.clock, randomness=Random(1))
    return next(each for each in every if each.name == f"facts {MERCHANT}/{ACCOUNT}")


def cut(path: Path) -> None:
    """Without its end."""
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path: Path) -> None:
    """As a full disk leaves it."""
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("spoilt", "name"), [(Path.unlink, "a.csv"), (cut, "found again.csv"), (emptied, "a.csv")]
)
def test_lost_facts_are_read_again_from_the_inbox(
    begun: Callable[..., Merchant], spoilt: Callable[[Path], None], name: str
) -> None:
    """All of them, byte for byte, under whatever name their files lie there."""
    merchant = begun(two_deliveries)
    wanted = facts_of(merchant)
    shutil.move(merchant.inbox.parent / "first.csv", merchant.inbox / "first.csv")
    shutil.move(merchant.inbox / "a.csv", merchant.inbox / name)
    assert len(wanted) == 2
    for path in wanted:
        spoilt(path)
    assert not facts_told(merchant).ok

    told = next_night(merchant)

    known = facts_of(merchant)
    assert {path: known[path] for path in wanted} == wanted
    assert "was read again from" in told
    assert facts_told(merchant).ok


def test_lost_facts_are_read_again_from_the_files_that_were_kept(merchant: Merchant) -> None:
    """Where merchants.toml names a folder for them, the inbox may be empty."""
    with (merchant.folder / "config" / "merchants.toml").open("a") as file:
        file.write(f'archive = "{merchant.folder / "kept"}"\n')
    two_deliveries(merchant)
    wanted = facts_of(merchant)
    (merchant.inbox / "a.csv").unlink()
    for path in wanted:
        path.unlink()

    next_night(merchant)

    assert facts_of(merchant).items() >= wanted.items()


def test_what_cannot_be_read_again_is_named_with_what_to_do(
    begun: Callable[..., Merchant],
) -> None:
    """By the night that needs it and by the doctor; with the file back the night goes on."""
    merchant = begun(two_deliveries)
    lost = facts_of(merchant)
    for path in lost:
        path.unlink()

    wanted = r"put a.csv with the SHA-256 [0-9a-f]{64} into its inbox again, or facts/orders/.*back"
    with pytest.raises(ArchiveBrokenError, match=wanted):
        next_night(merchant)
    assert "put a.csv with the SHA-256" in facts_told(merchant).sentence
    assert merchant.effects() == []

    shutil.move(merchant.inbox.parent / "first.csv", merchant.inbox / "once more.csv")
    next_night(merchant)
    assert facts_of(merchant).items() >= lost.items()


def test_rows_that_are_read_otherwise_today_take_no_place(merchant: Merchant) -> None:
    """A changed layout gives other rows: the history binds those of the day."""
    one, *_ = merchant.payments("captured")
    merchant.drop("a.csv", merchant.order(one, ordered_at="2026-11-20T10:00:00"))
    merchant.move_money()
    (rows,) = facts_of(merchant)
    rows.unlink()
    with (merchant.folder / "config" / "merchants.toml").open("a") as file:
        file.write('layouts = [{ files = "a*", zone = "Asia/Tokyo" }]\n')

    with pytest.raises(ArchiveBrokenError, match=r"a.csv is read otherwise today .* put facts/ord"):
        merchant.move_money()
    assert rows not in facts_of(merchant)
