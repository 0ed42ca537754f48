-- Before money moves: by our own journal, doubt included, no payment has captures above its amount, or
-- refunds above its captures. Where no capture is ours, somebody else captured it.
WITH payments AS (
    SELECT max(payment_amount) AS payment,
        sum(amount) FILTER (kind = 'capture') AS captured,
        coalesce(sum(amount) FILTER (kind = 'refund'), 0) AS refunded
    FROM 'journal/instructions.parquet'
    GROUP BY transaction_id
)
SELECT
    'T9' AS id, 'payments out of bounds' AS name, '' AS merchant_id, '' AS account_id,
    '' AS currency, 'count' AS measure,
    count_if(coalesce(captured, 0) > payment OR refunded > coalesce(nullif(captured, 0), payment)) AS "left",
    0 AS "right"
FROM payments;
