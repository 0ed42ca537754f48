"""What stands in the file of what the gateway holds: batch by batch, and reserves by day."""

from recon.archive.fields import ACCOUNT, CURRENCY, ISO_DATE, MERCHANT, file, money, text, word

HELD = file(
    "held",
    MERCHANT,
    ACCOUNT,
    CURRENCY,
    word(
        "what",
        "opening (from before the first line), item (held back), debt (owed to the gateway), "
        "beyond (paid beyond what there was), no_payout (not paid out), other_currency "
        "(the pay-out has another), unsure (a line could not be read), reserve",
    ),
    text("batch_id", "the batch that it is of"),
    text("settled_on", "since when the gateway holds it", unit=ISO_DATE),
    money("amount", "what it holds; debts and what was paid beyond are below 0"),
    key=("merchant_id", "account_id", "currency", "what", "settled_on", "batch_id"),
    folder="results",
)
