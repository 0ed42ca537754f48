"""What the desk signed holds word for word, and nothing else does."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from recon.desk.endorsement import (
    TAG,
    Endorsement,
    Kind,
    Signed,
    canonical,
    endorse,
    instant,
    opened,
    row_problem,
    state_of_decision,
    terms_digest,
)
from recon.model.errors import EndorsementError

KEY = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
TERMS: Mapping[str, str | int] = {"kind": "refund", "amount": 100, "currency": "EUR"}
WORD = Endorsement(
    kind=Kind.APPROVAL,
    subject="0123456789abcdef",
    items={"i1": terms_digest(TERMS)},
    says={},
    person="jo",
    name="Jo Ähn",
    role="approver",
    proven=True,
    at=instant(NOW),
    valid_until=instant(NOW + timedelta(days=1)),
    sequence=1,
    nonce="00" * 16,
    database="11" * 32,
)
BACK = replace(WORD, kind=Kind.TAKEN_BACK, says={"of": "approval"}, sequence=2, valid_until="")
SECOND = replace(WORD, person="kim", name="Kim Bell", sequence=2)


def problem(*statements, terms=TERMS, days=0):
    at = NOW + timedelta(days=days)
    return row_problem("i1", terms=terms, endorsements=statements, must_be_proven=True, at=at)


def test_the_document_is_one_text():
    """Whoever writes a checker in another language finds these bytes."""
    assert canonical(replace(WORD, items={"b": "2", "a": "1"})) == (
        '{"at":"2026-11-20T03:00:00.000000+00:00","database":"'
        + "11" * 32
        + '","items":{"a":"1","b":"2"},"kind":"approval",'
        '"name":"Jo Ähn","nonce":"00000000000000000000000000000000","person":"jo","proven":true,'
        '"role":"approver","says":{},"sequence":1,"subject":"0123456789abcdef",'
        '"valid_until":"2026-11-21T03:00:00.000000+00:00"}'
    )


def test_the_signature_is_plain_ed25519_over_tag_and_text():
    """A stranger's library verifies it from the documented bytes."""
    signed = endorse(WORD, key=KEY)
    message = b"recon endorsement v2\n" + signed.document.encode()
    KEY.public_key().verify(bytes.fromhex(signed.signature), message)
    assert message.startswith(TAG)
    assert opened(signed, key=KEY.public_key()) == WORD


@pytest.mark.parametrize("name", sorted(json.loads(canonical(WORD))))
def test_no_member_can_be_changed(name):
    signed = endorse(WORD, key=KEY)
    document = json.loads(signed.document)
    other = {"items": {}, "says": {"a": "b"}, "proven": False, "sequence": 7, "kind": "release"}
    document[name] = other.get(name, "other")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    with pytest.raises(EndorsementError, match="signature is not the desk's"):
        opened(replace(signed, document=text), key=KEY.public_key())


def test_another_key_is_not_the_desk():
    """Who has no private key of the desk makes no endorsement."""
    forged = endorse(WORD, key=Ed25519PrivateKey.generate())
    with pytest.raises(EndorsementError):
        opened(forged, key=KEY.public_key())


@pytest.mark.parametrize("text", ["{}", "[]", "x", '{"kind":"approval"}', "{ }", "1", "null"])
def test_what_is_signed_and_no_endorsement_is_refused(text):
    """A signature alone makes no word of it."""
    signed = Signed(text, KEY.sign(TAG + text.encode()).hex(), "")
    with pytest.raises(EndorsementError):
        opened(signed, key=KEY.public_key())


@pytest.mark.parametrize("signature", ["", "zz", "00" * 64, "00"])
def test_what_is_no_signature_is_refused(signature):
    """Any text may stand in the column."""
    with pytest.raises(EndorsementError):
        opened(replace(endorse(WORD, key=KEY), signature=signature), key=KEY.public_key())


def test_two_people_cover_a_row():
    """The control lets through what two different people approved, in whatever order."""
    assert problem(WORD, SECOND) == ""
    assert problem(WORD, replace(SECOND, role="reviewer")) == ""
    assert problem(replace(WORD, role="reviewer"), SECOND) == ""


def test_a_word_is_taken_back_by_its_person_until_it_counts():
    """Somebody else takes nothing back, nothing else is taken back, and it may be said anew."""
    third = replace(SECOND, sequence=3)
    assert problem(WORD, replace(BACK, person="kim", name="Kim Bell"), third) == ""
    assert problem(WORD, replace(BACK, subject="another list"), third) == ""
    assert problem(WORD, replace(BACK, says={"of": "override"}), third) == ""
    assert problem(WORD, SECOND, replace(BACK, sequence=3)) == ""
    assert problem(WORD, BACK, third, replace(WORD, sequence=4)) == ""


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ((), "for nobody"),
        ((WORD,), "for Jo Ähn alone"),
        ((WORD, replace(WORD, sequence=2, nonce="11" * 16)), "for Jo Ähn alone"),
        ((WORD, replace(SECOND, subject="another list")), "alone"),
        ((WORD, replace(SECOND, kind=Kind.RELEASE)), "alone"),
        ((WORD, SECOND, replace(SECOND, kind=Kind.REJECTION, sequence=3)), "for nobody"),
        ((WORD, replace(SECOND, items={"i2": terms_digest(TERMS)})), "alone"),
        ((WORD, replace(SECOND, proven=False)), "alone"),
        ((replace(WORD, role="reviewer"), replace(SECOND, role="reviewer")), "no approver"),
        ((WORD, replace(BACK, sequence=2), replace(SECOND, sequence=3)), "was taken back"),
        ((WORD, replace(SECOND, valid_until=instant(NOW - timedelta(seconds=1)))), "alone"),
    ],
)
def test_less_than_two_people_cover_no_row(statements, said):
    """Both must be different people, proven, of one list, in time, an approver among them."""
    assert said in problem(*statements)


