import pytest
from pydantic import ValidationError

from recon.config.declared import mistakes_of, problems_of
from recon.config.settings import AccountSettings, GatewaySettings

ACCOUNT = {"inbox": "/i", "reports": "/r"}
GROUPED = {"decimal_sign": ".", "thousands_sign": "."}


def told(model, given):
    """What is said of these settings."""
    with pytest.raises(ValidationError) as found:
        model.model_validate(given)
    return problems_of(found.value, source="x.toml")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"inbox": 5}, "inbox: must be a path in quotes"),
        ({"reports": None}, "reports: must be a path in quotes"),
        ({"inbx": "/i"}, "inbx: unknown table or key"),
        ({"auto_approve": "maybe"}, "auto_approve: must be true or false"),
        ({"settle_seconds": -1}, "settle_seconds: must be at least 0"),
        ({"settle_seconds": 1.5}, "settle_seconds: must be a whole number"),
        ({"settle_seconds": "x"}, "settle_seconds: must be a whole number"),
        ({"layouts": "x"}, "layouts: must be a list in square brackets"),
        ({"layouts": [{}, "x"]}, "layouts #2: must be a table of keys and values"),
        ({"layouts": [{"quote": "#"}]}, "layouts #1.quote: must be '\"' or \"'\""),
        ({"layouts": [{"columns": {"a": 5}}]}, "layouts #1.columns.a: must be text in quotes"),
        ({"layouts": [{"record": "x" * 101}]}, "layouts #1.record: has more than 100 characters"),
        (
            {"layouts": [{"done_file": "x"}]},
            "layouts #1.done_file: must be an ending such as .done",
        ),
        ({"layouts": [{"trailer": {}}]}, "layouts #1.trailer.word: is missing"),
        ({"layouts": [{"trailer": {"word": ""}}]}, "trailer.word: has fewer than 1 characters"),
        ({"layouts": [GROUPED]}, "layouts #1: thousands_sign and decimal_sign are both '.'"),
        ({"schedule": {"cron": "x", "zone": "UTC"}}, "schedule.cron: must be five fields of cron"),
        (
            {"expected": [{"file": "a", "sender": "b", "expected_by": "25:00"}]},
            "expected #1.expected_by: must be a time such as 02:00",
        ),
    ],
)
def test_a_mistake_says_what_must_stand_there(given, sentence):
    assert sentence in told(AccountSettings, ACCOUNT | given)


def test_a_value_is_never_told():
    with pytest.raises(ValidationError) as found:
        GatewaySettings.model_validate(
            {"profile": "s3cret", "proxy": 77777, "read_retry_seconds": "s3"}
        )
    assert all("s3" not in what and "7" not in what for _, what in mistakes_of(found.value))
