import csv
import http.client
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pandas as pd
import pytest

from recon import cli
from recon.cli.demo_folder import DemoFolder, folder_at, recall
from recon.cli.demo_gateway import demo_gateway, effects
from recon.sandbox import CLOCK_START
from recon.sandbox.pages.bank_book import STRANGERS
from recon.steps.ground import environment
from recon.store.database.engine import open_store
from recon.store.database.night_lock import account_lock

ORDERS = 80
THE_DAY_AFTER = datetime(2026, 11, 21, 6, tzinfo=UTC)


@pytest.fixture(scope="module")
def prepared_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A demo that stopped before its night, and a copy of its folder."""
    place = tmp_path_factory.mktemp("prepared")
    root, kept = place / "d", place / "kept"
    with pytest.MonkeyPatch.context() as variables:
        prepared_in(root, variables=variables)
    shutil.copytree(root, kept)
    return root, kept


@pytest.fixture
def prepared(prepared_once: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> DemoFolder:
    """It, as it was when it stopped, its variables in the environment."""
    root, kept = prepared_once
    shutil.rmtree(root)
    shutil.copytree(kept, root)
    set_from(root, variables=monkeypatch)
    return folder_at(root)


def prepared_in(folder: Path, *, variables: pytest.MonkeyPatch) -> DemoFolder:
    """The same in this folder."""
    cli.main(["demo", "--dir", str(folder), "--orders", str(ORDERS), "--prepare-only"])
    set_from(folder, variables=variables)
    return folder_at(folder)


def set_from(folder: Path, *, variables: pytest.MonkeyPatch) -> None:
    """The variables of the demo's `env`."""
    for line in (folder / "env").read_text().splitlines():
        name, value = line.split("=", 1)
        variables.setenv(name, value)


@pytest.fixture
def gateway(prepared: DemoFolder) -> Iterator[int]:
    """`recon sandbox` beside the folder; gives its port."""
    memory = recall(prepared)
    assert memory is not None
    with demo_gateway(prepared, memory) as port:
        yield port


class Played(NamedTuple):
    """A night from the command line, whose address for notices is not set."""

    folder: DemoFolder
    port: int
    """Of the gateway, which still listens."""
    code: int
    out: str
    err: str
    sent: list[str]
    """Operations that it sent."""


@pytest.fixture(scope="module")
def played_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """`recon nightly` in a prepared folder, for whoever looks at what it did."""
    with pytest.MonkeyPatch.context() as variables:
        folder = prepared_in(tmp_path_factory.mktemp("played") / "d", variables=variables)
        notices = folder.config / "notices.toml"
        notices.write_text('[notices.finance]\naddress_env = "FINANCE"\n')
        memory = recall(folder)
        assert memory is not None
        with demo_gateway(folder, memory) as port:
            out, err = StringIO(), StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                code = cli.main(["nightly"])
            variables.undo()
            night = Played(folder, port, code, out.getvalue(), err.getvalue(), done_by_us(port))
            yield night


@pytest.fixture
def played(played_once: Played, monkeypatch: pytest.MonkeyPatch) -> Played:
    """It, its variables in the environment."""
    set_from(played_once.folder.root, variables=monkeypatch)
    return played_once


def done_by_us(port: int) -> list[str]:
    """Operations that came through the API, in order."""
    return [effect["operation"] for effect in effects(port) if effect["origin"] == "api"]


def posted(port: int, path: str, document: object) -> None:
    """Tell the sandbox's control pages something."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", path, json.dumps(document))
    connection.getresponse().read()
    connection.close()


def invariants(port: int) -> dict[str, int]:
    """What the sandbox counts against us."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/_sandbox/invariants")
    answer: dict[str, int] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


@pytest.mark.xdist_group("a night from the command line")
def test_a_night_from_the_command_line(played: Played) -> None:
    """Options come from the environment; the verdict is the exit code.

    What is planted at the banks is found, too.
    """
    out, err, first = played.out, played.err, played.sent
    key = json.loads(played.folder.answer_key.read_text())
    instructions = key["instructions"]
    banks_are_compared(played.folder, said=out + err)

    assert played.code == 3
    assert out.splitlines()[-1] == "BREAKS OPEN: 100042/100042001, 2026-11-20"
    assert Path(out.splitlines()[-2].removeprefix("Workbook: ")).is_file()
    assert "new order files" in err.splitlines()[0]
    assert first.count("capture") == instructions["capture"]
    assert len(first) == sum(instructions.values()) - 2 * instructions["of_these_waiting"]
    assert set(invariants(played.port).values()) == {0}


def banks_are_compared(prepared: DemoFolder, *, said: str) -> None:
    """Each break of the key once, cash in transit on the run's own page; no word of strangers."""
    key = json.loads(prepared.answer_key.read_text())["bank"]
    (path,) = prepared.root.glob("archive/nights/*/*/*/*/results/breaks.parquet")
    breaks = pd.read_parquet(path)
    found = Counter(breaks[breaks["effect_bank"].notna()]["code"].tolist())
    assert found == Counter(one["code"] for one in key["breaks"])

    kept = [one for one in prepared.root.rglob("*") if one.is_file()]
    shown = said.encode() + b"".join(map(plain, kept))
    sent = b"".join(path.read_bytes() for path in prepared.root.glob("bank/*/*"))
    assert any(party.encode() in sent for party, _ in STRANGERS)
    assert b"Cash in transit" in shown
    for party, text in STRANGERS:
        assert party.encode() not in shown
        assert text.encode() not in shown


