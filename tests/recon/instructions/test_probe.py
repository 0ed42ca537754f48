import asyncio
from datetime import UTC, datetime
from typing import Any

from recon.config.settings import load_settings
from recon.gateway_client.interface import SignatureState
from recon.gateway_client.query_records import QUERY
from recon.instructions.account import GatewayAccount, gateway_account
from recon.sandbox import SandboxOptions, serving
from recon.steps.care.gateway_doctor import probe, rules_to_try


def place_of(base_url: str, **variables: str) -> GatewayAccount:
    """The demo's account at a gateway."""
    settings = load_settings(
        {
            "RECON_GATEWAY_BASE_URL": base_url,
            "RECON_SIGN_KEY": "sandbox",
            "RECON_DATABASE_URL": "sqlite:////nowhere/recon.sqlite",
            **variables,
        }
    )
    return gateway_account(settings, merchant_id="100042", account_id="100042001")


def asked(place: GatewayAccount) -> Any:
    """One probe under the configured rule."""
    clock = lambda: datetime.now(UTC)  # noqa: E731 - the machine's clock, handed in
    return asyncio.run(probe(place, rule=place.interface.signature, clock=clock))


def test_a_gateway_says_what_it_thinks_of_our_question() -> None:
    """Accepted, refused for the key, and silent are told apart."""
    with serving(SandboxOptions(orders=5)) as sandbox:
        right = asked(place_of(sandbox.base_url))
        wrong = asked(place_of(sandbox.base_url, RECON_SIGN_KEY="other"))

    assert (right.word, right.signature) == ("accepted", SignatureState.VALID)
    assert wrong.word == "signature"
    assert asked(place_of("http://127.0.0.1:9")).word == "silent"


def test_every_other_rule_is_tried_once_after_the_configured_one() -> None:
    """The configured rule comes first; no rule is tried twice."""
    configured = place_of("http://127.0.0.1:9").interface.signature
    tried = [rule for _, rule in rules_to_try(configured)]

    assert tried[0] == configured
    assert len(tried) == len({(r.algorithm, r.hex_case, r.templates[QUERY]) for r in tried}) == 8
