import pytest

from recon.config.file_layouts import FileLayout, WrittenNumbers
from recon.files.kinds.layouts import refuse_wrong_layout, refuse_wrong_layouts
from recon.files.typing.table_schema import LEDGER, ORDER_FILE, SETTLEMENT
from recon.model.errors import ConfigurationError


def layout(**columns):
    return FileLayout(files="*.csv", columns=columns)


def test_a_column_of_either_kind_of_file_is_taken():
    refuse_wrong_layouts([layout(order_no="Order"), layout(recurring_id="Contract")])
    with pytest.raises(
        ConfigurationError, match=r'the layout of "\*\.csv": columns\.gross is none'
    ):
        refuse_wrong_layouts([layout(order_no="Order"), layout(gross="Gross")])


def test_only_files_with_order_numbers_may_say_how_theirs_are_written():
    """A bank's statement has none: there the setting would silently not hold."""
    shop = FileLayout(order_numbers=WrittenNumbers(prefix="#"))
    refuse_wrong_layouts([shop])
    refuse_wrong_layouts([shop], of="settlement")
    with pytest.raises(ConfigurationError, match="order_numbers: these files have no column"):
        refuse_wrong_layouts([shop], of="bank")


def problem(schema=ORDER_FILE, /, **layout):
    """What is wrong with this layout for files of a kind."""
    try:
        refuse_wrong_layout(FileLayout(**layout), schemas=(schema,), where="layout: ")
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("layout", "told"),
    [
        ({"columns": {"order": "x"}}, "layout: columns.order is none of the columns merchant_id,"),
        ({"words": {"state": {"x": "paid"}}}, "layout: words.state is none of the columns"),
        (
            {"words": {"status": {"offen": "pending", "bezahlt": "payed"}}},
            "layout: words.status.\"bezahlt\": 'payed' is none of authorised, cancelled, failed,",
        ),
        ({"words": {"status": {"x": ""}}}, "words.status.\"x\": '' is blank, which no row may"),
        ({"words": {"currency": {"€": "EURO"}}}, "'EURO' is no currency of ISO 4217"),
        (
            {"constants": {"currency": "euro"}},
            "constants.currency: 'euro' is no currency of ISO 42",
        ),
        ({"constants": {"merchant_id": "1 2"}}, "constants.merchant_id: '1 2' is not an id of"),
        ({"sums": {"fee": ("A", "B")}}, "layout: sums.fee is none of the columns"),
        ({"sums": {"status": ("A", "B")}}, "layout: sums.status is no column of amounts"),
        ({"currencies": {"order_no": "A"}}, "currencies.order_no is no column of amounts"),
        ({"net": "gross_less_fee"}, "layout: net: only settled rows have one"),
        ({"captures": "plus"}, "layout: captures: only entries of a ledger have such a sign"),
        ({"constants": {"status": "Paid"}}, "constants.status: 'Paid' is none of authorised,"),
    ],
)
def test_a_layout_that_could_never_be_read_is_refused(layout, told):
    assert told in problem(**layout)


def test_a_layout_of_words_that_exist_is_taken():
    found = problem(
        columns={"order_no": "Bestellung"},
        constants={"merchant_id": "100042", "currency": "EUR", "ordered_at": "2026-01-05"},
        words={"status": {"bezahlt": "paid"}, "action": {"keine": "", "einziehen": "capture"}},
    )
    assert found == ""


@pytest.mark.parametrize(
    ("schema", "negated", "told"),
    [
        (SETTLEMENT, {"payout": ("gross", "net"), "reserve": ()}, ""),
        (SETTLEMENT, {"write_off": ("gross",)}, "negated_rows.write_off"),
        (SETTLEMENT, {"payout": ("grosss",)}, "negated_rows.payout"),
        (SETTLEMENT, {"payout": ("batch_id",)}, "negated_rows.payout"),
        (LEDGER, {"refund": ("amount",)}, "negated_rows.refund"),
    ],
)
def test_only_amounts_of_settled_rows_have_signs_by_their_type(schema, negated, told):
    found = problem(schema, negated_rows=negated)
    assert bool(found) == bool(told)
    assert told in found
