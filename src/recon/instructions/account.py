"""The gateway client as one account of ours uses it: interface, credentials, address."""

from dataclasses import dataclass

from pydantic import SecretStr, ValidationError

from recon.config.mistakes import problems_of
from recon.config.settings import Settings
from recon.gateway_client import AsyncGateway, Connection, QueryLimits
from recon.gateway_client.addresses import DIRECT, Route, checked_base_url, checked_proxy, trust
from recon.gateway_client.errors import AddressError, InterfaceError
from recon.gateway_client.interface import GatewayInterface
from recon.gateway_client.signing import Credentials
from recon.instructions.signer_socket import SignerSocket
from recon.model.errors import ConfigurationError
from recon.model.words import Clock

MESSAGES = "payment_reply"
"""The template of signature.toml by which notifications are signed (A-13)."""


@dataclass(frozen=True, slots=True)
class GatewayAccount:
    """What every call of one account needs."""

    base_url: str
    interface: GatewayInterface
    credentials: Credentials
    settings: Settings
    route: Route

    def client(self, *, clock: Clock) -> AsyncGateway:
        """The client of this account, as the settings want it."""
        gateway, credentials = self.settings.gateway, self.credentials
        connection = Connection(
            base_url=self.base_url,
            merchant_id=credentials.merchant_id,
            account_id=credentials.account_id,
            sign_key=credentials.sign_key,
            interface=self.interface,
            policy=gateway.reply_signatures,
            limits=QueryLimits(
                calls_per_second=gateway.calls_per_second,
                in_flight=gateway.queries_in_flight,
                patience_seconds=gateway.read_patience_seconds,
            ),
            connect_seconds=gateway.connect_timeout_seconds,
            deadline_seconds=gateway.deadline_seconds,
            route=self.route,
            clock=clock,
        )
        return AsyncGateway(connection)

    @property
    def signed_in_messages(self) -> frozenset[str]:
        """The fields that the signature of a notification covers (A-13)."""
        return frozenset(self.interface.signature.templates[MESSAGES])


def gateway_account(settings: Settings, *, merchant_id: str, account_id: str) -> GatewayAccount:
    """The gateway's interface and our credentials, checked before anything is sent.

    Raises:
        ConfigurationError: profiles, signature, status map, base URL, key, proxy or certificates
            are wrong.
    """
    gateway = settings.gateway
    key = _key_of(settings, account=f"{merchant_id}/{account_id}")
    route = Route(
        proxy=gateway.proxy,
        ca_file=gateway.ca_file,
        client_certificate_file=gateway.client_certificate_file,
        client_key_file=gateway.client_key_file,
    )
    try:
        base_url = checked_base_url(settings.gateway_base_url)
        checked_proxy(route, base_url=base_url)
        if route != DIRECT:
            trust(base_url, route=route)  # files that cannot be read are told before a night starts
        return GatewayAccount(
            base_url=base_url,
            interface=GatewayInterface.of(**settings.interface),
            credentials=Credentials(merchant_id, account_id, key),
            settings=settings,
            route=route,
        )
    except (InterfaceError, AddressError) as error:
        raise ConfigurationError(_told(error)) from error


def _key_of(settings: Settings, *, account: str) -> SecretStr | SignerSocket:
    """The account's key, or who holds it and is waited for as long as for the gateway."""
    if settings.sign_keys.signer is None:
        return settings.sign_keys.of(account)
    return SignerSocket(
        settings.sign_keys.signer, patience_seconds=settings.gateway.deadline_seconds
    )


def _told(error: InterfaceError | AddressError) -> str:
    """What is wrong, in people's words where the client tells those of programmers."""
    if isinstance(error.__cause__, ValidationError):
        return problems_of(error.__cause__, source=str(error).partition(": ")[0])
    return str(error)
