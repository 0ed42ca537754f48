"""Compares charged fees with the fee contract: sums, uncovered fees and differences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from recon.config.fee_contract import FACTS, ContractLine, FeeContract
from recon.matching.frames.arrays import frame_of_cells, texts
from recon.matching.frames.coding import coded
from recon.matching.frames.grouping import Ints, Rows, total
from recon.matching.frames.sources import Sources
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
from recon.matching.sides.settlement_side import pay_outs
from recon.model.gateway_holds import (
    BY_LINE_COLUMNS,
    DIFFERING_COLUMNS,
    MONTHS_COLUMNS,
    OUTSIDE_COLUMNS,
    ChargedFees,
)

GIVEN_BACK = "returned by the gateway"
REASONS_SHOWN = 10
"""Number of reasons for uncovered fees that the result names; the sheet names all."""
_ACCOUNT_KEY = ("merchant_id", "account_id", "currency")
_TEXTS = (
    *_ACCOUNT_KEY,
    *("settled_on", "batch_id", "transaction_id", "order_no", "reference_no", "entry_type"),
)
_SUMMED = ("lines", "base", "expected", "charged", "over", "under")
Key = tuple[str, ...]
Outside = dict[tuple[str, str], tuple[int, int]]
"""Reason and currency -> number of lines, and the fees charged for them."""


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
    charged = _Charged(contract)
    for lines in pieces:
        charged.add(lines, volumes=volumes)
    return ChargedFees(
        charged.by_line(),
        _outside_frame(charged.outside),
        _differing(charged.differing, given=charged.given_back),
        tuple(sorted(charged.totals.items())),
        _months(charged.otherwise, contract=contract, volumes=volumes),
    )


class _Charged:
    """Accumulates the totals of the pieces of a settlement."""

    def __init__(self, contract: FeeContract) -> None:
        self._contract = contract
        size = len(contract.lines)
        self._sums = {name: np.zeros(size, dtype=np.int64) for name in _SUMMED}
        self.outside: Outside = {}
        self.differing: list[pd.DataFrame] = []
        self.given_back, self.otherwise = Counter[Key](), Counter[Key]()
        self.totals = Counter[str]()

    def add(self, lines: pd.DataFrame, *, volumes: Volumes | None) -> None:
        """Add the lines of one piece."""
        contract = self._contract
        agreed = agreed_fees(lines, contract=contract, volumes=volumes)
        for name, sums in _line_sums(lines, agreed=agreed, contract=contract).items():
            self._sums[name] += sums
        _add_outside(self.outside, lines=lines, agreed=agreed)
        self.differing.append(_differing_rows(lines, agreed=agreed, contract=contract))
        self.given_back.update(_credits(lines, rows=np.flatnonzero(agreed.line == CREDIT)))
        self.totals.update(_totals(lines))
        if volumes is not None:
            self.otherwise.update(
                _priced_otherwise(lines, agreed=agreed, contract=contract, volumes=volumes)
            )

    def by_line(self) -> pd.DataFrame:
        """Return the sums by contract line."""
        rows = [
            {**_cells(line), **{name: int(sums[at]) for name, sums in self._sums.items()}}
            for at, line in enumerate(self._contract.lines)
        ]
        return frame_of_cells(rows, names=BY_LINE_COLUMNS, numbers={*_SUMMED})


def fees_not_covered(reasons: Mapping[str, int]) -> Iterator[str]:
    """Yield the reasons for unknown fees as text, with their counts (see Sources.unpriced)."""
    shown = sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    for reason, number in shown[:REASONS_SHOWN]:
        yield f"fee contract: {reason} ({number} settlement line{'s' * (number != 1)})"
    if len(shown) > REASONS_SHOWN:
        yield f"fee contract: {len(shown) - REASONS_SHOWN} more reasons, on the sheet Fees"


def _line_sums(
    lines: pd.DataFrame, *, agreed: AgreedFees, contract: FeeContract
) -> dict[str, Ints]:
    """Return the sums named in _SUMMED for each contract line."""
    held = np.flatnonzero(agreed.line >= 0)
    number, size = agreed.line[held], len(contract.lines)
    fee, gross = _minor(lines, "fee")[held], _minor(lines, "gross")[held]
    gap = agreed.gap[held]
    columns = {
        "lines": np.ones(len(held), dtype=np.int64),
        "base": np.abs(gross),
        "expected": agreed.expected[held],
        "charged": fee,
        "over": np.maximum(gap, 0),
        "under": np.maximum(-gap, 0),
    }
    return {name: total(columns[name], groups=number, size=size) for name in _SUMMED}


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


def _add_outside(outside: Outside, *, lines: pd.DataFrame, agreed: AgreedFees) -> None:
    """Add the lines that no contract line applies to, by reason, and the fees given back."""
    rows = np.flatnonzero((agreed.line == NOT_COVERED) | (agreed.line == CREDIT))
    credit = agreed.line[rows] == CREDIT
    reasons = (*agreed.reasons, GIVEN_BACK)
    number = np.where(credit, len(agreed.reasons), agreed.why[rows])
    codes, labels = _currencies(lines, rows=rows)
    group = number * max(len(labels), 1) + codes
    size = len(reasons) * max(len(labels), 1)
    count = np.bincount(group, minlength=size)
    sums = total(_minor(lines, "fee")[rows], groups=group, size=size)
    for at in np.flatnonzero(count).tolist():
        key = reasons[at // len(labels)], labels[at % len(labels)]
        known = outside.get(key, (0, 0))
        outside[key] = known[0] + int(count[at]), known[1] + int(sums[at])


def _outside_frame(outside: Outside) -> pd.DataFrame:
    cells = [
        {"reason": reason, "currency": currency, "lines": lines, "charged": charged}
        for (reason, currency), (lines, charged) in sorted(
            outside.items(), key=lambda entry: (entry[0][0] == GIVEN_BACK, *entry[0])
        )
    ]
    return frame_of_cells(cells, names=OUTSIDE_COLUMNS, numbers={"lines", "charged"})


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
    rows: list[dict[str, str | int]] = []
    if volumes is not None:
        for name, month in month_sums(volumes, contract=contract):
            key = (name, *month.account_key, month.month)
            rows.append(
                {"name": name, "account": "/".join(month.account_key), "month": month.month}
                | {"currency": month.currency, "reached": month.reached}
                | {"lines": month.lines, "base": month.base, "late_lines": month.late_lines}
                | {"late_base": month.late_base, "otherwise": otherwise[key]}
            )
    numbers = {"lines", "base", "late_lines", "late_base", "otherwise"}
    return frame_of_cells(rows, names=MONTHS_COLUMNS, numbers=numbers)


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
            part = min(left.get(key, 0), max(over - int(back[row]), 0))
            if part:
                back[row] += part
                left[key] -= part
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


def _totals(lines: pd.DataFrame) -> dict[str, int]:
    """Return currency -> sum of all fees."""
    rows = np.flatnonzero(~pay_outs(lines))
    codes, labels = _currencies(lines, rows=rows)
    sums = total(_minor(lines, "fee")[rows], groups=codes, size=len(labels))
    return dict(zip(labels, sums.tolist(), strict=True))


def _currencies(lines: pd.DataFrame, *, rows: Rows) -> tuple[Rows, list[str]]:
    (codes,), labels = coded([lines["currency"].iloc[rows]])
    return codes.astype(np.intp), labels.to_pylist()


def _minor(lines: pd.DataFrame, name: str) -> Ints:
    return lines[name].to_numpy(dtype=np.int64)
