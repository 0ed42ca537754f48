"""The files of one reconciliation: CSV and JSON of fixed columns, order and bytes.

All are written beside their names first and take their places together at the end, so that a
failure leaves the files of an earlier run as they were.
"""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from recon.matching.breaks.result import (
    BREAK_COLUMNS,
    EFFECT_COLUMNS,
    JOURNAL_COLUMNS,
    MATCH_COLUMNS,
    PENDING_COLUMNS,
    UNVERIFIED_COLUMNS,
    Reconciliation,
)
from recon.model.durable import flush_folder
from recon.model.errors import FolderError, OutputError
from recon.model.figures import LISTS_IN_FILES, ListFile
from recon.model.gateway_holds import (
    DIFFERING_COLUMNS,
    ChargedFees,
    FeesTaken,
    GatewayHolds,
    HeldPart,
    Holding,
)
from recon.model.money import format_minor_units
from recon.model.words import ControlTotal, Reject, SourceFile
from recon.privacy.own_files import for_group, make_folder
from recon.steps.runtime.csv_columns import csv_of, csv_parts, plain_text

BREAKS = "breaks.csv"
JOURNALS = "journals.csv"
MATCHES, PENDING, UNVERIFIED = "matches.csv", "pending.csv", "unverified.csv"
SUMMARY = "summary.json"
WORKBOOK = "reconciliation.xlsx"
REOPENED = "reopened"
"""Break -> the closed break that it opens again."""
REJECT_COLUMNS = ("source", "line", "column", "reason", "value")
_STAGED = ".recon-"
Content = str | Iterable[bytes]
"""Of a file: a text, or its UTF-8 in parts that are made while it is written."""


def result_files(
    result: Reconciliation,
    *,
    rejects: Sequence[Reject],
    files: Sequence[SourceFile],
) -> dict[str, Content]:
    """Name -> content of every text file of a reconciliation, the summary last."""
    return {
        BREAKS: csv_parts(result.breaks, columns=BREAK_COLUMNS),
        "effects.csv": csv_parts(result.effects, columns=EFFECT_COLUMNS),
        MATCHES: csv_parts(result.matches, columns=MATCH_COLUMNS),
        PENDING: csv_parts(result.pending, columns=PENDING_COLUMNS),
        UNVERIFIED: csv_parts(result.unverified, columns=UNVERIFIED_COLUMNS),
        "rejects.csv": _rejects_csv(rejects),
        JOURNALS: journals_csv(result.journals),
        SUMMARY: _summary(result, files=files),
    }


def journals_csv(journals: pd.DataFrame) -> str:
    """Proposed journals as CSV for a ledger to import: two lines each, amounts in major units."""
    return csv_of(journals, columns=JOURNAL_COLUMNS)


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Make sure that results can be written, before anything is computed; clear what was staged.

    Raises:
        FolderError: the folder cannot be made or written.
    """
    with _reported(folder, FolderError):
        make_folder(folder)
        probe = _stage(folder, "probe", content="")
        probe.unlink()
    try:
        yield
    finally:
        for left in folder.glob(f"{_STAGED}{os.getpid()}-*"):
            with suppress(OSError):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def stage(folder: Path, *, files: Mapping[str, Content]) -> dict[Path, Path]:
    """Write every file beside its place; staged path -> final path.

    Raises:
        OutputError: one of them cannot be written; none has taken its place.
    """
    with _reported(folder):
        return {_stage(folder, name, content=text): folder / name for name, text in files.items()}


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Where a folder is written beside its place, which `publish` gives it.

    Raises:
        OutputError: it cannot be written.
    """
    with _reported(target):
        yield target.with_name(f"{_STAGED}{os.getpid()}-{target.name}")


def publish(staged: Mapping[Path, Path]) -> None:
    """Give every staged file or folder its name.

    Raises:
        OutputError: one of them could not take its place; those before it have.
    """
    for path, target in staged.items():
        with _reported(target):
            if path.is_dir() and target.exists():
                shutil.rmtree(target)
            path.replace(target)
            flush_folder(target.parent)


