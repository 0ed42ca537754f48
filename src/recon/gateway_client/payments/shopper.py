"""What a payment request says of a shopper and a purchase, in objects (2.2 to 2.5)."""

from decimal import Decimal
from typing import ClassVar

from recon.gateway_client.wire.private_fields import Amount, PrivateFields


class ItemPrice(PrivateFields):
    """The price in a cart item."""

    shown: ClassVar[frozenset[str]] = frozenset({"amount_usd", "amount_local_currency", "currency"})
    numbers: ClassVar[frozenset[str]] = frozenset({"amount_usd", "amount_local_currency"})
    amount_usd: Amount | None = None
    amount_local_currency: Amount | None = None
    currency: str = ""


class BasicItemData(PrivateFields):
    """What a cart item is (2.2)."""

    name: str = ""
    quantity: str = ""
    type: str = ""
    price: ItemPrice | None = None
    category: str = ""
    productId: str = ""  # noqa: N815 - the document's own name


class CartItem(PrivateFields):
    """One element of `cart_items`."""

    basic_item_data: BasicItemData


class AccountOwner(PrivateFields):
    """One element of `account_owner` (2.3): the shopper's account at the merchant."""

    numbers: ClassVar[frozenset[str]] = frozenset(
        {"created", "past_orders_count", "past_orders_sum"}
    )
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    account_id: str = ""
    lastLogin_ip: str = ""  # noqa: N815 - the document's own name
    registration_ip: str = ""
    created: Decimal | None = None
    past_orders_count: Decimal | None = None
    past_orders_sum: Amount | None = None


class Discount(PrivateFields):
    """One element of `total_discount`."""

    coupon_code_used: str = ""
    discount_type: str = ""


class MpiInfo(PrivateFields):
    """3-D Secure data that was obtained elsewhere."""

    eci: str = ""
    cavv: str = ""
    xid: str = ""
    dsTransID: str = ""  # noqa: N815 - the document's own name


class AdditionalInformation(PrivateFields):
    """One element of `additional_information`."""

    mpi_info: MpiInfo


class RecurringContract(PrivateFields):
    """The recurring contract that a payment makes (2.4)."""

    shown: ClassVar[frozenset[str]] = frozenset(
        {
            *("contract", "contract_name", "contract_amount", "interval", "interval_count"),
            *("contract_start", "contract_end", "price_id", "billing_cycle", "promotion_cycle"),
        }
    )
    numbers: ClassVar[frozenset[str]] = frozenset({"billing_cycle", "promotion_cycle"})
    contract: str = ""
    contract_name: str = ""
    contract_amount: str = ""
    interval: str = ""
    interval_count: str = ""
    contract_start: str = ""
    contract_end: str = ""
    price_id: str = ""
    billing_cycle: int | None = None
    promotion_cycle: int | None = None


class PersonBankAccountCode(PrivateFields):
    """The bank of a person's account."""

    code: str = ""
    name: str = ""


class PersonBankAccount(PrivateFields):
    """A person's bank account in an APM request."""

    account_type: str = ""
    account_number: str = ""
    branch_number: str = ""
    owner_document_number: str = ""
    owner_name: str = ""
    branch_country: str = ""
    currency: str = ""
    bank: PersonBankAccountCode | None = None


class DocumentLabels(PrivateFields):
    """`labels` of a person's documents."""

    person_bank_account_id: str = ""
    bank_account: PersonBankAccount | None = None


class PersonDocuments(PrivateFields):
    """`person.documents`."""

    file_type: str = ""
    file_data: str = ""
    file_url: str = ""
    labels: DocumentLabels | None = None


class PayingPerson(PrivateFields):
    """Who pays by an alternative method (2.5)."""

    document_number: str = ""
    document_type: str = ""
    social_name: str = ""
    email: str = ""
    phone_country_code: str = ""
    phone_area_code: str = ""
    phone_number: str = ""
    birth_date: str = ""
    net_monthly_average_income: str = ""
    address_street: str = ""
    address_number: str = ""
    address_complement: str = ""
    address_postal_code: str = ""
    address_city: str = ""
    address_state: str = ""
    address_country: str = ""
    fiscal_country: str = ""
    documents: PersonDocuments | None = None
