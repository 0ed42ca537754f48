"""The tables: one row's grain stands beside each. Money is BIGINT minor units + currency.

Instants are UTC. Text columns hold "" for "not given". Everything a night did can be rebuilt from
here; `history` is append-only and hash-chained (see `history`).
"""

from recon.store.schema.agreement_tables import agreement
from recon.store.schema.answer_tables import answer_part, charged_back_order
from recon.store.schema.approval_tables import approval, release, used_code, verdict, wrong_code
from recon.store.schema.bank_tables import bank_entry, bank_statement
from recon.store.schema.case_tables import contradiction
from recon.store.schema.endorsement_tables import endorsement
from recon.store.schema.evidence_tables import refund_search
from recon.store.schema.facts_tables import order_facts, order_facts_account
from recon.store.schema.input_tables import break_end, rules_version, run_input
from recon.store.schema.journal_tables import exported_journal
from recon.store.schema.money_tables import attempt, batch, history, instruction
from recon.store.schema.notification_tables import notification, notification_case
from recon.store.schema.order_tables import order_action, order_file, reject, reject_end
from recon.store.schema.resolution_tables import answer_file, break_answer
from recon.store.schema.result_tables import control_total, result_summary
from recon.store.schema.run_tables import run, run_source
from recon.store.schema.sending_tables import dry_batch, sending_switch
from recon.store.schema.settlement_tables import settled_sum, settlement_line
from recon.store.schema.sign_off_tables import sign_off

__all__ = [
    "agreement",
    "answer_file",
    "answer_part",
    "approval",
    "attempt",
    "bank_entry",
    "bank_statement",
    "batch",
    "break_answer",
    "break_end",
    "charged_back_order",
    "contradiction",
    "control_total",
    "dry_batch",
    "endorsement",
    "exported_journal",
    "history",
    "instruction",
    "notification",
    "notification_case",
    "order_action",
    "order_facts",
    "order_facts_account",
    "order_file",
    "refund_search",
    "reject",
    "reject_end",
    "release",
    "result_summary",
    "rules_version",
    "run",
    "run_input",
    "run_source",
    "sending_switch",
    "settled_sum",
    "settlement_line",
    "sign_off",
    "used_code",
    "verdict",
    "wrong_code",
]
