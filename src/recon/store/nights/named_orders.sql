-- Of all files only the order numbers are read: orders with more than one row are looked at, no other.
CREATE TEMP TABLE named AS
SELECT file_id, order_no FROM read_parquet(getvariable('paths'), filename = true) JOIN arrivals ON path = filename
WHERE order_no IN (FROM asked);

CREATE TEMP TABLE crowded AS
SELECT order_no FROM named GROUP BY order_no HAVING count(*) > 1;

-- The files that have a row of them.
CREATE TEMP VIEW among AS
SELECT DISTINCT file_id FROM named WHERE order_no IN (FROM crowded) ORDER BY file_id;
