import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from recon.model.errors import ConfigurationError
from recon.sandbox import SandboxOptions, serving
from recon.sandbox.book import Book
from recon.sandbox.faults import FaultRule, draw, install, read_plan


def played(rule: dict[str, Any], calls: list[str], *, seed: int = 42) -> list[bool]:
    """For each call of `capture` on one order, whether the rule played."""
    book = Book(None)
    install(book, [FaultRule.model_validate({"kind": "fin"} | rule)], append=False)
    got = [
        bool(draw(book, operation="capture", rows=[(f"T{order}", order)], seed=seed))
        for order in calls
    ]
    book.close()
    return got


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, "yyyyyy"),
        ({"operation": "capture"}, "yyyyyy"),
        ({"operation": "refund"}, "nnnnnn"),
        ({"nth": 3}, "nnynnn"),
        ({"every": 2}, "nynyny"),
        ({"times": 2}, "yynnnn"),
        ({"every": 2, "times": 1}, "nynnnn"),
        ({"order_no": "a?"}, "ynnyny"),
        ({"order_no": "a?", "nth": 2}, "nnnynn"),
        ({"transaction_id": "Tb*"}, "nyynyn"),
        ({"transaction_id": "Tb*", "order_no": "b2"}, "nnynnn"),
        ({"probability": 0}, "nnnnnn"),
        ({"probability": 1}, "yyyyyy"),
    ],
)
def test_a_rule_chooses_its_calls(rule: dict[str, Any], expected: str) -> None:
    """By number, by interval, by pattern, at most so often: counted over the calls it is about."""
    calls = ["a1", "b1", "b2", "a2", "b3", "a3"]
    assert "".join("ny"[hit] for hit in played(rule, calls)) == expected


def test_chance_depends_on_row_and_attempt_never_on_the_order_of_calls() -> None:
    """The same rows asked in another order meet the same faults; another seed meets others."""
    orders = [f"o{number}" for number in range(40)]
    rule = {"probability": 0.5}
    forward = dict(zip(orders, played(rule, orders), strict=True))
    backward = dict(zip(orders[::-1], played(rule, orders[::-1]), strict=True))
    assert forward == backward
    assert 5 < sum(forward.values()) < 35
    assert played(rule, orders) != played(rule, orders, seed=43)
    attempts = played(rule, ["same"] * 40)
    assert 5 < sum(attempts) < 35


def test_rules_are_read_from_json_and_toml(tmp_path: Path) -> None:
    """Both forms give the same rules."""
    rule = {"operation": "refund", "kind": "reset", "nth": 2, "when": "before"}
    as_json, as_toml = tmp_path / "plan.json", tmp_path / "plan.toml"
    as_json.write_text(json.dumps([rule]))
    as_toml.write_text(
        '[[rules]]\noperation = "refund"\nkind = "reset"\nnth = 2\nwhen = "before"\n'
    )
    assert read_plan(as_json) == read_plan(as_toml) == [FaultRule.model_validate(rule)]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[{", "cannot be read"),
        ('[{"kind": "explode"}]', "rule 1, kind"),
        ('[{"kind": "fin"}, {"kind": "fin", "nht": 1}]', "rule 2, nht: a rule has no such key"),
        ('[{"kind": "fin", "status": 500}]', "rule 1, status: kind fin does not use it"),
        ('[{"kind": "lag", "when": "before"}]', "rule 1, when: kind lag is never before"),
        ('[{"kind": "part", "then": "lag"}]', "rule 1, then: one of empty"),
        ('[{"kind": "silence", "seconds": -1}]', "rule 1, seconds: not below 0"),
        ('[{"kind": "fin", "operation": "captur"}]', "operation: 'captur' is none of"),
        ('[{"kind": "fin", "nth": 0}]', "rule 1, nth"),
        ("7", "a fault plan is a list"),
        ("[7]", "rule 1"),
    ],
)
def test_a_wrong_plan_is_refused_by_rule_and_field(tmp_path: Path, text: str, named: str) -> None:
    """The message names the file, the rule and the field."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=named) as caught:
        read_plan(path, operations=["capture"])
    assert str(path) in str(caught.value)


def test_a_plan_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A missing file is a mistake of the call."""
    with pytest.raises(ConfigurationError, match="nowhere"):
        read_plan(tmp_path / "nowhere.json")


def test_the_endpoint_replaces_or_appends(gateway: Any) -> None:
    """A list replaces; `append` adds; one rule alone is a plan; a wrong one changes nothing."""
    post = gateway.http.post
    assert post("/_sandbox/faults", json=[{"kind": "fin"}] * 2).json() == {"rules": 2}
    more = {"append": True, "rules": [{"kind": "reset", "operation": "refund"}]}
    assert post("/_sandbox/faults", json=more).json() == {"rules": 3}
    assert post("/_sandbox/faults?append=1", json={"kind": "html"}).json() == {"rules": 4}
    wrong = post("/_sandbox/faults", json=[{"kind": "explode"}])
    assert wrong.status_code == 400
    assert "kind" in wrong.json()["message"]
    assert len(gateway.http.get("/_sandbox/faults").json()["rules"]) == 4
    assert post("/_sandbox/faults", json=[]).json() == {"rules": 0}


def test_a_plan_of_the_command_line_is_in_force_and_survives_a_restart(tmp_path: Path) -> None:
    """Started again on its state with the same plan, the counting goes on instead of beginning."""
    plan = tmp_path / "plan.json"
    plan.write_text('[{"operation": "capture", "kind": "status", "nth": 2}]')
    options = SandboxOptions(orders=5, state=tmp_path / "s.sqlite", fault_plan=plan)
    seen = []
    for _ in range(3):
        with serving(options) as sandbox:
            url = f"{sandbox.base_url}/v1/capture"
            seen.append(httpx.post(url, json={}, trust_env=False).status_code)
    assert seen == [200, 500, 200]
