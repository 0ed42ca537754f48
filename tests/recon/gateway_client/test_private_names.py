from recon.gateway_client.query_records import ORDER_FIELDS, REFUND_FIELDS, _extra
from recon.privacy.foreign_text import PRIVATE_NAMES, is_private, without_private

PERSON = {"birth_date": "1980-02-29", "Document": "4417119900", "personal_id_number": 917}


def test_what_is_private_goes_from_every_depth() -> None:
    """The name stays, the value does not, whatever its type; all else is as it was."""
    kept = without_private({"note": "ok", "more": [PERSON, {"amount": "1.00"}, 7, None]})
    hidden = dict.fromkeys(PERSON, "***")
    assert kept == {"note": "ok", "more": [hidden, {"amount": "1.00"}, 7, None]}


def test_an_unknown_field_of_a_query_keeps_its_name_only() -> None:
    """Fields that the document does not list are kept, but for the values of private ones."""
    row = {"order_no": "A-1", "acquirer": "bank-1", **PERSON, "payer": {"last_name": "Quill"}}
    kept = _extra(row, listed={"order_no"})
    assert kept == {
        "acquirer": "bank-1",
        **dict.fromkeys(PERSON, "***"),
        "payer": '{"last_name": "***"}',
    }


def test_no_field_that_a_query_needs_is_private() -> None:
    """The names cannot take away what an outcome is read from."""
    assert PRIVATE_NAMES.isdisjoint({*ORDER_FIELDS, *REFUND_FIELDS})
    assert not is_private("amount")
    assert is_private(" IBAN ")
