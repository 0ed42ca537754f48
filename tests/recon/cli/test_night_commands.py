import json
import shutil

import pytest

from recon import cli
from recon.cli.demo_work import demo_gateway, folder_at, recall
from recon.sandbox import CLOCK_START
from recon.store.database.engine import open_store
from recon.store.database.night_lock import account_lock
from tests.recon.cli.conftest import effects

ORDERS = 80


@pytest.fixture(scope="module")
def prepared_once(tmp_path_factory):
    """A demo that stopped before its night, and a copy of its folder."""
    place = tmp_path_factory.mktemp("prepared")
    root, kept = place / "d", place / "kept"
    with pytest.MonkeyPatch.context() as variables:
        prepared_in(root, variables=variables)
    shutil.copytree(root, kept)
    return root, kept


@pytest.fixture
def prepared(prepared_once, monkeypatch):
    """It, as it was when it stopped, its variables in the environment."""
    root, kept = prepared_once
    shutil.rmtree(root)
    shutil.copytree(kept, root)
    set_from(root, variables=monkeypatch)
    return folder_at(root)


def prepared_in(folder, *, variables):
    cli.main(["demo", "--dir", str(folder), "--orders", str(ORDERS), "--prepare-only"])
    set_from(folder, variables=variables)
    return folder_at(folder)


def set_from(folder, *, variables):
    for line in (folder / ".env").read_text().splitlines():
        name, value = line.split("=", 1)
        variables.setenv(name, value)


@pytest.fixture
def gateway(prepared):
    """`recon sandbox` beside the folder; gives its port."""
    memory = recall(prepared)
    assert memory is not None
    with demo_gateway(prepared, memory) as port:
        yield port


def done_by_us(port):
    """Operations that came through the API, in order."""
    return [effect["operation"] for effect in effects(port) if effect["origin"] == "api"]


def test_a_held_night_ends_with_75(prepared, gateway, capsys):
    store = open_store(prepared.database_url)
    with account_lock(store, ("100042", "100042001")):
        code = cli.main(["nightly"])
    store.close()

    assert code == 75
    assert "nothing was done here" in capsys.readouterr().err
    assert done_by_us(gateway) == []


def test_an_inbox_that_is_gone_is_one_sentence(prepared, capsys):
    for path in prepared.inbox.iterdir():
        path.unlink()
    prepared.inbox.rmdir()

    code = cli.main(["nightly"])

    told = capsys.readouterr().err
    assert code == 2
    assert f"{prepared.inbox} does not exist" in told
    assert "merchants.toml" in told


def test_absent_files_and_wrong_dates_end_with_2(tmp_path, capsys):
    words = ["reconcile", "--orders", "no.csv", "--gateway", "no.csv", "--out", str(tmp_path / "o")]

    assert cli.main([*words, "--as-of", "2026-11-20"]) == 2
    assert "no.csv" in capsys.readouterr().err
    assert cli.main([*words, "--as-of", "yesterday"]) == 2
    assert "yesterday" in capsys.readouterr().err


def test_the_demo_stands_on_the_business_date_of_the_sandbox(prepared):
    key = json.loads(prepared.answer_key.read_text())

    assert key["business_date"] == CLOCK_START.date().isoformat()
