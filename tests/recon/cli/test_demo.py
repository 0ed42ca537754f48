import json
import re
import sqlite3
import threading
from contextlib import closing, contextmanager
from decimal import Decimal

import pytest

from recon import cli
from recon.cli.demo_work import (
    DemoFolder,
    DemoMemory,
    demo_gateway,
    empty,
    folder_at,
    health,
    prepared,
    remember,
)
from recon.config.settings import load_settings
from recon.model.nights import STEPS
from recon.sandbox import SandboxOptions, serving
from tests.recon.cli.conftest import DEMO_OF_60, effects

FEW = DemoMemory(orders=40, seed=7)


def variables_in(folder):
    """The variables of the demo's `env`, which commands below it find as `.env`."""
    lines = (folder / "env").read_text().splitlines()
    assert (folder / ".env").read_text().splitlines() == lines
    return dict(line.split("=", 1) for line in lines)


def prepare(folder, *words):
    """`recon demo --prepare-only` in this folder."""
    return cli.main(["demo", "--dir", str(folder), "--prepare-only", *words])


def files_in(folder):
    """Every file below a folder, by its path there."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_prepare_leaves_everything_a_night_needs(tmp_path, capsys):
    code = prepare(tmp_path / "d", "--orders", "40")

    variables = variables_in(tmp_path / "d")
    settings = load_settings(variables)
    assert code == 0
    assert f"Prepared: {tmp_path}/d" in capsys.readouterr().out
    assert list(variables) == [
        "RECON_GATEWAY_BASE_URL",
        "RECON_SIGN_KEY",
        "RECON_DATABASE_URL",
        "RECON_CONFIG_DIR",
        "RECON_MERCHANT",
        "RECON_ACCOUNT",
        "RECON_BUSINESS_DATE",
        "RECON_CLOCK_SHIFT",
    ]
    assert variables["RECON_GATEWAY_BASE_URL"].startswith("http://127.0.0.1:")
    assert sorted(settings.accounts) == ["100042/100042001", "100042/100042002"]
    assert settings.gateway.reply_signatures == "enforce"
    assert settings.account("100042", account_id="100042001").inbox == tmp_path / "d/inbox"
    names = {path.name for path in (tmp_path / "d").iterdir()}
    assert {"sandbox.sqlite", "recon.sqlite", "ledger.sqlite", "reports"} <= names


@pytest.mark.xdist_group(DEMO_OF_60)
def test_the_demo_is_a_whole_night_without_prefect_and_says_what_to_look_at(demo_of_60):
    """Every step of a night in its order, the planted breaks found, no Prefect imported.

    Settings of another installation in the shell (a signer, a database) are not used.
    """
    folder, out = demo_of_60.folder, demo_of_60.out.splitlines()
    (metrics,) = (folder / "reports/metrics").glob("*.json")
    (workbook,) = (folder / "reports").glob("reconciliation-*.xlsx")
    stages = [stage["stage"] for stage in json.loads(metrics.read_text())["stages"]]
    assert out[-1] == "0 False"
    assert stages == [*STEPS]
    first = out[out.index("Look first at") :]
    assert f"1. {workbook}: " in first[1]
    assert any(str(folder / "answer-key.json") in line for line in first)
    assert any(f"`cd {folder} && recon status`" in line for line in first)
    assert any(line.startswith("BREAKS OPEN in ") for line in out)


@pytest.mark.xdist_group(DEMO_OF_60)
def test_breaks_and_close_set_thousands_apart_for_people_alone(demo_of_60, monkeypatch, capsys):
    for name, value in variables_in(demo_of_60.folder).items():
        monkeypatch.setenv(name, value)

    assert cli.main(["breaks", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)["breaks"]
    assert cli.main(["breaks"]) == 0
    shown = capsys.readouterr().out
    assert cli.main(["close", "2026-11", "--out", str(demo_of_60.folder / "close")]) == 4
    stated = capsys.readouterr()

    amounts = [row["money at risk"] for row in plain]
    large = {each for each in amounts if len(each.partition(".")[0]) > 3}
    assert large
    assert all(re.fullmatch(r"[0-9]+(\.[0-9]+)?", each) for each in amounts)
    assert {f"{Decimal(each):,}" for each in large} <= {*shown.split()}
    assert not re.search(r"(?<![0-9.,])[0-9]{4,}(\.[0-9]+)? [A-Z]{3}\b", stated.out + stated.err)
    assert re.search(r"[0-9],[0-9]{3}\.[0-9]{2} EUR", stated.out)


def test_preparing_again_changes_no_file_but_the_databases(tmp_path):
    prepare(tmp_path, "--orders", "40")
    first = files_in(tmp_path)

    assert prepare(tmp_path) == 0

    again = files_in(tmp_path)
    assert {name for name in first if first[name] != again.get(name)} <= {
        "recon.sqlite",
        "sandbox.sqlite",
    }


def test_fresh_takes_away_only_what_the_demo_made(tmp_path):
    prepare(tmp_path, "--orders", "40")
    (tmp_path / "prefect").mkdir()
    names = ("notes.txt", "inbox/mine.csv", "config/mine.toml", "prefect/mine.db")
    mine = [tmp_path / name for name in names]
    for path in mine:
        path.write_text("mine")
    # A night's traces: a head of the history that stays would stop the next night's sending.
    archived = "nights/1/2/2026-11-20/20261120-1/proof/manifest.json"
    traces = ("history-head.jsonl", "nights-2026-11-20.xlsx", "metrics/20261120-1.json")
    for path in (
        *(tmp_path / "reports" / name for name in traces),
        tmp_path / "archive" / archived,
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of the night")

    empty(DemoFolder(tmp_path))

    assert sorted(files_in(tmp_path)) == sorted(str(path.relative_to(tmp_path)) for path in mine)


@pytest.mark.parametrize("words", [("--orders", "41"), ("--seed", "8")])
def test_another_size_on_the_same_folder_is_refused(words, tmp_path, capsys):
    prepare(tmp_path, "--orders", "40", "--seed", "7")

    assert prepare(tmp_path, *words) == 2
    assert "--fresh" in capsys.readouterr().err


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "recon.sqlite").write_text("production")

    assert prepare(tmp_path) == 2
    assert prepare(tmp_path, "--fresh") == 2
    assert (tmp_path / "recon.sqlite").read_text() == "production"


def test_a_prepare_that_was_killed_is_done_again(tmp_path):
    prepare(tmp_path, "--orders", "40")
    whole = (tmp_path / "answer-key.json").read_bytes()
    remember(DemoFolder(tmp_path), DemoMemory(40, 42, prepared=False))
    (tmp_path / "answer-key.json").unlink()

    prepare(tmp_path)

    assert (tmp_path / "answer-key.json").read_bytes() == whole


@pytest.mark.parametrize(
    ("database", "statement"),
    [
        ("sandbox.sqlite", "DROP TABLE effect; CREATE TABLE effect (number INTEGER)"),
        ("recon.sqlite", "UPDATE alembic_version SET version_num = '9999'"),
    ],
)
def test_what_another_version_left_is_begun_anew_by_fresh(tmp_path, database, statement, capsys):
    prepare(tmp_path, "--orders", "40")
    with closing(sqlite3.connect(tmp_path / database)) as connection:
        connection.executescript(statement)
    capsys.readouterr()

    assert prepare(tmp_path) in {1, 2}
    assert "start over with --fresh" in capsys.readouterr().err
    assert prepare(tmp_path, "--fresh") == 0


@contextmanager
def sandbox_beside(folder, *, port):
    """`recon sandbox --state D/sandbox.sqlite --port P`, as `.env` invites to."""
    options = SandboxOptions(port=port, seed=7, orders=40, state=folder / "sandbox.sqlite")
    with serving(options) as running:
        yield running.port


def test_a_sandbox_that_runs_beside_is_used(tmp_path):
    place = folder_at(tmp_path)
    with prepared(place, FEW) as ready:
        port = ready.port
    with sandbox_beside(tmp_path, port=port):
        before = threading.active_count()
        with demo_gateway(place, DemoMemory(40, 7, port=port)) as used:
            assert used == port
            assert threading.active_count() == before
        assert health(port)["status"] == "ok"
        assert prepare(tmp_path, "--fresh") == 2


def test_a_port_that_is_taken_is_left_to_its_owner(tmp_path):
    place = folder_at(tmp_path)
    with (
        serving(SandboxOptions(seed=1, orders=10)) as stranger,
        prepared(place, DemoMemory(40, 7, port=stranger.port)) as ready,
    ):
        assert ready.port != stranger.port
        assert len(effects(ready.port)) > 40
    assert variables_in(tmp_path)["RECON_GATEWAY_BASE_URL"].endswith(f":{ready.port}")
