import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recon import cli
from recon.model.errors import GateClosedError, NightHeldError, StoreLockedError
from tests.recon.cli.typed_commands import commands

# Rows are selected by the SQL of a night, whose modules import SQLAlchemy; no database is opened.
NOT_OF_PLAIN_FILES = {"alembic", "prefect", "dask", "distributed", "aiohttp"}
ORDERS = (
    "merchant_id,account_id,order_no,currency,amount,status,ordered_at\n"
    "1,1,A-1,EUR,1.00,paid,2026-01-01T00:00:00Z\n"
)
GATEWAY = (
    "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,query_result,"
    "reference_no,transaction_date\n1,1,A-1,T-1,EUR,1.00,3000,1,,2026-01-01T00:00:00Z\n"
)
HEAVY = {"pandas", "numpy", "prefect", "sqlalchemy", "pydantic", "httpx", "openpyxl", "starlette"}
COMMANDS = ("demo", "sandbox", "nightly", "reconcile", "status", "workbook", "verify", "doctor")
NIGHT = ("nightly", "--merchant", "1", "--account", "2", "--business-date", "2026-11-20")


ROOT = Path(__file__).parents[3]
SENTENCES = {"docs": "*.md", "src": "*.py", "flows": "*.py", "reports": "*.py", "config": "*.*"}
TYPED = re.compile(r"(?:`|^|[/ ]bin/|sudo -u \S+ )recon ([a-z][^`|\n]*)", re.MULTILINE)
BETWEEN_LITERALS = re.compile(r'"\n\s+f?"')


def recon(*words, **variables):
    """`recon` as a process of its own, with only these RECON_ variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECON_")}
    code = "import sys; from recon.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**inherited, **variables, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def raise_in_a_command(monkeypatch, error):
    """Let every command that opens an environment meet this error there."""

    def environment_of(*_, **__):
        raise error

    monkeypatch.setattr("recon.steps.runtime.environment.environment_of", environment_of)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from recon.cli import main; code = main(['--help']); "
        f"print(code, sorted(set(sys.modules) & {HEAVY!r}))"
    )

    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert said.splitlines()[-1] == "0 []"
    assert all(f" {name} " in said for name in (*COMMANDS, "db"))


def test_plain_files_load_no_migration_client_or_server(tmp_path):
    (tmp_path / "orders.csv").write_text(
        "merchant_id,account_id,order_no,currency,amount,status,ordered_at\n"
        "M1,1,A319,EUR,5451.18,paid,2026-10-01T12:00:00Z\n"
    )
    (tmp_path / "gateway.csv").write_text(
        "merchant_id,account_id,order_no,transaction_id,currency,amount,payment_status,"
        "query_result,reference_no,transaction_date\n"
        "M1,1,A319,TA319,EUR,5451.18,3000,1,,2026-10-01T12:00:00Z\n"
    )
    words = ["reconcile", "--as-of", "2026-11-20", "--out", str(tmp_path / "out")]
    words += ["--orders", str(tmp_path / "orders.csv")]
    words += ["--gateway", str(tmp_path / "gateway.csv")]
    code = (
        f"import sys; from recon.cli import main; code = main({words!r}); "
        f"print(sorted(set(sys.modules) & {NOT_OF_PLAIN_FILES!r}))"
    )

    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert said.splitlines()[-1] == "[]"
    assert (tmp_path / "out" / "reconciliation.xlsx").exists()
    assert not [*tmp_path.rglob("*.sqlite*")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "Usage"),
        (("nightly",), "Missing option '--merchant'"),
        (("nigthly",), "No such command"),
        (("reconcile", "--as-of", "2026-11-20"), "Missing option '--orders'"),
        (("sandbox", "--port", "70000"), "65535"),
        (("demo", "--orders", "0"), "--orders"),
        (("db",), "Usage"),
        ((*NIGHT[:-1], "20.11.2026"), "'20.11.2026' is not a date such as 2026-11-20"),
        ((*NIGHT, "--only", "query", "--live"), "of what sends"),
        ((*NIGHT, "--only", "settle", "--opening"), "of a whole night"),
        (("journals", "2026-11-20"), "--out"),
    ],
)
def test_wrong_usage_ends_with_2(words, told, capsys):
    code = cli.main(words)

    out, err = capsys.readouterr()
    assert code == 2
    assert told in out + err
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [NIGHT, ("status",), ("verify",), ("workbook", "x")])
def test_missing_configuration_is_one_sentence(words, capsys):
    assert cli.main(words) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert "RECON_DATABASE_URL is not set" in told


def test_the_process_ends_with_the_code_and_a_sentence():
    ended = recon(*NIGHT)

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "RECON_DATABASE_URL is not set" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_doctor_lists_what_is_missing(capsys):
    code = cli.main(["doctor"])

    told = capsys.readouterr().out
    assert code == 2
    for name in ("DATABASE_URL", "GATEWAY_BASE_URL", "SIGN_KEY", "CONFIG_DIR"):
        assert f"MISSING RECON_{name}" in told


def test_the_database_is_made_and_made_again(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/recon.sqlite"

    assert cli.main(["db", "upgrade", "--url", url]) == 0
    assert cli.main(["db", "upgrade", "--url", url]) == 0
    first, again = capsys.readouterr().out.splitlines()
    assert first == again
    assert cli.main(["db", "upgrade", "--url", f"sqlite:///{tmp_path}/none/recon.sqlite"]) == 2
    assert f"{tmp_path}/none" in capsys.readouterr().err
    assert cli.main(["db", "upgrade", "--grants", "--app", "nights"]) == 0
    assert "GRANT USAGE ON SCHEMA public TO nights," in capsys.readouterr().out
    assert cli.main(["db", "upgrade", "--url", url, "--app", "nights"]) == 2
    assert "or roles for --grants" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NightHeldError("account 1/2 is held by run 3"), 75),
        (GateClosedError("T1 does not tie"), 4),
        (StoreLockedError("the database is locked"), 1),
    ],
)
def test_errors_of_ours_are_one_sentence_with_their_code(error, code, monkeypatch, capsys):
    raise_in_a_command(monkeypatch, error)

    ended = cli.main(["status"])

    assert ended == code
    told = capsys.readouterr().err
    assert told.splitlines() == [str(error)]


def test_an_unexpected_error_leaves_its_text_in_a_file(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    raise_in_a_command(monkeypatch, ZeroDivisionError("card 4111111111111111"))

    code = cli.main(["status"])

    told = capsys.readouterr().err
    (path,) = tmp_path.glob("recon-error-*.txt")
    assert code == 1
    assert "unexpected ZeroDivisionError" in told
    assert "4111111111111111" not in told
    assert str(path) in told
    assert "Traceback" in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_debug_shows_the_full_text(monkeypatch, capsys):
    raise_in_a_command(monkeypatch, ZeroDivisionError("here"))

    assert cli.main(["status", "--debug"]) == 1
    assert "ZeroDivisionError: here" in capsys.readouterr().err


def test_an_interrupt_says_what_was_kept(monkeypatch, capsys):
    raise_in_a_command(monkeypatch, KeyboardInterrupt())

    assert cli.main(["status"]) == 130
    told = capsys.readouterr().err
    assert "is kept" in told
    assert "nothing is sent twice" in told


SPY = """
import os, pathlib
pathlib.Path({folder!r}, f"seen-{{os.getpid()}}").touch()
class Plugin:
    def new_schema_validator(self, *_, **__):
        return None, None, None
