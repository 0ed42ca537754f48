import typing
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from recon.config.approvers import Approver
from recon.config.declared import WRITTEN, mistakes_of, problems_of
from recon.config.limits import Limits
from recon.config.notice_settings import Notice
from recon.config.retention import NightSchedule
from recon.config.rules import JournalAccounts, Rules
from recon.config.settings import AccountSettings, GatewaySettings

ACCOUNT = {"inbox": "/i", "reports": "/r"}
GROUPED = {"decimal_sign": ".", "thousands_sign": "."}


def told(model: type[BaseModel], given: dict[str, Any]) -> str:
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
    """Key and rule in words of a person who writes settings, without any of the program's."""
    assert sentence in told(AccountSettings, ACCOUNT | given)


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (GatewaySettings, {"profile": "x", "calls_per_second": "a", "queries_in_flight": 0}),
        (
            GatewaySettings,
            {"review_flags": "1", "ca_file": 3, "proxy": True, "read_patience_seconds": -1},
        ),
        (
            Limits,
            {"limits": {"EURO": {"item": "1"}, "EUR": {"item": "x", "night": -1, "day": True}}},
        ),
        (Rules, {"payment_status": {"1": "payed"}, "calendar": {"holidays": ["2026-13-01"]}}),
        (Rules, {"grace": {"hard_limit": 5}, "tolerance": {"EUR": {"absolute_minor_units": 1.5}}}),
        (Rules, {"window": {"opening_date": "x", "orders_days": 0}, "journal": {"accounts": 1}}),
        (
            Rules,
            {
                "severity": {"EUR": {"low": "x"}},
                "rate": {"USD.EUR": {"on": {"2026-13-01": "x", "5": "1"}}},
            },
        ),
        (Notice, {"verdicts": ["x"], "accounts": "a", "attach": 2, "address_env": 3}),
        (Approver, {"name": 3}),
        (NightSchedule, {"cron": "* * * * *"}),
    ],
)
def test_no_words_of_the_program_reach_people(model, given):
    """No settings file answers with `Input should be` or a pattern."""
    sentence = told(model, given)
    for word in ("Input", "String", "should", "valid ", "pattern", "^", "unable", "Field"):
        assert word not in sentence


def test_a_value_is_never_told():
    """It may be a secret in the wrong place."""
    with pytest.raises(ValidationError) as found:
        GatewaySettings.model_validate(
            {"profile": "s3cret", "proxy": 77777, "read_patience_seconds": "s3"}
        )
    assert all("s3" not in what and "7" not in what for _, what in mistakes_of(found.value))


def test_every_pattern_of_the_settings_is_told_by_an_example():
    """Who adds a pattern says here how it is written."""
    unexplained = [
        (model.__name__, name)
        for model in _models(AccountSettings, GatewaySettings, Limits, Rules, Notice, Approver)
        for name, field in model.model_fields.items()
        if any(getattr(rule, "pattern", None) for rule in field.metadata) and name not in WRITTEN
        if model is not JournalAccounts  # told by their table
    ]
    assert unexplained == []


def _models(*found: Any) -> set[type[BaseModel]]:
    """These models and all that stand inside them."""
    models: set[type[BaseModel]] = set()
    waiting = list(found)
    while waiting:
        kind = waiting.pop()
        waiting += typing.get_args(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in models:
            models.add(kind)
            waiting += [field.annotation for field in kind.model_fields.values()]
    return models
