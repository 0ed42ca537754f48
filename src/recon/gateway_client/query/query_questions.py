"""What a query asks, and how its silence is understood: of orders, or of refunds."""

from recon.gateway_client.interface.described import GatewayInterface, ReplyPolicy
from recon.gateway_client.interface.rows import Credentials
from recon.gateway_client.interface.signing import sign
from recon.gateway_client.query.query_reading import QUERY, REFUND_QUERY, KeyKind, QueryReading
from recon.gateway_client.query.query_reply import OrderRecord, read_query_reply
from recon.gateway_client.query.query_work import GroupQuestion
from recon.gateway_client.query.refund_reply import RefundRecord, read_refund_reply, refund_query


def order_question(
    interface: GatewayInterface,
    *,
    policy: ReplyPolicy,
    credentials: Credentials,
    by_transaction: bool,
) -> GroupQuestion[OrderRecord]:
    """What the gateway knows of orders, by their own numbers or their transactions'."""
    described = interface.profile.query.retrievalTrans
    kind = KeyKind.TRANSACTION_ID if by_transaction else KeyKind.ORDER_NO
    signature = sign(QUERY, fields={}, credentials=credentials, interface=interface)
    return GroupQuestion(
        path=described.path,
        body=described.body,
        content_type=described.content_type,
        rows_max=described.rows_max,
        keys_field=(
            described.transaction_ids_field if by_transaction else described.order_nos_field
        ),
        reading=QueryReading(interface, policy, credentials, signature, kind),
        silence=interface.status_map.query.row_missing_when_asked_alone,
        read=read_query_reply,
    )


def refund_question(
    interface: GatewayInterface,
    *,
    policy: ReplyPolicy,
    credentials: Credentials,
    by_reference: bool,
) -> GroupQuestion[RefundRecord]:
    """Which refunds there are, by order number or by our own reference.

    Raises:
        InterfaceError: the profile has no refund search.
    """
    described = refund_query(interface)
    kind = KeyKind.REFUND_REFERENCE if by_reference else KeyKind.ORDER_NO
    signature = sign(REFUND_QUERY, fields={}, credentials=credentials, interface=interface)
    return GroupQuestion(
        path=described.path,
        body=described.body,
        content_type=described.content_type,
        rows_max=described.rows_max,
        keys_field=described.references_field if by_reference else described.order_nos_field,
        reading=QueryReading(interface, policy, credentials, signature, kind, REFUND_QUERY),
        silence=interface.status_map.query.refund_missing_when_asked_alone,
        read=read_refund_reply,
    )
