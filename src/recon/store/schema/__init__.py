"""The tables: one row's grain stands beside each. Money is BIGINT minor units + currency.

Instants are UTC. Text columns hold "" for "not given". Everything a night did can be rebuilt from
here; `history` is append-only and hash-chained (see `history`).
"""

from recon.store.schema.agreements import agreement
from recon.store.schema.answers import observation, query_key
from recon.store.schema.approvals import approval, release, used_code, verdict, wrong_code
from recon.store.schema.cases import contradiction
from recon.store.schema.endorsements import endorsement
from recon.store.schema.evidence import doubt_clock, refund_search
from recon.store.schema.inputs import break_end, instruction_version, rules_version, run_input
from recon.store.schema.journals import exported_journal
from recon.store.schema.ledger import ledger_entry
from recon.store.schema.money import attempt, batch, history, instruction
from recon.store.schema.notifications import notification, notification_case
from recon.store.schema.orders import order_action, order_file, order_row, reject, reject_end
from recon.store.schema.resolutions import answer_file, break_answer
from recon.store.schema.results import control_total, result_effect, result_row, result_summary
from recon.store.schema.runs import run, run_source
from recon.store.schema.sending import dry_batch, sending_switch
from recon.store.schema.settlement import settlement_line
from recon.store.schema.sign_off import sign_off

__all__ = [
    "agreement",
    "answer_file",
    "approval",
    "attempt",
    "batch",
    "break_answer",
    "break_end",
    "contradiction",
    "control_total",
    "doubt_clock",
    "dry_batch",
    "endorsement",
    "exported_journal",
    "history",
    "instruction",
    "instruction_version",
    "ledger_entry",
    "notification",
    "notification_case",
    "observation",
    "order_action",
    "order_file",
    "order_row",
    "query_key",
    "refund_search",
    "reject",
    "reject_end",
    "release",
    "result_effect",
    "result_row",
    "result_summary",
    "rules_version",
    "run",
    "run_input",
    "run_source",
    "sending_switch",
    "settlement_line",
    "sign_off",
    "used_code",
    "verdict",
    "wrong_code",
]
