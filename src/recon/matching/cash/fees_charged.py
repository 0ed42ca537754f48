"""Compares charged fees with the fee contract: sums, uncovered fees and differences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from recon.config.fee_contract import FACTS, ContractLine, FeeContract
from recon.matching.frames.arrays import texts
from recon.matching.frames.grouping import Ints, Rows
from recon.matching.frames.sources import Sources, frame_of
from recon.matching.sides.agreed_fees import (
    CREDIT,
    NOT_COVERED,
    AgreedFees,
    Volumes,
    agreed_fees,
    month_sums,
    span,
    volumes_of,
)
from recon.matching.sides.settlement_side import is_payout
from recon.model.gateway_holds import (
    BY_LINE_COLUMNS,
    DIFFERING_COLUMNS,
    MONTHS_COLUMNS,
    OUTSIDE_COLUMNS,
    ChargedFees,
)

GIVEN_BACK = "returned by the gateway"
REASONS_DISPLAYED = 10
"""Number of reasons for uncovered fees that the result names; the sheet names all."""
_ACCOUNT_KEY = ("merchant_id", "account_id", "currency")
_TEXTS = (
    *_ACCOUNT_KEY,
    *("settled_on", "batch_id", "transaction_id", "order_no", "reference_no", "entry_type"),
)
_SUMMED = ("lines", "base", "expected", "charged", "over", "under")
Key = tuple[str, ...]


def charged_fees(sources: Sources, *, contract: FeeContract | None) -> ChargedFees | None:
    """Compare the fees charged with those agreed; None without a settlement or a contract."""
    lines, volumes = sources.settlement, volumes_of(sources)
    if lines is None or contract is None:
        return None
    return charged_by_pieces([lines], contract=contract, volumes=volumes)


def charged_by_pieces(
    pieces: Iterable[pd.DataFrame], *, contract: FeeContract, volumes: Volumes | None
) -> ChargedFees:
    """Compare fees as `charged_fees`, for lines in pieces that are never in memory together.

    Args:
        pieces: SETTLEMENT_COLUMNS, together the whole settlement; at least one.
        contract: the contract.
        volumes: see agreed_fees.
    """
    of_lines, outside, differing = list[pd.DataFrame](), list[pd.DataFrame](), list[pd.DataFrame]()
    given_back, otherwise, totals = Counter[Key](), Counter[Key](), Counter[str]()
    for lines in pieces:
        agreed = agreed_fees(lines, contract=contract, volumes=volumes)
        priced = _priced(lines, agreed=agreed)
        of_lines.append(priced[agreed.line >= 0].groupby("line")[[*_SUMMED]].sum())
        is_outside = (agreed.line == NOT_COVERED) | (agreed.line == CREDIT)
        outside.append(priced[is_outside].groupby(_OUTSIDE)[["lines", "charged"]].sum())
        differing.append(_differing_rows(lines, agreed=agreed, contract=contract))
        given_back.update(_credits(lines, rows=np.flatnonzero(agreed.line == CREDIT)))
        of_currency = priced[~is_payout(lines)].groupby("currency")["charged"].sum()
        totals.update({str(name): int(fees) for name, fees in of_currency.items()})
        if volumes is not None:
            otherwise.update(
                _priced_otherwise(lines, agreed=agreed, contract=contract, volumes=volumes)
            )
    sums = pd.concat(of_lines).groupby(level=0).sum()
    sums = sums.reindex(range(len(contract.lines)), fill_value=0)
    cells = zip(contract.lines, sums.to_dict("records"), strict=True)
    by_line = [{**_cells(line), **of_line} for line, of_line in cells]
    uncovered = pd.concat(outside).groupby(level=[0, 1]).sum().reset_index()
    uncovered = uncovered.sort_values(
        _OUTSIDE, key=lambda cells: cells.where(cells.ne(GIVEN_BACK), _LAST), ignore_index=True
    )
    return ChargedFees(
        frame_of(by_line, columns=_kinds(BY_LINE_COLUMNS)),
        uncovered[[*OUTSIDE_COLUMNS]].astype(dict.fromkeys(_OUTSIDE, "str")),
        _differing(differing, given=given_back),
        tuple(sorted(totals.items())),
        _months(otherwise, contract=contract, volumes=volumes),
    )


_OUTSIDE = ["reason", "currency"]
_LAST = "\U0010ffff"
"""Sorts after every reason."""


def _priced(lines: pd.DataFrame, *, agreed: AgreedFees) -> pd.DataFrame:
    """Return each line with its contract line, _SUMMED, and why it has no expected fee."""
    reasons = np.array([*agreed.reasons, GIVEN_BACK], dtype=object)
    why = np.where(agreed.line == CREDIT, len(agreed.reasons), agreed.why)
    return pd.DataFrame(
        {
            "line": agreed.line,
            "reason": reasons[why],
            "currency": texts(lines["currency"]),
            "lines": np.ones(len(lines), dtype=np.int64),
            "base": np.abs(_minor(lines, "gross")),
            "expected": agreed.expected,
            "charged": _minor(lines, "fee"),
            "over": np.maximum(agreed.gap, 0),
            "under": np.maximum(-agreed.gap, 0),
        }
    )


def fees_not_covered(reasons: Mapping[str, int]) -> Iterator[str]:
    """Yield the reasons for unknown fees as text, with their counts (see Sources.unpriced)."""
    largest = sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    for reason, number in largest[:REASONS_DISPLAYED]:
        yield f"fee contract: {reason} ({number} settlement line{'s' * (number != 1)})"
    if len(largest) > REASONS_DISPLAYED:
        yield f"fee contract: {len(largest) - REASONS_DISPLAYED} more reasons, on the sheet Fees"


def _cells(line: ContractLine) -> dict[str, str]:
    facts = [
        f"{fact} {'/'.join(line.accepted_values(fact))}"
        for fact in FACTS
        if line.accepted_values(fact)
    ]
    facts += ["accounts " + ", ".join(line.accounts)] if line.accounts else []
    return {
        "name": line.name,
        "type": line.type,
        "currency": line.currency,
        "holds_for": "; ".join(facts) or "all",
        "days": f"{line.first} to {line.until}" if line.until else f"from {line.first}",
        "price": line.price,
    }


def _differing_rows(
    lines: pd.DataFrame, *, agreed: AgreedFees, contract: FeeContract
) -> pd.DataFrame:
    """Return the lines whose fee differs from the agreed one."""
    rows = np.flatnonzero((agreed.line >= 0) & (agreed.gap != 0))
    columns = {name: texts(lines[name].iloc[rows]) for name in _TEXTS}
    names = np.array([line.name for line in contract.lines], dtype=object)
    numbers = {
        "base": np.abs(_minor(lines, "gross")[rows]),
        "expected": agreed.expected[rows],
        "charged": _minor(lines, "fee")[rows],
        "difference": agreed.gap[rows],
    }
    return pd.DataFrame({**columns, "contract_line": names[agreed.line[rows]], **numbers})


def _differing(pieces: Sequence[pd.DataFrame], *, given: Counter[Key]) -> pd.DataFrame:
    """Combine the differing lines of all pieces, each with what was refunded of it."""
    # A piece without rows has no text type either: its columns would turn those of others into
    # objects.
    some = [piece for piece in pieces if len(piece)] or pieces[:1]
    frame = pd.concat(some, ignore_index=True)
    frame = frame.sort_values([*frame.columns], kind="stable").reset_index(drop=True)
    back = _given_back(frame, given=given)
    frame["given_back"] = back
    frame["claimed"] = np.maximum(frame["difference"].to_numpy(dtype=np.int64) - back, 0)
    return frame[list(DIFFERING_COLUMNS)]


def _months(
    otherwise: Counter[Key], *, contract: FeeContract, volumes: Volumes | None
) -> pd.DataFrame:
    """Return the volumes of the months, and how many lines late lines repriced."""
    rows: list[dict[str, Any]] = []
    if volumes is not None:
        for month in month_sums(volumes, contract=contract):
            account = month.pop("merchant_id"), month.pop("account_id")
            changed = otherwise[month["name"], *account, month["month"]]
            rows.append({**month, "account": "/".join(account), "otherwise": changed})
    return frame_of(rows, columns=_kinds(MONTHS_COLUMNS))


_NUMBERS = (*_SUMMED, "late_lines", "late_base", "otherwise")


def _kinds(names: Iterable[str]) -> dict[str, str]:
    return {name: "int64" if name in _NUMBERS else "str" for name in names}


def _priced_otherwise(
    lines: pd.DataFrame, *, agreed: AgreedFees, contract: FeeContract, volumes: Volumes
) -> Counter[Key]:
    """Count lines repriced by late lines, by contract line, account and deciding month."""
    count: Counter[Key] = Counter()
    if not volumes.frame["late"].any():
        return count
    before = agreed_fees(lines, contract=contract, volumes=volumes.without_late())
    changed = (before.expected != agreed.expected) | (before.line != agreed.line)
    rows = np.flatnonzero(changed & ((agreed.line >= 0) | (before.line >= 0)))
    held = np.maximum(agreed.line, before.line)[rows].tolist()
    cells = (texts(lines[name].iloc[rows]).tolist() for name in (*_ACCOUNT_KEY[:2], "settled_on"))
    for number, merchant, account, day in zip(held, *cells, strict=True):
        line = contract.lines[number]
        count[line.name, merchant, account, f"{span(line, day=day)[0]:%Y-%m}"] += 1
    return count


def _given_back(differing: pd.DataFrame, *, given: Counter[Key]) -> Ints:
    """Return what was refunded of each overcharge: by transaction, then order, oldest first."""
    back = np.zeros(len(differing), dtype=np.int64)
    left = Counter(given)
    if not left:
        return back
    cells = differing[[*_ACCOUNT_KEY, "transaction_id", "order_no", "difference"]]
    for row, (*account_key, transaction, order_no, over) in enumerate(
        zip(*(cells[name].tolist() for name in cells), strict=True)
    ):
        for key in ((*account_key, "t", transaction), (*account_key, "o", order_no)):
            returned = min(left.get(key, 0), max(over - int(back[row]), 0))
            if returned:
                back[row] += returned
                left[key] -= returned
    return back


def _credits(lines: pd.DataFrame, *, rows: Rows) -> Counter[Key]:
    """Return what was refunded to each payment, by its transaction, else its order."""
    given: Counter[Key] = Counter()
    names = (*_ACCOUNT_KEY, "transaction_id", "order_no")
    columns = [texts(lines[name].iloc[rows]).tolist() for name in names]
    fees = _minor(lines, "fee")[rows].tolist()
    for *account_key, transaction, order_no, fee in zip(*columns, fees, strict=True):
        key = ("t", transaction) if transaction else ("o", order_no)
        given[*account_key, *key] -= fee
    return given


def _minor(lines: pd.DataFrame, name: str) -> Ints:
    return lines[name].to_numpy(dtype=np.int64)
