"""The orders of a night are read from the database once, then from what it sealed."""

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from recon.steps.compare.rebuild import run_named
from recon.steps.compare.sealed_orders import sealed_orders
from recon.steps.ground.night_folder import storages_of
from recon.store.nights import stored_orders
from tests.recon.steps.care.test_verify_folder import run_folder
from tests.recon.steps.compare.test_sealed_inputs import manifest_of_step
from tests.recon.steps.conftest import Merchant

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture
def night(merchant: Merchant) -> Merchant:
    """A night of three orders."""
    rows = [merchant.order(each) for each in merchant.payments("captured")[:3]]
    merchant.drop("orders.csv", *rows)
    merchant.night()
    return merchant


def kept(merchant: Merchant, **changed: Any) -> Any:
    """What a comparison would take, and what the database says."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = run_named(connection, "2026-11-20")
        orders = stored_orders.current_orders(
            connection, run, since=LONG_AGO, storages=storages_of(environment)
        )
        terms = {
            "until": manifest_of_step(merchant, "inputs").about.last_file,
            "asked": orders["order_no"].sort_values(),
        }
        given = sealed_orders(connection, run, **(terms | changed), environment=environment)
    return given, orders


def test_the_sealed_orders_are_those_of_the_database(night: Merchant) -> None:
    """Cell by cell, in the order of their keys."""
    orders, stored = kept(night)

    assert len(stored) == 3
    by_key = stored.sort_values("order_no").reset_index(drop=True)
    assert orders.astype(by_key.dtypes).equals(by_key)


@pytest.mark.parametrize(
    "changed",
    [{"until": 99}, {"until": 0}, {"asked": pd.Series(["A-1"])}],
    ids=["newer", "none", "asked"],
)
def test_orders_of_another_moment_are_not_taken(changed: Any, night: Merchant) -> None:
    """A file that came since, or other keys: the database is asked."""
    assert kept(night, **changed)[0] is None


def test_orders_that_are_not_as_they_were_sealed_are_nobodys(night: Merchant) -> None:
    """A cut file is not compared; the proof over the folder says what happened to it."""
    file = run_folder(night) / "inputs" / "orders.parquet"
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1])

    assert kept(night)[0] is None
