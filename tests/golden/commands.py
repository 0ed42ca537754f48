"""What people type: the help of every command, and the codes with which commands end."""

import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import typer

from recon import cli
from tests.golden.figures import Figure
from tests.golden.machine_files import SOURCES, agreeing_end, reconciled

TERMINAL = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "TERM": "dumb", "NO_COLOR": "1"}
"""What a help text is drawn for; a developer's own terminal changes no byte."""
WORDS = {
    "recon --version": ["--version"],
    "recon of an unknown command": ["settel"],
    "recon nightly without an account": ["nightly", "--business-date", "2026-11-20"],
    "recon status without any setting": ["status"],
}


def helps() -> dict[str, dict[str, Figure]]:
    """Command -> what its --help shows."""
    return {
        "help": {
            " ".join(["recon", *words]): _spoken([*words, "--help"])[1]
            for words in _walk(typer.main.get_command(cli.app), [])
        }
    }


def exit_codes() -> dict[str, dict[str, Figure]]:
    """What was asked -> the code that a script gets."""
    found: dict[str, Figure] = {name: _spoken(words)[0] for name, words in WORDS.items()}
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        found["recon reconcile of files that agree"] = agreeing_end()
        for name, sources in (
            ("recon reconcile of files with breaks", SOURCES),
            ("recon reconcile without a ledger", tuple(s for s in SOURCES if s != "ledger")),
        ):
            with reconciled(*sources) as (_, code):
                found[name] = code
        found |= {f"recon reconcile of {name}": code for name, code in _unreadable()}
    return {"exit codes": found}


def _unreadable() -> Iterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory() as name:
        wrong, absent = Path(name) / "orders.csv", Path(name) / "absent.csv"
        wrong.write_text("order_no,amount\n1,2\n", encoding="utf-8")
        for what, path in (("a file with wrong columns", wrong), ("a file that is absent", absent)):
            asked = ["reconcile", "--orders", str(path), "--gateway", str(path)]
            yield what, cli.main([*asked, "--as-of", "2026-11-20", "--out", f"{name}/out"])


def _walk(command: object, words: list[str]) -> Iterator[list[str]]:
    """The command and all below it."""
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from _walk(below, [*words, name])


def _spoken(words: Sequence[str]) -> tuple[int, str]:
    """Exit code and standard output of a command."""
    spoken = io.StringIO()
    with _terminal(), redirect_stdout(spoken), redirect_stderr(io.StringIO()):
        code = cli.main(words)
    return code, "\n".join(line.rstrip() for line in spoken.getvalue().splitlines())


@contextmanager
def _terminal() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(TERMINAL)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
