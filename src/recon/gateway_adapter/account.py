"""The gateway client as one account of ours uses it: interface, credentials, address."""

from dataclasses import dataclass

from recon.errors import ConfigurationError
from recon.gateway_client.addresses import checked_base_url
from recon.gateway_client.errors import AddressError, InterfaceError
from recon.gateway_client.interface import GatewayInterface
from recon.gateway_client.rows import Credentials
from recon.settings import Settings


@dataclass(frozen=True, slots=True)
class GatewayAccount:
    """What every call of one account needs."""

    base_url: str
    interface: GatewayInterface
    credentials: Credentials
    settings: Settings


def gateway_account(settings: Settings, *, merchant_id: str, account_id: str) -> GatewayAccount:
    """The gateway's interface and our credentials, checked before anything is sent.

    Raises:
        ConfigurationError: profiles, signature, status map or the base URL are wrong.
    """
    try:
        return GatewayAccount(
            base_url=checked_base_url(settings.gateway_base_url),
            interface=GatewayInterface.of(
                profiles=settings.interface["profiles"],
                signature=settings.interface["signature"],
                status_map=settings.interface["status_map"],
                profile=settings.gateway.profile,
            ),
            credentials=Credentials(merchant_id, account_id, settings.sign_key),
            settings=settings,
        )
    except (InterfaceError, AddressError) as error:
        raise ConfigurationError(str(error)) from error
