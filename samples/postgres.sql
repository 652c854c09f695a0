-- SPDX-License-Identifier: BSD-3-Clause
-- What samples/postgres.trace is a trace of: a scan, a sort, and a change that is committed.
SELECT count(*) FROM words WHERE word LIKE 'a%';
SELECT word FROM words ORDER BY word DESC LIMIT 3;
UPDATE words SET word = 'changed' WHERE n = 17;
