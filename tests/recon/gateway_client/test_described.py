import copy
from typing import Any

import pytest

from recon.gateway_client import GatewayInterface, InterfaceError


def test_the_shipped_profiles_have_the_documented_limits(tables: dict[str, Any]) -> None:
    """50, 50, 50, 100, 100; base has no bound on characters, extended has 1,000."""
    base = GatewayInterface.of(**tables)
    extended = GatewayInterface.of(**tables, profile="extended")

    assert {name: one.rows_max for name, one in base.profile.batch.items()} == {
        "capture": 50,
        "cancel": 50,
        "refund": 50,
        "review": 100,
    }
    assert base.profile.query.retrievalTrans.rows_max == 100
    assert (base.profile.query_characters_max, extended.profile.query_characters_max) == (0, 1000)


def test_the_users_layer_wins_over_every_profile(tables: dict[str, Any]) -> None:
    """Base < extended < user."""
    mine = tables | {"profiles": tables["profiles"] | {"user": {"query_characters_max": 500}}}

    assert GatewayInterface.of(**mine, profile="extended").profile.query_characters_max == 500


@pytest.mark.parametrize(
    ("file", "path", "value", "says"),
    [
        ("profiles", ["base", "batch", "capture", "rowsmax"], 5, "capture.rowsmax"),
        ("profiles", ["base", "batch", "capture", "rows_max"], 0, "capture.rows_max"),
        ("profiles", ["basic"], {}, "basic"),
        ("profiles", ["base", "grammar", "order_no"], "[", "grammar.order_no"),
        ("profiles", ["base", "batch", "void"], None, "void"),
        ("signature", ["base", "algorithm"], "md5", "algorithm"),
        ("signature", ["base", "salt"], "x", "salt"),
        ("signature", ["base", "templates"], {"refund": ["merchant_id"]}, "capture"),
        ("status_map", ["base", "row_status", "refund", "5"], "maybe", "row_status.refund.5"),
        ("status_map", ["base", "query", "timezone"], "Mars/Olympus", "query.timezone"),
        ("status_map", ["base", "refusals", "before_processing_http"], [500], "before_processing"),
    ],
)
def test_what_is_wrong_in_a_table_is_refused_by_name(
    tables: dict[str, Any], file: str, path: list[str], value: object, says: str
) -> None:
    """File and key stand in the message."""
    wrong = copy.deepcopy(tables)
    table = wrong[file]
    for name in path[:-1]:
        table = table[name]
    table[path[-1]] = copy.deepcopy(table["capture"]) if value is None else value

    with pytest.raises(InterfaceError, match=says) as caught:
        GatewayInterface.of(**wrong)

    assert ".toml" in str(caught.value)


def test_an_unknown_profile_is_refused(tables: dict[str, Any]) -> None:
    """Only base and extended exist."""
    with pytest.raises(InterfaceError, match="'sandbox' is not a profile"):
        GatewayInterface.of(**tables, profile="sandbox")
