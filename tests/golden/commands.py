"""The codes with which commands end."""

import io
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from recon import cli
from tests.golden.figures import Figure
from tests.golden.machine_files import SOURCES, agreeing_end, reconciled

WORDS = {
    "recon --version": ["--version"],
    "recon of an unknown command": ["settel"],
    "recon nightly without an account": ["nightly", "--business-date", "2026-11-20"],
    "recon status without any setting": ["status"],
}


def exit_codes() -> dict[str, dict[str, Figure]]:
    """What was asked -> the code that a script gets."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        found: dict[str, Figure] = {name: cli.main(words) for name, words in WORDS.items()}
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
