-- Debits equal credits, and the clearing account changes by the effects of the booked breaks.
WITH clearing AS (
    SELECT label AS account FROM 'inputs/terms.parquet' WHERE name = 'clearing'
),
at_bank AS (
    SELECT label AS account FROM 'inputs/terms.parquet' WHERE name = 'bank_account'
),
lines AS (SELECT * FROM 'results/journals.parquet'),
sides AS (
    SELECT 'proposed journals: debits = credits' AS name, merchant_id, account_id, currency, debit AS one, credit AS other FROM lines
    UNION ALL
    SELECT 'proposed journals = effects of their breaks', merchant_id, account_id, currency, debit - credit, 0
    FROM lines WHERE account IN (FROM clearing)
    UNION ALL
    SELECT 'proposed journals = effects of their breaks', merchant_id, account_id, currency, 0, amount
    FROM 'results/effects.parquet'
    WHERE leg = 'ledger' AND (break_id, currency) IN (SELECT (break_id, currency) FROM lines)
    UNION ALL
    SELECT 'proposed journals of the bank = effects of their breaks', merchant_id, account_id, currency, debit - credit, 0
    FROM lines WHERE account IN (FROM at_bank)
    UNION ALL
    SELECT 'proposed journals of the bank = effects of their breaks', merchant_id, account_id, currency, 0, amount
    FROM 'results/effects.parquet'
    WHERE leg = 'bank_ledger' AND EXISTS (FROM at_bank)
        AND (break_id, currency) IN (SELECT (break_id, currency) FROM lines)
)
SELECT 'T12' AS id, name, merchant_id, account_id, currency, 'amount' AS measure,
    sum(one) AS "left", sum(other) AS "right"
FROM sides
WHERE EXISTS (FROM clearing)
GROUP BY ALL;
