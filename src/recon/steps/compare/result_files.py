"""The files of one reconciliation: CSV and JSON with fixed columns, order and bytes.

All are written to a temporary folder first and renamed together at the end, so that a failure
leaves the files of an earlier run as they were.
"""

import csv
import hashlib
import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
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
    FeesCharged,
    GatewayHolds,
    HeldBalance,
    Holding,
)
from recon.model.money import format_minor_units
from recon.model.terms import ControlTotal, Reject, SourceFile
from recon.privacy.own_files import for_group, make_folder
from recon.steps.compare.csv_columns import csv_chunks, csv_of, plain_text

BREAKS = "breaks.csv"
BREAKS_CSV = tuple(name for name in BREAK_COLUMNS if name != "about")
"""The subject of a break without an order is in its reason; bank columns are the last."""
JOURNALS = "journals.csv"
MATCHES, PENDING, UNVERIFIED = "matches.csv", "pending.csv", "unverified.csv"
SUMMARY = "summary.json"
WORKBOOK = "reconciliation.xlsx"
REOPENED = "reopened"
"""Key in the summary: break -> the closed break that it opens again."""
REJECT_COLUMNS = ("source", "line", "column", "reason", "value")
_STAGED = ".recon-"
Content = str | Iterable[bytes]
"""Content of a file: a text, or its UTF-8 in parts that are made while it is written."""


def result_files(
    result: Reconciliation,
    *,
    rejects: Sequence[Reject],
    files: Sequence[SourceFile],
) -> dict[str, Content]:
    """Name -> content of every text file of a reconciliation, the summary last."""
    summary = {SUMMARY: summary_json(result, files=files)}
    return {**row_files(result, rejects=rejects), **summary}


def row_files(result: Reconciliation, *, rejects: Sequence[Reject]) -> dict[str, Content]:
    """Name -> content of every CSV file of a reconciliation."""
    return {
        BREAKS: csv_chunks(result.breaks, columns=BREAKS_CSV),
        "effects.csv": csv_chunks(result.effects, columns=EFFECT_COLUMNS),
        MATCHES: csv_chunks(result.matches, columns=MATCH_COLUMNS),
        PENDING: csv_chunks(result.pending, columns=PENDING_COLUMNS),
        UNVERIFIED: csv_chunks(result.unverified, columns=UNVERIFIED_COLUMNS),
        "rejects.csv": _rejects_csv(rejects),
        JOURNALS: journals_csv(result.journals),
    }


def journals_csv(journals: pd.DataFrame) -> str:
    """Proposed journals as CSV for a ledger to import: two lines each, amounts in major units."""
    return csv_of(journals, columns=JOURNAL_COLUMNS)


