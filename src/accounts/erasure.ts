/** Erases deleted users from the security log, in steps, because a user's log may have any length. */
import type { CleaningJob } from '../storage/cleaning.ts';
import type { Queries } from '../storage/queries.ts';

/** Maximum number of entries that the transaction of a deletion erases. A job erases the others. */
const AT_ONCE = 1_000;

/**
 * Removes network addresses, browsers, names of API keys and ids at providers from the logs of these accounts. Removes
 * the names of the users from the logs of other accounts. Account ids stay.
 *
 * @param tx the transaction that deletes the accounts
 */
export async function eraseFromLog(tx: Queries, accountIds: readonly string[]): Promise<void> {
  if (accountIds.length === 0) return;
  // If an earlier account with this id is not completely erased, begin again at the first entry.
  await tx.query(
    `INSERT INTO erased_people (account_id) SELECT unnest($1::text[])
      ON CONFLICT (account_id) DO UPDATE SET after_id = 0`,
    [accountIds],
  );
  const limit = Math.ceil(AT_ONCE / accountIds.length);
  await tx.query(eraseSome('account_id = ANY($2)'), [limit, accountIds]);
}

export const createErasureJob =
  (database: Queries): CleaningJob =>
  async (limit) => {
    let erased = 0;
    while (erased < limit) {
      const [step] = await database.query<{ people: number; entries: number }>(
        eraseSome('true ORDER BY account_id LIMIT 1'),
        [limit - erased],
      );
      if (!step?.people) break;
      erased += step.entries;
    }
    return erased;
  };

/** SQL for the next `$1` log entries of user `g`. `account` must be an indexed expression for a user's id. */
const nextEntries = (account: string): string =>
  `(SELECT id FROM activity WHERE ${account} = g.account_id AND id > g.after_id ORDER BY id LIMIT $1)`;

const BY = "details ->> 'by_account_id'";
const CONCERNED = "details ->> 'person_id'";
const IS_GONE = '= ANY(ARRAY(SELECT account_id FROM gone))';

/** SQL: erases up to `$1` entries of each user, and removes users without further entries from `erased_people`. */
const eraseSome = (which: string): string => `
  WITH gone AS MATERIALIZED (
    SELECT account_id, after_id FROM erased_people WHERE ${which} FOR UPDATE SKIP LOCKED
  ), found AS MATERIALIZED (
    SELECT g.account_id, f.id FROM gone g, LATERAL (${nextEntries('account_id')}
      UNION ${nextEntries(BY)} UNION ${nextEntries(CONCERNED)} ORDER BY id LIMIT $1) f
  ), erased AS (
    UPDATE activity SET
        address = CASE WHEN account_id ${IS_GONE} THEN NULL ELSE address END,
        browser = CASE WHEN account_id ${IS_GONE} THEN NULL ELSE browser END,
        details = details - ARRAY[
          CASE WHEN account_id ${IS_GONE} THEN 'api_key_name' END,
          CASE WHEN account_id ${IS_GONE} THEN 'subject' END,
          CASE WHEN ${BY} ${IS_GONE} THEN 'by_name' END,
          CASE WHEN ${CONCERNED} ${IS_GONE} THEN 'person_name' END]
      WHERE id = ANY(ARRAY(SELECT id FROM found))
  ), step AS (
    SELECT g.account_id, count(f.id) AS entries, max(f.id) AS last
      FROM gone g LEFT JOIN found f USING (account_id) GROUP BY g.account_id
  ), done AS (
    DELETE FROM erased_people e USING step s WHERE e.account_id = s.account_id AND s.entries < $1
  ), continued AS (
    UPDATE erased_people e SET after_id = s.last FROM step s
      WHERE e.account_id = s.account_id AND s.entries >= $1
  )
  SELECT count(*)::int AS people, coalesce(sum(entries), 0)::int AS entries FROM step`;