def plain(path: Path) -> bytes:
    """What a file says, out of its packing; statements say it, and the bank that writes them."""
    if path.name.startswith("sandbox.sqlite"):
        return b""
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_csv().encode()
    if path.suffix == ".xlsx":
        with ZipFile(path) as book:
            return b"".join(map(book.read, book.namelist()))
    return b"" if path.parent.parent.name == "bank" else path.read_bytes()


def the_day_after(*words: str) -> int:
    """A command by another clock: by the machine's, nights are missed as business days go by."""
    with pytest.MonkeyPatch.context() as calendar:
        calendar.setattr(environment, "system_clock", lambda: THE_DAY_AFTER)
        return cli.main([*words])


@pytest.mark.xdist_group("a night from the command line")
def test_what_stands_after_a_night(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    """`status` lists what waits, `verify` agrees, `workbook` writes the workbook again.

    The same night again ends alike, and nothing is sent.
    """
    prepared = played.folder
    assert "notice finance did not arrive" in played.err

    assert the_day_after("status") == 3
    shown = capsys.readouterr().out
    assert shown.startswith("100042/100042001: night of 2026-11-20, run ")
    assert "\n  BREAKS OPEN\n" in shown
    assert "cancel waiting for approval" in shown
    run = shown.splitlines()[0].rsplit(" ", 1)[1]
    assert (
        "Not told: finance (the environment variable FINANCE with its address is not set)" in shown
    )
    assert cli.main(["tell", run]) == 1
    assert "FINANCE" in capsys.readouterr().err
    assert cli.main(["verify"]) == 0
    assert "All agree: 1 finished run(s)" in capsys.readouterr().out
    assert cli.main(["opening", run, "--out", str(prepared.reports)]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"2026-11-20, run {run}, opening\n")
    assert (prepared.reports / "opening.csv").read_text().startswith("what,id,order_no,currency,")
    refuse_wrong_lists(run, capsys=capsys)
    assert cli.main(["workbook", "--run", "2026-11-20"]) == 0
    path = Path(capsys.readouterr().out.strip().removeprefix("Workbook: "))
    assert cli.main(["verify", str(path)]) == 0
    written = path.read_bytes()
    path.write_bytes(b"edited")
    assert cli.main(["verify"]) == 1
    assert "is not the workbook that was written" in capsys.readouterr().err
    assert prepared.reports in path.parents
    path.write_bytes(written)
    nothing_is_sent_again(played)


def nothing_is_sent_again(played: Played) -> None:
    """The same night once more ends alike; the gateway has what it had, and nothing against us."""
    assert cli.main(["nightly"]) == 3
    assert done_by_us(played.port) == played.sent
    assert set(invariants(played.port).values()) == {0}


def test_a_dry_run_sends_nothing(gateway: int, capsys: pytest.CaptureFixture[str]) -> None:
    """`--dry-run` tells what would be sent, the gateway knows of nothing; no part is a night."""
    capsys.readouterr()
    parts = [["ingest"], ["settle", "--dry-run"], ["payouts", "--dry-run"], ["query"]]
    codes = [cli.main(words) for words in parts]
    of_parts, _ = capsys.readouterr()
    assert codes == [0] * 4
    assert of_parts.count("The night is not run by it.") == 4
    assert "0 orders are shown otherwise" in of_parts
    assert cli.main(["finish"]) == 2
    assert "never ran live" in capsys.readouterr().err
    assert [cli.main(["housekeeping", *words]) for words in ([], ["--delete"])] == [0, 2]
    kept, refused = capsys.readouterr()
    assert "0 older" in kept
    assert "say who deletes" in refused

    code = cli.main(["nightly", "--dry-run"])

    out, err = capsys.readouterr()
    assert code in {3, 4}
    assert "dry run, nothing was sent" in out
    assert "would send" in err
    assert done_by_us(gateway) == []


def refuse_wrong_lists(run: str, *, capsys: pytest.CaptureFixture[str]) -> None:
    """The night by its date or its run, in lists for people and in JSON, is always that run."""
    assert cli.main(["breaks", "2026-11-20"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert cli.main(["breaks", "--run", run, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert listed[0] == f"2026-11-20, run {run}: {len(document['breaks'])} breaks are open."
    assert len(listed) == 2 + len(document["breaks"])
    assert cli.main(["runs", "--json"]) == 0
    assert [row["run"] for row in json.loads(capsys.readouterr().out)] == [run]
    assert the_day_after("status", "--json") == 3
    account = json.loads(capsys.readouterr().out)["accounts"][0]
    assert (account["run"], account["standing"]) == (run, "BREAKS OPEN")
    assert "cancel waiting for approval" in {entry["what"] for entry in account["needs_a_person"]}
    assert cli.main(["nights", "--to", "2026-11-20", "--json"]) == 4
    assert run in {night["run"] for night in json.loads(capsys.readouterr().out)["nights"]}


def test_a_held_night_ends_with_75(
    prepared: DemoFolder, gateway: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """While another run holds the account, the second does nothing and says so."""
    store = open_store(prepared.database_url)
    with account_lock(store, merchant_id="100042", account_id="100042001"):
        code = cli.main(["nightly"])
    store.close()

    assert code == 75
    assert "nothing was done here" in capsys.readouterr().err
    assert done_by_us(gateway) == []


def test_a_gateway_that_is_down_ends_with_4(
    prepared: DemoFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """No usable answer: everything is unverified, nothing is sent, the night is INCOMPLETE."""
    (prepared.config / "gateway.toml").write_text(
        "read_patience_seconds = 0\nconnect_timeout_seconds = 1\n"
    )

    code = cli.main(["nightly"])

    assert code == 4
    assert "INCOMPLETE" in capsys.readouterr().out


def test_an_inbox_that_is_gone_is_one_sentence(
    prepared: DemoFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing inbox names the folder and the file that says where it is."""
    for path in prepared.inbox.iterdir():
        path.unlink()
    prepared.inbox.rmdir()

    code = cli.main(["nightly"])

    told = capsys.readouterr().err
    assert code == 2
    assert f"{prepared.inbox} does not exist" in told
    assert "merchants.toml" in told


def test_plain_files_give_the_same_kinds_of_verdict(
    prepared: DemoFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`recon reconcile` writes its result files and ends by the verdict: here one order too few."""
    orders = tmp_path / "orders.csv"
    gateway_file = tmp_path / "gateway.csv"
    columns = "merchant_id,account_id,order_no,currency,amount"
    orders.write_text(
        f"{columns},status,ordered_at\n1,2,A1,EUR,10.00,paid,2026-11-01T10:00:00+00:00\n"
    )
    gateway_file.write_text(
        "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,"
        "query_result,reference_no,transaction_date\n"
        "1,2,A1,T1,EUR,12.00,3000,1,R1,20261101100000\n"
    )
    words = ["reconcile", "--orders", str(orders), "--gateway", str(gateway_file)]
    out = tmp_path / "out"
    capsys.readouterr()

    code = cli.main([*words, "--as-of", "2026-11-20", "--out", str(out)])

    assert code == 4  # without a ledger never better than INCOMPLETE
    assert "INCOMPLETE: 0 matched, 1 breaks" in capsys.readouterr().out
    with (out / "breaks.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["code"], row["effect_orders"]) == ("AMOUNT_OVER", "2.00")
    assert (out / "reconciliation.xlsx").is_file()
    assert prepared.root.is_dir()


def test_absent_files_and_wrong_dates_end_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not there, and a date that is none, are wrong usage."""
    words = ["reconcile", "--orders", "no.csv", "--gateway", "no.csv", "--out", str(tmp_path / "o")]

    assert cli.main([*words, "--as-of", "2026-11-20"]) == 2
    assert "no.csv" in capsys.readouterr().err
    assert cli.main([*words, "--as-of", "yesterday"]) == 2
    assert "yesterday" in capsys.readouterr().err


def test_the_demo_stands_on_the_business_date_of_the_sandbox(prepared: DemoFolder) -> None:
    """The sample night is the day at which the sandbox's clock stands."""
    key = json.loads(prepared.answer_key.read_text())

    assert key["business_date"] == CLOCK_START.date().isoformat()


def test_a_night_that_left_money_in_doubt_ends_with_5_and_says_so_last(
    prepared: DemoFolder, gateway: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One wrong signature: code 5, the last lines have counts, sums and cause; status likewise.

    What is to be done with several things in a row is said once, after the last of them.
    """
    fault = {"rules": [{"operation": "capture", "kind": "wrong_signature", "nth": 1}]}
    posted(gateway, "/_sandbox/faults", fault)
    capsys.readouterr()

    code = cli.main(["nightly"])
    last = capsys.readouterr().out.splitlines()[-2:]
    asked = cli.main(["status"])
    shown = capsys.readouterr().out

    assert (code, asked) == (5, 5)
    assert last[0] == (
        "MONEY IN DOUBT: 100042/100042001, 2026-11-20, and the workbook says INCOMPLETE"
    )
    assert re.match(r"In doubt: \d+ captures \([0-9.]+ [A-Z]{3}", last[1])
    assert "Sending stopped: the reply's signature is wrong. Not sent: " in last[1]
    assert "\n  MONEY IN DOUBT (INCOMPLETE): In doubt: " in shown
    assert "The reply's signature is wrong. Do not send it again." in shown
    assert " OK. " not in shown
    steps = re.findall(r"^  Each of these \d+: (.+)$", shown, re.MULTILINE)
    assert steps
    assert [step for step in steps if shown.count(step) > 1] == []
    assert prepared.reports.is_dir()
