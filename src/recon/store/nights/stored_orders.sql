-- Classifies the rows of some orders, which DuckDB reads from facts files.
-- Table `arrivals` lists files with rows of the accounts, `asked` the orders; variable `paths` has the files' paths.

-- First only the order numbers of all files are read, then complete rows of those files that have one of the orders (if
-- none has, no row of any file is taken).
CREATE TEMP TABLE named AS
SELECT file_id, path, order_no FROM read_parquet(getvariable('paths'), filename = true) JOIN arrivals ON path = filename
WHERE order_no IN (FROM asked);

SET VARIABLE paths = coalesce((SELECT list(DISTINCT path ORDER BY path) FROM named), getvariable('paths'));

-- Orders with several rows; an order with one row needs no decision.
CREATE TEMP TABLE crowded AS
SELECT order_no FROM named GROUP BY order_no HAVING count(*) > 1;

-- All rows of the orders, once for each arrival of their file.
CREATE TEMP MACRO arrived_rows() AS TABLE
SELECT f.* EXCLUDE (filename, file_row_number), f.file_row_number AS row, a.file_id, a.sender, a.name AS source
FROM read_parquet(getvariable('paths'), filename = true, file_row_number = true) AS f
JOIN arrivals AS a ON a.path = f.filename
WHERE f.order_no IN (FROM asked);

-- Rows of an order with the same content (including ordered_at) are repeats of each other.
CREATE TEMP TABLE crowded_rows AS
SELECT *,
    struct_pack(currency, amount, status, ordered_at, transaction_id, expected_captured_amount, refund_amount) AS content
FROM arrived_rows() WHERE order_no IN (FROM crowded);

-- A newer file of a sender replaces its older files' rows of each order that it contains, unless the new row has an
-- older updated_at. Rows that all newer files repeat are not replaced: a row belongs to the file that had it first.
CREATE TEMP TABLE latest_rows AS
SELECT * FROM crowded_rows
WINDOW
    again AS (
        PARTITION BY merchant_id, account_id, order_no, sender ORDER BY file_id
        RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING),
    same AS (
        PARTITION BY merchant_id, account_id, order_no, sender, content, updated_at ORDER BY file_id
        RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
QUALIFY NOT coalesce(
    count(DISTINCT file_id) OVER again > count(DISTINCT file_id) OVER same
    AND (updated_at IS NULL OR bool_or(updated_at IS NULL) OVER again OR max(updated_at) OVER again >= updated_at), false);

-- Of the remaining rows those with the newest updated_at are current (no updated_at counts as oldest), and of rows with
-- the same content the first. If several are left, all are current: DUPLICATE_ORDER_ROW.
CREATE TEMP TABLE decided AS
SELECT file_id, row FROM (
    SELECT * FROM latest_rows
    QUALIFY updated_at IS NOT DISTINCT FROM max(updated_at) OVER (PARTITION BY merchant_id, account_id, order_no))
QUALIFY row_number() OVER (
    PARTITION BY merchant_id, account_id, order_no, content ORDER BY file_id, line, row) = 1;

-- Classification of each row: current (is_current), a repeat of a current row, or current and replacing an earlier row.
CREATE TEMP TABLE became AS
WITH rows AS (
    SELECT s.*, d.row IS NOT NULL AS is_current,
        bool_or(d.row IS NOT NULL) OVER (
            PARTITION BY s.merchant_id, s.account_id, s.order_no, content, updated_at) AS is_repeated_content
    FROM crowded_rows AS s LEFT JOIN decided AS d ON d.file_id = s.file_id AND d.row = s.row)
SELECT file_id, row, is_current, NOT is_current AND is_repeated_content AS repeats,
    is_current AND coalesce(bool_or(NOT is_repeated_content) OVER (
        PARTITION BY merchant_id, account_id, order_no ORDER BY file_id, line, row
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false) AS replaces
FROM rows;

-- All rows of the orders with their classification.
CREATE TEMP VIEW order_rows AS
SELECT t.*, coalesce(is_current, true) AS is_current, coalesce(repeats, false) AS repeats, coalesce(replaces, false) AS replaces
FROM arrived_rows() AS t LEFT JOIN became USING (file_id, row);
