"""Control totals that a file or its companion file declares: row count, sums of amounts, hash.

A file whose content does not agree with them is refused as a whole: rows are missing or were
changed in transit, and it is unknown which.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from recon.config.file_layouts import FileLayout
from recon.files.formats.named_bytes import read_bytes
from recon.files.formats.raw_table import Declared, refuse
from recon.files.typing.amounts import written_amounts
from recon.files.typing.text_cells import distinct
from recon.model.errors import AmountError, SourceMissingError
from recon.model.money import exponent, format_minor_units
from recon.model.terms import Reject
from recon.privacy.displayed_text import redacted

CONTROL_BYTES_MAX = 64 * 1024
"""Maximum size of a file of control totals."""

ANY_CURRENCY = ""
"""Key of a sum without a currency, for a file with only one."""

_LINE = re.compile(r"(rows|sha256|amount|amount\.[A-Z]{3})\s*=\s*(\S.*)")
_WHOLE = re.compile(r"[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Counted:
    """Totals of what was read from a file."""

    rows: int
    sums: Mapping[str, int]
    """Currency -> sum of the readable amounts, in minor units."""
    unread: int
    """Number of rows with an unreadable amount; if there are any, sums cannot be compared."""
    sha256: str


def read_control_file(path: Path, *, ending: str) -> Declared:
    """Read the companion file of a file: lines `rows = 12`, `amount.EUR = 10.00`, `sha256 = …`.

    Raises:
        SourceUnreadableError: there is no such file, or one of its lines is not recognised.
    """
    companion = path.with_name(path.name + ending)
    try:
        content = read_bytes(companion, bytes_max=CONTROL_BYTES_MAX).content
    except SourceMissingError:
        refuse(path.name, f"has no {companion.name} beside it, which states its control figures")
    figures: dict[str, str] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or match[1] in figures:
            refuse(companion.name, f"has a line {number} that is no control figure, or one twice")
        figures[match[1]] = match[2]
    if not figures:
        refuse(companion.name, "has no control figure")
    amounts = {
        name.removeprefix("amount").removeprefix("."): text
        for name, text in figures.items()
        if name.startswith("amount")
    }
    return Declared(figures.get("rows", ""), amounts, figures.get("sha256", "").lower())


def refuse_unproven(
    path: Path,
    *,
    declared: Declared | None,
    counted: Counted,
    rejects: Sequence[Reject],
    layout: FileLayout,
) -> None:
    """Refuse a file whose control totals differ, or with any bad row if the layout demands all.

    Raises:
        SourceUnreadableError: naming the total, or the first bad row.
    """
    if declared is not None:
        refuse_other_figures(declared, counted=counted, layout=layout, name=path.name)
    if layout.control_file:
        companion = read_control_file(path, ending=layout.control_file)
        refuse_other_figures(companion, counted=counted, layout=layout, name=path.name)
    if layout.whole_file and rejects:
        first = rejects[0]
        refuse(
            path.name,
            f"has {len(rejects)} rows that cannot be read, and its merchant wants all or nothing; "
            f"the first is line {first.line}, {first.column}: {first.reason}",
        )


def refuse_other_figures(
    declared: Declared, *, counted: Counted, layout: FileLayout, name: str
) -> None:
    """Refuse a file that differs from the declared totals.

    Raises:
        SourceUnreadableError: naming the total, what was declared and what was read.
    """
    if declared.sha256 and declared.sha256 != counted.sha256:
        refuse(name, "has another SHA-256 than its control figures say: it is not that file")
    if declared.rows:
        if _WHOLE.fullmatch(declared.rows) is None:
            refuse(name, f"declares {redacted(declared.rows)!r} rows, which is no number")
        if int(declared.rows) != counted.rows:
            refuse(name, f"declares {int(declared.rows)} rows and has {counted.rows}")
    for currency, text in declared.amounts.items():
        _refuse_other_sum(text, currency=currency, counted=counted, layout=layout, name=name)


def _refuse_other_sum(
    text: str, *, currency: str, counted: Counted, layout: FileLayout, name: str
) -> None:
    if currency == ANY_CURRENCY:
        if len(counted.sums) > 1:
            refuse(name, "declares one sum for several currencies, which no one can compare")
        currency = next(iter(counted.sums), "")
    if not currency and (counted.unread or not text.strip("0.,")):
        return
    try:
        units = declared_units(text, currency=currency, layout=layout)
    except AmountError as error:
        refuse(name, f"declares a sum that cannot be read: {error}")
    if counted.unread:
        return  # the rejects show that the sum is incomplete
    counted_sum = counted.sums.get(currency, 0)
    if units != counted_sum:
        shown = format_minor_units(counted_sum, currency=currency)
        refuse(name, f"declares {redacted(text)} {currency} and its rows have {shown}")


def declared_units(text: str, *, currency: str, layout: FileLayout) -> int:
    """Parse a declared sum, written like the amounts of the file, into minor units.

    Raises:
        AmountError: it is not an amount of its currency.
    """
    exponent(currency)
    problems = dict[int, str]()
    _, amounts = written_amounts(
        pa.array([text], pa.large_string()),
        layout=layout,
        currencies=distinct(pa.array([currency], pa.large_string())),
        signed=np.ones(1, dtype=bool),
        problems=problems,
    )
    if not amounts.given[0] or problems:
        why = next(iter((problems | amounts.problems).values()), "is no amount")
        msg = f"{redacted(text)!r} {why}"
        raise AmountError(msg)
    return int(amounts.minor_units[0])
