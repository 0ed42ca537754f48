-- Every figure of the statement but those of the lists: movements of the month by kind, of the gateway, of the
-- bank and of the books.
SELECT currency,
    CASE WHEN is_outside THEN 'outside' WHEN kind = 'reserve' THEN 'reserve' ELSE 'gateway' END AS whose,
    'moved' AS side, kind AS name, count(*) AS count, sum(amount)::BIGINT AS amount
FROM facts, month WHERE event_on BETWEEN first AND last
GROUP BY ALL
UNION ALL
SELECT currency, 'transit', 'moved', move, count(*), sum(amount)::BIGINT
FROM transit_moves, month WHERE counts_on BETWEEN first AND last
GROUP BY ALL
UNION ALL
SELECT currency, 'books', 'moved', CASE WHEN gone_on = '' THEN entry_type ELSE 'entry_vanished' END, count(*), sum(amount)::BIGINT
FROM entries, month WHERE day BETWEEN first AND last
GROUP BY ALL;