def _stage(folder: Path, name: str, *, content: Content) -> Path:
    path = folder / f"{_STAGED}{os.getpid()}-{name}"
    path.unlink(missing_ok=True)  # of a process long gone that had our number
    with open(path, "xb", opener=for_group) as file:
        file.writelines([content.encode()] if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    return path


@contextmanager
def _reported(path: Path, kind: type[OutputError] = OutputError) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = (
            f"results cannot be written to {path}: {error.strerror}; files of an earlier run were "
            "kept; free the place or name another folder and run again"
        )
        raise kind(msg) from error


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _rejects_csv(rejects: Sequence[Reject]) -> str:
    ordered = sorted(rejects, key=lambda reject: (reject.kind, reject.source, reject.line))
    return _csv(
        REJECT_COLUMNS,
        [(each.source, each.line, each.column, each.reason, each.value) for each in ordered],
    )


def _summary(result: Reconciliation, *, files: Sequence[SourceFile]) -> str:
    again = result.movements[result.movements["reopens"].ne("")]
    codes = result.breaks["code"].astype("str").value_counts()
    shared = result.breaks["cause"].astype("str")
    causes = shared[shared.ne("")].value_counts()
    document = {
        "verdict": str(result.verdict),
        "as_of": plain_text(result.as_of),
        "sources": [_side(row) for row in result.sides.to_dict("records")],
        "control_totals": [_total(each) for each in result.control_totals],
        "breaks_by_code": {code: int(codes[code]) for code in sorted(codes.index)},
        "breaks_by_cause": {str(cause): int(causes[cause]) for cause in sorted(causes.index)},
        REOPENED: dict(zip(again["break_id"], again["reopens"], strict=True)),
        **_holds_shown(result.gateway_holds),
        "scope_of_assurance": [_assurance(each) for each in result.scope_of_assurance],
        "unmapped_codes": [dict(each) for each in result.unmapped_codes],
        "not_covered": list(result.not_covered),
        "inputs": [_input(each) for each in sorted(files, key=_input_order)],
        "rules_digest": result.rules_digest,
        "digest": result.digest,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n"


def _side(row: Mapping[Any, Any]) -> dict[str, Any]:
    names = ("source", "merchant_id", "account_id", "currency", "state")
    amount = _money(row["amount"], currency=str(row["currency"]))
    cells: dict[str, Any] = {name: str(row[name]) for name in names}
    return {**cells, "count": int(row["count"]), "amount": amount}


def _holds_shown(holds: GatewayHolds | None) -> dict[str, Any]:
    """What the gateway holds and its fees, per account; nothing without a settlement."""
    if holds is None:
        return {}
    names = ("payable", "held_back", "reserve")
    return {
        "gateway_holds": [
            {
                **_place(row),
                **{name: _part(getattr(row, name), currency=row.currency) for name in names},
            }
            for row in holds.holdings
        ],
        "fees": [
            {
                **_place(row),
                **{
                    name: _money(getattr(row, name), currency=row.currency)
                    for name in ("charged", "booked", "difference")
                },
            }
            for row in holds.fees
        ],
    }


def _place(row: Holding | FeesTaken) -> dict[str, str]:
    return {name: getattr(row, name) for name in ("merchant_id", "account_id", "currency")}


def _part(part: HeldPart, *, currency: str) -> dict[str, str]:
    return {"amount": _money(part.amount, currency=currency), "oldest": part.since}


def _assurance(statement: Mapping[str, str | int]) -> dict[str, str | int]:
    amount = _money(statement.get("amount", 0), currency=str(statement.get("currency", "")))
    return {**statement, "amount": amount}


def _total(total: ControlTotal) -> dict[str, Any]:
    def figure(value: int) -> int | str:
        if total.measure == "count":
            return value
        return _money(value, currency=total.currency)

    return {
        "id": total.id,
        "name": total.name,
        "merchant_id": total.merchant_id,
        "account_id": total.account_id,
        "currency": total.currency,
        "measure": total.measure,
        "left": figure(total.left),
        "right": figure(total.right),
        "difference": figure(total.difference),
        "passed": total.passed,
    }


def _money(minor_units: Any, *, currency: str) -> str:
    """Amounts as text; minor units as they are where no currency says how to write them."""
    if pd.isna(minor_units):
        return ""
    if not currency:
        return str(int(minor_units))
    return format_minor_units(int(minor_units), currency=currency)


def _input(file: SourceFile) -> dict[str, str | int]:
    return {
        "source": str(file.kind),
        "name": file.name,
        "sha256": file.sha256,
        "size_bytes": file.size_bytes,
        "rows_read": file.rows_read,
        "rows_accepted": file.rows_accepted,
        "rows_rejected": file.rows_rejected,
        "rows_skipped": file.rows_skipped,
        "rows_unassigned": file.rows_unassigned,
        **({"skipped_by": file.skipped_by} if file.skipped_by else {}),
    }


def _input_order(file: SourceFile) -> tuple[str, str, str]:
    return (str(file.kind), file.name, file.sha256)


def files_of_lists(staged: Mapping[Path, Path], *, result: Reconciliation) -> dict[str, ListFile]:
    """The lists that a workbook may name instead of showing them; they take their places after it.

    Keys are LISTS_IN_FILES.
    """
    lists = (
        (MATCHES, result.matches),
        (UNVERIFIED, result.unverified),
        (PENDING, result.pending),
    )
    files = (_described(staged, name, rows) for name, rows in lists)
    return dict(zip(LISTS_IN_FILES, files, strict=True))


def _described(staged: Mapping[Path, Path], name: str, rows: pd.DataFrame, /) -> ListFile:
    path = next(path for path, target in staged.items() if target.name == name)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ListFile(name, len(rows), path.stat().st_size, digest)


FEE_CLAIMS = "fee-claims.csv"
CLAIM_COLUMNS = ("claim_id", *(name for name in DIFFERING_COLUMNS if name != "difference"))
_AMOUNTS = ("base", "expected", "charged", "given_back", "claimed")
_NAMES = (
    *("merchant_id", "account_id", "currency", "batch_id", "transaction_id", "order_no"),
    *("reference_no", "entry_type", "settled_on"),
)
_DIGITS = 16


def claims_csv(fees: ChargedFees) -> Content:
    """One row per claimed settlement line, amounts in major units; the header alone for none."""
    claims = fees.claims
    cells = claims[[*_NAMES]].itertuples(index=False, name=None)
    own = pd.Series(_ids([*cells]), index=claims.index, dtype="str")
    return csv_parts(claims.assign(claim_id=own), columns=CLAIM_COLUMNS, amounts=_AMOUNTS)


def _ids(lines: list[tuple[str, ...]]) -> list[str]:
    """The same for the same line on every night; equal lines are counted."""
    seen: dict[tuple[str, ...], int] = {}
    ids = []
    for names in lines:
        seen[names] = seen.get(names, 0) + 1
        text = "\x1f".join((*names, str(seen[names])))
        ids.append(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS])
    return ids


def write_claims(fees: ChargedFees | None, *, folder: Path, name: str) -> Path | None:
    """Write the claims of a night beside its workbook, in the place of an earlier run's.

    Raises:
        OutputError: the folder cannot be written.
    """
    if fees is None:
        return None
    publish(stage(folder, files={name: claims_csv(fees)}))
    return folder / name