@contextmanager
def output_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder below `folder`, whose files get their names there together at the end.

    It is made before any computation, to learn whether results can be written. No file gets its
    name where the block raises an error; the summary, by which a reader knows that all belong
    together, is the last one that does.

    Raises:
        FolderError: the folder cannot be made or written.
        OutputError: one of the files could not be renamed; those before it have been.
    """
    place = folder / f"{_STAGED}{os.getpid()}"
    with reported(folder, FolderError):
        make_folder(folder)
        shutil.rmtree(place, ignore_errors=True)  # left by an ended process that had our number
        make_folder(place)
    try:
        yield place
        # Folders first: where one is of another run than the summary, no reader takes the rest.
        for path in sorted(place.iterdir(), key=_renamed_at):
            target = folder / path.name
            with reported(target):
                if path.is_dir() and target.exists():
                    shutil.rmtree(target)
                path.replace(target)
                flush_folder(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _renamed_at(path: Path) -> tuple[bool, bool, str]:
    return path.name == SUMMARY, not path.is_dir(), path.name


def write_files(place: Path, files: Mapping[str, Content]) -> None:
    """Write files into the temporary folder of an output folder.

    Raises:
        OutputError: one of them cannot be written.
    """
    with reported(place.parent):
        for name, content in files.items():
            with open(place / name, "wb", opener=for_group) as file:
                file.writelines([content.encode()] if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())


@contextmanager
def reported(path: Path, kind: type[OutputError] = OutputError) -> Iterator[None]:
    """Raise an error of the system as one that says that results cannot be written to a path."""
    try:
        yield
    except OSError as error:
        msg = (
            f"results cannot be written to {path}: {error.strerror}; files of an earlier run were "
            "kept; free the place or name another folder and run again"
        )
        raise kind(msg) from error


def _rejects_csv(rejects: Sequence[Reject]) -> str:
    ordered = sorted(rejects, key=lambda reject: (reject.kind, reject.source, reject.line))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(REJECT_COLUMNS)
    writer.writerows(attrgetter(*REJECT_COLUMNS)(each) for each in ordered)
    return text.getvalue()


_PLACE = ("merchant_id", "account_id", "currency")
_SIDE = ("source", *_PLACE, "state")
_HELD = ("payable", "held_back", "reserve")
_FEES = ("charged", "booked", "difference")
_INPUT = (
    *("name", "sha256", "size_bytes", "rows_read", "rows_accepted", "rows_rejected"),
    *("rows_skipped", "rows_unassigned"),
)


def summary_json(result: Reconciliation, *, files: Sequence[SourceFile]) -> str:
    """The summary of a reconciliation: its verdict, sums, control totals, inputs and digests."""
    again = result.movements[result.movements["reopens"].ne("")]
    codes = result.breaks["code"].astype("str").value_counts()
    shared = result.breaks["cause"].astype("str")
    causes = shared[shared.ne("")].value_counts()
    inputs = sorted(files, key=lambda file: (str(file.kind), file.name, file.sha256))
    document = {
        "verdict": str(result.verdict),
        "as_of": plain_text(result.as_of),
        "sources": [
            {
                **{name: str(row[name]) for name in _SIDE},
                "count": int(row["count"]),
                "amount": _money(row["amount"], currency=str(row["currency"])),
            }
            for row in result.sides.to_dict("records")
        ],
        "control_totals": [_total(each) for each in result.control_totals],
        "breaks_by_code": {code: int(codes[code]) for code in sorted(codes.index)},
        "breaks_by_cause": {str(cause): int(causes[cause]) for cause in sorted(causes.index)},
        REOPENED: dict(zip(again["break_id"], again["reopens"], strict=True)),
        **_holds_shown(result.gateway_holds),
        "scope_of_assurance": [
            {
                **each,
                "amount": _money(each.get("amount", 0), currency=str(each.get("currency", ""))),
            }
            for each in result.scope_of_assurance
        ],
        "unmapped_codes": [dict(each) for each in result.unmapped_codes],
        "not_covered": list(result.not_covered),
        "inputs": [
            {
                "source": str(file.kind),
                **{name: getattr(file, name) for name in _INPUT},
                **({"skipped_by": file.skipped_by} if file.skipped_by else {}),
            }
            for file in inputs
        ],
        "rules_digest": result.rules_digest,
        "words_digest": result.words_digest,
        "digest": result.digest,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n"


def _holds_shown(holds: GatewayHolds | None) -> dict[str, Any]:
    """What the gateway holds and its fees, per account; empty without a settlement."""
    if holds is None:
        return {}

    def as_row(row: Holding | FeesCharged, names: Sequence[str]) -> dict[str, Any]:
        cells: dict[str, Any] = {name: getattr(row, name) for name in _PLACE}
        for name in names:
            held = getattr(row, name)
            is_bucket = isinstance(held, HeldBalance)
            amount = _money(held.amount if is_bucket else held, currency=row.currency)
            cells[name] = {"amount": amount, "oldest": held.since} if is_bucket else amount
        return cells

    return {
        "gateway_holds": [as_row(row, _HELD) for row in holds.holdings],
        "fees": [as_row(row, _FEES) for row in holds.fees],
    }


def _total(total: ControlTotal) -> dict[str, Any]:
    names = ("id", "name", *_PLACE, "measure", "left", "right", "difference", "passed")
    cells = {name: getattr(total, name) for name in names}
    if total.measure != "count":
        sides = ("left", "right", "difference")
        cells |= {name: _money(cells[name], currency=total.currency) for name in sides}
    return cells


def _money(minor_units: Any, *, currency: str) -> str:
    """An amount as text; minor units as they are where there is no currency."""
    if pd.isna(minor_units):
        return ""
    if not currency:
        return str(int(minor_units))
    return format_minor_units(int(minor_units), currency=currency)


def files_of_lists(place: Path, *, result: Reconciliation) -> dict[str, ListFile]:
    """The lists that a workbook may name instead of showing them, in their temporary folder.

    Keys are LISTS_IN_FILES.
    """
    lists = {MATCHES: result.matches, UNVERIFIED: result.unverified, PENDING: result.pending}
    files = []
    for name, rows in lists.items():
        with (place / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            files.append(ListFile(name, len(rows), file.tell(), digest))
    return dict(zip(LISTS_IN_FILES, files, strict=True))


FEE_CLAIMS = "fee-claims.csv"
CLAIM_COLUMNS = ("claim_id", *(name for name in DIFFERING_COLUMNS if name != "difference"))
_AMOUNTS = ("base", "expected", "charged", "given_back", "claimed")
_NAMES = (
    *("merchant_id", "account_id", "currency", "batch_id", "transaction_id", "order_no"),
    *("reference_no", "entry_type", "settled_on"),
)
_DIGITS = 16


def claims_csv(fees: ChargedFees) -> Content:
    """One row per claimed settlement line, amounts in major units; only the header for none."""
    claims, ids = fees.claims, []
    counted = Counter[tuple[str, ...]]()
    for names in claims[[*_NAMES]].itertuples(index=False, name=None):
        # The same id for the same line on every night; equal lines are counted.
        counted[names] += 1
        text = "\x1f".join((*names, str(counted[names])))
        ids.append(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS])
    own = pd.Series(ids, index=claims.index, dtype="str")
    return csv_chunks(claims.assign(claim_id=own), columns=CLAIM_COLUMNS, amounts=_AMOUNTS)


def write_claims(fees: ChargedFees | None, *, folder: Path, name: str) -> Path | None:
    """Write the claims of a night next to its workbook, replacing those of an earlier run.

    Raises:
        OutputError: the folder cannot be written.
    """
    if fees is None:
        return None
    with output_folder(folder) as place:
        write_files(place, {name: claims_csv(fees)})
    return folder / name
