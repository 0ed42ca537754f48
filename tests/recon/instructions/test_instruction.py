import json
from dataclasses import fields, replace

import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr

from recon.instructions.instruction import ATTESTED, FOLLOWS, Instruction, terms_of
from recon.instructions.masking import masked
from recon.instructions.sealing import Seal, masked_account
from recon.model.errors import ConfigurationError
from recon.model.terms import InstructionKind, InstructionState
from tests.recon.instructions.sample_instructions import INSTRUCTION


def test_every_state_has_its_followers():
    assert set(FOLLOWS) == set(InstructionState)
    assert all(following <= set(InstructionState) for following in FOLLOWS.values())


def test_nothing_leads_back_from_doubt_to_sending():
    reached = {InstructionState.IN_DOUBT}
    while True:
        more = {state for seen in reached for state in FOLLOWS[seen]} | reached
        if more == reached:
            break
        reached = more

    assert not reached & {InstructionState.APPROVED, InstructionState.IN_FLIGHT}


PAYOUT = replace(
    INSTRUCTION,
    kind=InstructionKind.PAYOUT,
    amount=500,
    currency="EUR",
    payee="DE…3000",
    payee_digest="a" * 64,
    gateway_request_id="0b5f",
    sealed="gAAAA",
    reason="for Ann",
)


def test_every_field_is_bound_or_known_to_change_nothing_of_what_is_sent():
    """A new field of an instruction is one or the other, by name."""
    names = {field.name for field in fields(Instruction)}
    not_sent = {
        *("instruction_id", "natural_key", "file_id", "line", "state", "hold", "attempts"),
        *("baseline_status", "approved_by", "in_doubt_since", "message", "refund_reference_id"),
        *("planned_at", "approved_at", "sent_at", "outcome_at"),
    }

    assert names == {*ATTESTED} | not_sent


def test_what_people_wrote_and_what_is_sealed_is_not_in_the_history_in_clear():
    """The history cannot be erased: it has digests of them."""
    told = str(terms_of(PAYOUT))

    assert "for Ann" not in told
    assert "gAAAA" not in told


def _seal():
    return Seal(SecretStr(Fernet.generate_key().decode()))


def test_only_its_own_key_opens_a_seal():
    seal = _seal()
    sealed = seal.close("DE89370400440532013000")

    assert seal.open(sealed) == "DE89370400440532013000"
    with pytest.raises(ConfigurationError, match="another RECON_SEAL_KEY"):
        _seal().open(sealed)


def test_a_digest_needs_the_key():
    seal = _seal()

    assert seal.digest("DE89") == seal.digest("DE89") != _seal().digest("DE89")


@pytest.mark.parametrize("key", [None, SecretStr("short")])
def test_a_missing_or_wrong_key_says_what_to_do(key):
    with pytest.raises(ConfigurationError, match="RECON_SEAL_KEY") as caught:
        Seal(key)
    assert "short" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "shown"),
    [("DE89 3704 0044 0532 0130 00", "DE…3000"), ("12345678", "…"), ("", "…")],
)
def test_an_account_is_shown_by_its_ends_only(number, shown):
    assert masked_account(number) == shown


CARD = b"4111111111111111"


def test_our_own_ids_stay_readable():
    assert masked(b'{"id":"' + CARD + b'"}', known=b"..." + CARD + b"...") == (
        b'{"id":"' + CARD + b'"}'
    )


def test_what_is_named_for_a_person_or_a_card_is_not_kept():
    text = (
        b'{"security_code": "917", "CVV":917, "birth_date" : "1980-02-29", "order_no": "A\\"1",'
        b' "last_name": "O\\"Quill", "note": "to DE89370400440532013000", "status": "1"}'
    )
    assert json.loads(masked(text, known=b"")) == {
        "security_code": "***",
        "CVV": "***",
        "birth_date": "***",
        "order_no": 'A"1',
        "last_name": "***",
        "note": "to DE***3000",
        "status": "1",
    }


def test_bytes_that_are_no_text_come_out_as_they_went_in():
    everything = bytes(range(256))
    assert masked(everything, known=b"") == everything


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            '{"m": "4111\u20111111\u20111111\u20111111"}',
            '{"m": "4111\u201111**\u2011****\u20111111"}',
        ),
        (
            r'{"m": "4111\u20111111\u20111111\u20111111"}',
            '{"m": "4111\u201111**\u2011****\u20111111"}',
        ),
        (r'{"m": "caf\u00e9 cvv 917"}', r'{"m": "caf\u00e9 cvv ***"}'),
    ],
)
def test_gaps_of_other_kinds_hide_no_card(text, kept):
    """Nor do digits and gaps that JSON wrote by their numbers, nor the code beside its name."""
    assert masked(text.encode(), known=b"").decode() == kept