PLUGIN = Plugin()
"""


def test_no_package_beside_sees_what_is_checked(tmp_path):
    spy, out = tmp_path / "spy-1.0.dist-info", tmp_path / "out"
    spy.mkdir()
    (spy / "METADATA").write_text("Metadata-Version: 2.1\nName: spy\nVersion: 1.0\n")
    (spy / "entry_points.txt").write_text("[pydantic]\nspy = spy:PLUGIN\n")
    (tmp_path / "spy.py").write_text(SPY.format(folder=str(tmp_path)))
    files = {"--orders": ORDERS, "--gateway": GATEWAY}
    for name, content in files.items():
        (tmp_path / f"{name}.csv").write_text(content)
    # What a test ran in this process may have said so in its environment before.
    given = [word for name in files for word in (name, str(tmp_path / f"{name}.csv"))]
    recon(
        *("reconcile", *given, "--as-of", "2026-01-02", "--out", str(out)),
        PYTHONPATH=str(tmp_path),
        PYDANTIC_DISABLE_PLUGINS="",
    )

    assert (out / "summary.json").exists()
    assert not [*tmp_path.glob("seen-*")]


@pytest.mark.parametrize("folder", SENTENCES)
def test_what_sentences_and_documents_tell_people_to_type_is_there(folder):
    options = {
        words: {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        for words, command in commands()
    }
    missing = []
    for path in sorted((ROOT / folder).rglob(SENTENCES[folder])):
        for typed in TYPED.findall(BETWEEN_LITERALS.sub("", path.read_text("utf-8"))):
            words = typed.rstrip(".,;:").split()
            known = options.get(" ".join(words[:2]), options.get(words[0]))
            named = {*re.findall(r"(?<![\w-])--[a-z][a-z-]+", typed)} - {"--help"}
            if known is None or named - known:
                missing.append(f"{path}: recon {typed}")

    assert missing == []