@pytest.mark.parametrize("changed", [{"amount": 101}, {"currency": "USD"}, {"payee_digest": "x"}])
def test_other_terms_are_not_covered(changed):
    """One minor unit more is another row."""
    assert "for nobody" in problem(WORD, SECOND, terms={**TERMS, **changed})


def test_blank_terms_are_no_terms():
    """A member that a later release adds does not undo what was approved without it."""
    assert problem(WORD, SECOND, terms={**TERMS, "again_for": "", "payment_amount": 0}) == ""


def agreed(*statements):
    """Why no two agree on the list, and whose statements wait."""
    found = state_of_decision(statements, WORD.kind, subject=WORD.subject, must_be_proven=True)
    return found.problem, [each.person for each in found.waiting]


@pytest.mark.parametrize("name", ["JO  AHN", "\uff2ao Ahn", "jo\u200b ahn"])
def test_one_person_under_two_names_is_one(name):
    """A short name that was changed, or a full one typed otherwise, makes nobody two people."""
    statements = [replace(WORD, name="Jo Ahn"), replace(SECOND, person="jo.ahn")]
    assert agreed(*statements) == ("", [])
    problem, waiting = agreed(statements[0], replace(statements[1], name=name))
    assert ("alone" in problem, waiting) == (True, ["jo.ahn"])


def test_a_word_that_had_run_out_is_no_first_one():
    """The second says the same while the first stands, or is the first of another agreement."""
    short = replace(WORD, valid_until=SECOND.at)
    assert agreed(short, SECOND) == ("", [])
    late = replace(SECOND, at=instant(NOW + timedelta(days=40)))
    problem, waiting = agreed(short, late)
    assert ("had run out" in problem, waiting) == (True, ["jo", "kim"])


def test_what_waits_ends_with_its_person_or_a_rejection():
    """Taken back, said again, rejected by anybody, or of somebody who left."""
    no = replace(SECOND, kind=Kind.REJECTION, subject="part of it", sequence=2)
    left = replace(SECOND, kind=Kind.TAKEN_BACK, says={"of": "approval", "whose": "jo"})
    assert agreed(WORD)[1] == ["jo"]
    assert agreed(WORD, replace(WORD, sequence=2))[1] == ["jo"]
    for ends in (BACK, no, left):
        assert agreed(WORD, ends)[1] == []
        assert agreed(WORD, ends, replace(SECOND, sequence=3))[1] == ["kim"]
    assert agreed(WORD, replace(no, items={"i2": "00"}))[1] == ["jo"]
    assert agreed(WORD, replace(left, says={"of": "approval", "whose": "lee"}))[1] == ["jo"]


def test_after_two_agreed_the_next_is_a_first_one():
    """What is agreed stays so, and nobody completes it twice."""
    third = replace(WORD, person="lee", name="Lee Fox", sequence=3)
    assert agreed(WORD, SECOND, third) == ("", ["lee"])
    found = state_of_decision(
        [WORD, SECOND, third, replace(WORD, sequence=4)],
        WORD.kind,
        subject=WORD.subject,
        must_be_proven=True,
    )
    assert [[each.person for each in pair] for pair in found.pairs] == [
        ["jo", "kim"],
        ["lee", "jo"],
    ]


@pytest.mark.parametrize(
    ("kind", "first", "second", "waiting"),
    [
        (Kind.DECISION, {"verdict": "applied"}, {"verdict": "not_applied"}, "jo kim"),
        (Kind.DECISION, {"verdict": "applied"}, {"verdict": "applied", "evidence": "x"}, ""),
        (Kind.CLOSE, {"digest": "1", "role": "reviewer"}, {"digest": "2"}, "kim"),
        (Kind.CLOSE, {"role": "reviewer"}, {"role": "approver"}, ""),
        (Kind.CLOSE, {"role": "reviewer"}, {"role": "reviewer"}, "kim"),
        (Kind.SIGN_OFF, {"workbook_sha256": "1"}, {"workbook_sha256": "2"}, "kim"),
        (Kind.WRITE_OFF, {"minor_units": "1"}, {"minor_units": "2"}, "kim"),
        (Kind.WRITE_OFF, {"currency": "EUR"}, {"currency": "USD"}, "kim"),
    ],
)
def test_two_people_say_the_same_thing(kind, first, second, waiting):
    """Opposite verdicts both stand; of anything else what changed ends what was said before."""
    statements = [replace(WORD, kind=kind, says=first), replace(SECOND, kind=kind, says=second)]
    found = state_of_decision(statements, kind, subject=WORD.subject, must_be_proven=True)
    assert [each.person for each in found.waiting] == waiting.split()
    assert bool(found.problem) == bool(waiting)
