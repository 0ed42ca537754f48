from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from recon.config.keys import SignKeys
from recon.config.rules import Rules
from recon.config.settings import GATEWAY_FILES, GatewaySettings, Settings, load_tables
from recon.gateway_client import Route
from recon.instructions.account import GatewayAccount, gateway_account
from recon.model.errors import ConfigurationError

CERTIFICATE = Path(__file__).parents[1] / "gateway_client" / "loopback.pem"


def account_with(base_url: str = "https://gateway.example.test", **changes: Any) -> GatewayAccount:
    """One account under changed settings of the gateway."""
    settings = Settings(
        database_url=SecretStr("sqlite://"),
        gateway_base_url=base_url,
        sign_keys=SignKeys.read({"RECON_SIGN_KEY": "sandbox"}, accounts={}),
        gateway=GatewaySettings.model_validate(changes),
        interface={name: load_tables(name, config_dir=None) for name in GATEWAY_FILES},
        accounts={},
        rules=Rules.of({}, source="test"),
        config_dir=None,
    )
    return gateway_account(settings, merchant_id="100042", account_id="100042001")


def test_the_way_to_the_gateway_is_what_the_settings_say() -> None:
    """Proxy, authority and our own certificate."""
    account = account_with(
        proxy="http://proxy.example.test:3128",
        ca_file=CERTIFICATE,
        client_certificate_file=CERTIFICATE,
    )

    assert account.route == Route(
        proxy="http://proxy.example.test:3128",
        ca_file=CERTIFICATE,
        client_certificate_file=CERTIFICATE,
    )
    assert account_with().route == Route()


@pytest.mark.parametrize(
    ("base_url", "changes", "says"),
    [
        ("http://gateway.example.test", {}, "must be https"),
        ("https://gateway.example.test", {"proxy": "proxy:3128"}, "http://host:port"),
        ("http://127.0.0.1:1", {"proxy": "http://127.0.0.1:2"}, "would read"),
        ("https://gateway.example.test", {"ca_file": "absent.pem"}, "absent.pem"),
        ("https://gateway.example.test", {"client_key_file": "k.pem"}, "no client certificate"),
    ],
)
def test_a_way_that_cannot_work_is_told_before_anything_is_sent(
    base_url: str, changes: dict[str, str], says: str
) -> None:
    """As an error of the configuration, which a person can cure."""
    with pytest.raises(ConfigurationError, match=says):
        account_with(base_url, **changes)
