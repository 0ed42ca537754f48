"""The sixteen variants of the protocol: the good ones stay good, and the bad ones stay bad."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from protocol_model import Variant, explore

DUPLICATE, FALSE, GOOD = "duplicate", "false confirmation", ""
STATUS_ONLY = {"ledger_in_baseline": False}
LEASE = {"lease": True, "replan": True}
PEOPLE = {"portal": True, "inferred_to_people": True}

VARIANTS = {
    "A retry on time-out": (Variant(retry_on_timeout=True), DUPLICATE),
    "B intent written with the send": (Variant(write_after_send=True), DUPLICATE),
    "C query at once, send again": (Variant(query_at_once=True), DUPLICATE),
    "D lease expires while the owner sleeps": (Variant(**LEASE), DUPLICATE),
    "E D with a check before the send": (Variant(**LEASE, check_before_send=True), DUPLICATE),
    "F D with a check atomic with the send": (
        Variant(**LEASE, check_before_send=True, check_is_atomic=True),
        GOOD,
    ),
    "G owner gone before takeover": (Variant(replan=True), GOOD),
    "H lease only, nothing sent again": (Variant(lease=True), GOOD),
    "I two at once, status only": (
        Variant(instructions=2, serialised=False, **STATUS_ONLY),
        FALSE,
    ),
    "J one at a time, stale baseline": (Variant(instructions=2, **STATUS_ONLY), FALSE),
    "K J with our own ledger in the baseline": (Variant(instructions=2), GOOD),
    "L K with three instructions": (Variant(instructions=3), GOOD),
    "M K with a refund by hand": (Variant(instructions=2, portal=True), FALSE),
    "N M, inferred goes to people": (Variant(instructions=2, **PEOPLE), GOOD),
    "O N with three of each": (Variant(instructions=3, workers=3, **PEOPLE), GOOD),
    "P H and N with three of each": (
        Variant(instructions=3, workers=3, lease=True, **PEOPLE),
        GOOD,
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_keeps_its_verdict(name: str) -> None:
    """A change of the model that makes a bad protocol look good is itself found."""
    variant, expected = VARIANTS[name]

    assert explore(variant).problem == expected


def test_what_we_built_is_among_the_good_ones() -> None:
    """Nothing is sent again by itself, our ledger is in the baseline, refunds go to people."""
    ours = Variant(instructions=2, lease=True, portal=True, inferred_to_people=True)

    assert explore(ours).problem == GOOD
