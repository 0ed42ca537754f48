"""`recon reconcile` on planted files with every break code: each file that machines read."""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from benchmarks.reconcile_files import write_files
from recon import cli
from tests.golden.figures import Figure
from tests.golden.workbooks import digest
from tests.injected import RECIPES, RULES, planted

SIZE, EACH = 1_200, 6
"""Orders, and how often each code is planted among them."""
SPOILED_ROW = 40
AS_OF = "2026-11-20"
SOURCES = ("orders", "gateway", "ledger", "instructions", "settlement")


def machine_files() -> dict[str, dict[str, Figure]]:
    """For each file its SHA-256, and one digest a column; each break code's count and digest."""
    with reconciled() as (out, _):
        tables: dict[str, dict[str, Figure]] = {
            f"machine files, {path.name}": {
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                **_columns(path),
            }
            for path in sorted(out.iterdir())
            if path.suffix in {".csv", ".json"}
        }
        breaks = pd.read_csv(out / "breaks.csv", dtype=str, keep_default_na=False)
    counts = Counter(breaks["code"])
    rows = {code: digest(part.to_csv(index=False)) for code, part in breaks.groupby("code")}
    tables["machine files, breaks by code"] = {
        code.value: f"{counts[code.value]} {rows.get(code.value, '')}" for code in RECIPES
    }
    return tables


@contextmanager
def reconciled(*sources: str) -> Iterator[tuple[Path, int]]:
    """The folder of results and the exit code, over these sources; over all without a name."""
    files = planted(size=SIZE, broken=EACH * len(RECIPES), seed=7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(files.sources, rules=RULES, folder=folder)
        for source in ("orders", "ledger"):
            _spoil(folder / f"{source}.csv")
        code = cli.main(_words(folder, sources=sources or SOURCES))
        yield folder / "out", code


def _spoil(path: Path) -> None:
    """A row whose amount is no number is refused, and its set unverified."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table.loc[SPOILED_ROW, "amount"] = "ten"
    table.to_csv(path, index=False)


def agreeing_end() -> int:
    """The exit code over files of which all say the same."""
    files = planted(size=SIZE, broken=0, seed=7)
    with tempfile.TemporaryDirectory() as name:
        write_files(files.sources, rules=RULES, folder=Path(name))
        return cli.main(_words(Path(name), sources=SOURCES))


def _words(folder: Path, *, sources: tuple[str, ...]) -> list[str]:
    options: Mapping[str, str] = {
        **{f"--{source}": f"{folder / source}.csv" for source in sources},
        "--rules": str(folder / "rules.toml"),
        "--as-of": AS_OF,
        "--out": str(folder / "out"),
    }
    return ["reconcile", *(word for pair in options.items() for word in pair)]


def _columns(path: Path) -> dict[str, Figure]:
    if path.suffix != ".csv":
        return {}
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    columns = table.items() if len(table) else ()
    return {"rows": len(table)} | {str(name): digest("\n".join(cells)) for name, cells in columns}
