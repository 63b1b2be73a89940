/** The demo data of the first start: one user, one organization, two warehouses. */
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { Database } from '../storage/queries.ts';
import { lookOf } from '../texts/name-rules.ts';
import { emailKey } from './email.ts';
import { DEMO_PASSWORD } from './passwords/common-passwords.ts';
import { hashPassword } from './passwords/password.ts';

/** The first start prints the password, so never add the demo if strangers can reach the service. */
export const DEMO = {
  email: 'ada@demo.test',
  password: DEMO_PASSWORD,
  name: 'Ada Demo',
  organization: 'Demo Logistics',
  warehouses: ['Hamburg', 'Riga'],
} as const;

/** Adds the demo if there are no accounts yet. @returns true if this call has added the demo */
export async function seedDemo(parts: { readonly database: Database; readonly clock: Clock }): Promise<boolean> {
  const { database, clock } = parts;
  if (await hasAccounts(database)) return false;
  const passwordHash = await hashPassword(DEMO.password, { rank: 'known', email: DEMO.email });
  return database.transaction(async (tx) => {
    // Lock the table, so that only one of two processes that start at the same time adds the demo.
    await tx.query('LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE');
    if (await hasAccounts(tx)) return false;
    const now = new Date(clock());
    const account = randomId('acc_', 16);
    const organization = randomId('org_', 16);
    await tx.query(
      `INSERT INTO accounts (id, email, email_key, name, password_hash, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)`,
      [account, DEMO.email, emailKey(DEMO.email), DEMO.name, passwordHash, now],
    );
    await tx.query('INSERT INTO organizations (id, name, name_key, created_at) VALUES ($1, $2, $3, $4)', [
      organization,
      DEMO.organization,
      lookOf(DEMO.organization),
      now,
    ]);
    for (const name of DEMO.warehouses) {
      await tx.query(`INSERT INTO warehouses (id, organization_id, name, created_at) VALUES ($1, $2, $3, $4)`, [
        randomId('wh_', 16),
        organization,
        name,
        now,
      ]);
    }
    await tx.query(
      `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
        VALUES ($1, $2, 'owner', $3)`,
      [account, organization, now],
    );
    return true;
  });
}

async function hasAccounts(queries: Pick<Database, 'query'>): Promise<boolean> {
  return (await queries.query('SELECT FROM accounts LIMIT 1')).length > 0;
}
