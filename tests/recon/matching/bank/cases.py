"""Statements and settlement lines for tests, in a few words."""

import shlex
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from recon.config.rules import Rules
from recon.matching.breaks.result import Reconciliation
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BankSource,
    BankStatement,
    NightOfBank,
)
from recon.matching.frames.sources import (
    GATEWAY_COLUMNS,
    LEDGER_COLUMNS,
    ORDER_COLUMNS,
    SETTLEMENT_COLUMNS,
    Previous,
    Sources,
    frame_of,
)
from recon.proof.proven import proven
from tests.recon.proof.night_folders import Night, compared_night

IBAN = "DE89370400440532013000"
FIRST, LAST = "2026-11-02", "2026-11-30"
AS_OF = datetime(2026, 12, 1, tzinfo=UTC)
"""The end of the last day that the statement covers."""


@dataclass
class Case:
    """Payouts of one merchant, and what its bank says."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    banks: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, Any] = field(default_factory=dict)
    to_date: str = LAST
    balanced: bool = True
    covered: bool = True
    """Whether a statement is given at all."""
    misbooked: int = 0
    """What the ledger has too little of each payout."""
    night: NightOfBank | None = None
    at_bank: list[dict[str, Any]] = field(default_factory=list)
    """What the ledger has of the bank, see `took`."""

    def paid(self, batch: str, amount: int, *, on: str = "2026-11-10", **cells: Any) -> "Case":
        """A batch of one line that was paid out."""
        row = {"batch_id": batch, "merchant_id": "M", "account_id": "A", "currency": "EUR"}
        row |= {"settled_on": on, "fee": 0, "source": "s.csv", "line": len(self.lines) + 2, **cells}
        kind = "capture" if amount > 0 else "refund"
        self.lines += [
            {**row, "entry_type": kind, "gross": amount, "net": amount, "order_no": f"O-{batch}"},
            {**row, "entry_type": "payout", "gross": amount, "net": amount},
        ]
        return self

    def came(self, text: str, amount: int, *, on: str = "2026-11-12", **cells: Any) -> "Case":
        """An entry that says this."""
        row = {"statement": 0, "part": 0, "entry_no": f"E{len(self.entries) + 1}"}
        row |= {"booked_on": on, "value_on": on, "currency": "EUR", "amount": amount}
        row |= {"text": text, "status": "booked", "charges": 0, **cells}
        self.entries.append(row)
        return self

    def took(self, names: str, amount: int, *, on: str = "2026-11-12", **cells: Any) -> "Case":
        """The ledger has it at the bank."""
        row = {"merchant_id": "M", "account_id": "A", "currency": "EUR", "reference_no": names}
        row |= {"entry_id": f"K{len(self.at_bank) + 1}", "amount": abs(amount)}
        row |= {"entry_type": "bank" if amount > 0 else "bank_reversal", "source": "l.csv"}
        row |= {"booked_at": f"{on}T12:00:00Z", "line": len(self.at_bank) + 500, **cells}
        self.at_bank.append(row)
        return self

    def wrote_off(self, names: str, amount: int, **cells: Any) -> "Case":
        """The ledger writes off what a group differs by, or adjust it."""
        return self.took(names, amount, **{"entry_type": "write_off", **cells})

    def played(self, steps: str) -> "Case":
        """Steps as a text, such as `paid B-1 500 / came "by B-1" 450 on=2026-11-20`."""
        for step in steps.split(" / "):
            name, *labels = shlex.split(step)
            cells = dict(label.split("=") for label in labels if "=" in label)
            text, amount = (label for label in labels if "=" not in label)
            getattr(self, name)(text, int(amount), **cells)
        return self

    def also(self, *accounts: str) -> "Case":
        """Further accounts that are paid out at the same bank."""
        self.banks["accounts"] = ["M/A", *accounts]
        return self

    def come_to(self, *, previous: Previous | None = None) -> Reconciliation:
        """What the engine makes of it."""
        night = self.compared(previous=previous)
        return proven(night.result, sources=night.sources, rules=night.rules, previous=previous)

    def compared(self, *, previous: Previous | None = None) -> Night:
        """What its totals are computed from."""
        moved = sum(one["amount"] for one in self.entries if not one["part"])
        balances = {"opening": 0, "closing": moved} if self.balanced else {}
        statement = BankStatement(
            "b.xml", "s", IBAN, "1", "EUR", FIRST, self.to_date, booked=moved, **balances
        )
        entries = frame_of(self.entries, columns=BANK_ENTRY_COLUMNS)
        bank = {"iban": IBAN, "currency": "EUR", "accounts": ["M/A"], "counterparty": ["Gateway"]}
        rules = Rules.of({"bank": {"main": bank | self.banks}, **self.rules}, source="test")
        sources = Sources(
            orders=frame_of([], columns=ORDER_COLUMNS),
            gateway=frame_of([], columns=GATEWAY_COLUMNS),
            ledger=frame_of(
                [*booked(self.lines, less=self.misbooked), *self.at_bank], columns=LEDGER_COLUMNS
            ),
            instructions=None,
            settlement=frame_of(self.lines, columns=SETTLEMENT_COLUMNS),
            bank=BankSource(entries, (statement,), night=self.night) if self.covered else None,
        )
        return compared_night(sources, rules=rules, as_of=AS_OF, previous=previous)


def booked(lines: list[dict[str, Any]], *, less: int = 0) -> list[dict[str, Any]]:
    """Entries of every payout among some lines: the ledger has what the gateway says, or less."""
    return [
        {
            **{name: line[name] for name in ("merchant_id", "account_id", "currency")},
            "entry_id": f"B{number}",
            "entry_type": "payout" if line["net"] > 0 else "payout_reversal",
            "amount": abs(line["net"]) - less,
            "booked_at": f"{line['settled_on']}T12:00:00Z",
            "reference_no": line["batch_id"],
            "source": "l.csv",
            "line": number + 2,
        }
        for number, line in enumerate(lines)
        if line["entry_type"] == "payout"
    ]


def of_bank(result: Reconciliation) -> list[tuple[str, int, int]]:
    """Code, amount at the bank and effect of every break of the bank."""
    breaks = result.breaks[result.breaks["effect_bank"].notna()]
    names = ("code", "bank_amount", "effect_bank")
    rows = zip(*(breaks[name].tolist() for name in names), strict=True)
    return sorted((str(code), int(amount), int(effect)) for code, amount, effect in rows)


def t17(result: Reconciliation) -> list[int]:
    """The difference of every T15, T16 and T17."""
    return [one.difference for one in result.control_totals if one.id in {"T15", "T16", "T17"}]
