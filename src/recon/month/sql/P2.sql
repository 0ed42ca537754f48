-- What the nights reported, one by one, comes to the facts of the month in one piece; every line that any night reported
-- counts, and every level to which a payment was captured is in its captures.
-- A line may stand alone beside the sum of its batch: what it settles no night's sum takes back.
WITH sides AS (
    SELECT 'reported by each night + reported late = dated in the month' AS name, currency, "count" AS n, amount, 0 AS n_right, 0 AS amount_right
    FROM reported_by_night
    UNION ALL
    SELECT 'reported by each night + reported late = dated in the month', currency, count(*), sum(amount), 0, 0
    FROM straddling WHERE what = 'late' GROUP BY currency
    UNION ALL
    SELECT 'reported by each night + reported late = dated in the month', currency, 0, 0, count(*), sum(amount)
    FROM facts, month WHERE event_on BETWEEN first AND last GROUP BY currency
    UNION ALL
    SELECT 'lines that any night reported = lines that count', currency, sum(times), sum(net * times), 0, 0
    FROM reported_lines, month WHERE settled_on BETWEEN first AND last GROUP BY currency
    UNION ALL
    SELECT 'lines that any night reported = lines that count', l.currency, 0, 0, count(*), sum(l.net)
    FROM lines l SEMI JOIN reported_lines t ON t.batch_id = l.batch_id AND t.settled_on = l.settled_on AND t.currency = l.currency,
        month
    WHERE l.settled_on BETWEEN first AND last GROUP BY l.currency
    UNION ALL
    SELECT 'lines that stood alone in a night, of payments that none settles there', currency, count(*), 0, 0, 0
    FROM lost_lines GROUP BY currency
    UNION ALL
    SELECT 'captured as the nights showed it = captures', currency, count(*), sum(captured), 0, 0
    FROM (SELECT payment, arg_max(currency, number) AS currency, arg_max(captured, number) AS captured FROM shown GROUP BY payment)
    WHERE captured <> 0 GROUP BY currency
    UNION ALL
    SELECT 'captured as the nights showed it = captures', currency, 0, 0, count(*), sum(amount)
    FROM (SELECT payment, currency, sum(amount) AS amount FROM facts WHERE kind = 'capture' GROUP BY payment, currency HAVING sum(amount) <> 0)
    GROUP BY currency
)
SELECT 'P2' AS id, name, currency, 'count' AS measure, sum(n)::BIGINT AS "left", sum(n_right)::BIGINT AS "right"
FROM sides GROUP BY name, currency
UNION ALL
SELECT 'P2', name, currency, 'amount', sum(amount)::BIGINT, sum(amount_right)::BIGINT
FROM sides GROUP BY name, currency;
