import threading
import time
from datetime import date
from typing import Any

import pytest

from recon.model.nights import Mode, NightRequest
from recon.steps.files.ingest import ingest
from recon.steps.ground.night_folder import storages_of
from recon.store.nights import order_rows, runs
from recon.store.nights.facts_rows import EVER
from recon.store.nights.stored_orders import StoredOrders

ACCOUNTS = ("100042001", "100042002")
LOOKED_FOR_SECONDS = 0.2
"""Long enough for the other account to look, too, if nothing holds it back."""


@pytest.mark.postgresql
def test_of_an_inbox_that_two_accounts_read_at_once_each_order_stands_once(
    merchant: Any, migrated_postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders of both accounts in one file, which each of them reads."""
    _declare_both(merchant)
    paid = merchant.payments("captured")[:20]
    rows = [merchant.order(one, account_id=ACCOUNTS[n % 2]) for n, one in enumerate(paid)]
    merchant.drop("orders.csv", *rows)
    real = order_rows.known_file

    def slowly(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        time.sleep(LOOKED_FOR_SECONDS)
        return found

    monkeypatch.setattr(order_rows, "known_file", slowly)
    threads = [
        threading.Thread(target=_ingest, args=(merchant, migrated_postgresql_url, account))
        for account in ACCOUNTS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with (
        merchant.environment(RECON_DATABASE_URL=migrated_postgresql_url) as environment,
        environment.store.reading() as connection,
    ):
        storages = storages_of(environment)
        orders = [
            number
            for account in ACCOUNTS
            for of_account in [runs.get(connection, f"run-{account}")]
            for column in StoredOrders(connection, of_account, storages).numbers(spans=EVER)
            for number in column.to_pylist()
        ]
    assert sorted(orders) == sorted(one.order_no for one in paid)


def _ingest(merchant: Any, url: str, account: str) -> None:
    with merchant.environment(RECON_DATABASE_URL=url, seed=int(account)) as environment:
        request = NightRequest("100042", account, date(2026, 11, 20), Mode.LIVE)
        now = merchant.clock()
        with environment.store.writing() as connection:
            runs.start(connection, request, run_id=f"run-{account}", as_of=now, now=now)
        ingest(f"run-{account}", environment=environment)


def _declare_both(merchant: Any) -> None:
    declared = merchant.folder / "config" / "merchants.toml"
    told = declared.read_text()
    declared.write_text(told + "\n" + told.replace(ACCOUNTS[0], ACCOUNTS[1]))
