\set ON_ERROR_STOP on
BEGIN;
-- One relay at a time, so that the lines arrive in their order.
LOCK TABLE outbox IN SHARE UPDATE EXCLUSIVE MODE;
\copy (WITH sent AS (DELETE FROM outbox WHERE id IN (SELECT id FROM outbox ORDER BY id LIMIT 1000) RETURNING id, line) SELECT line FROM sent ORDER BY id) TO PROGRAM './send.sh' WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
COMMIT;
