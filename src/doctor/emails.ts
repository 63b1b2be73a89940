/** The doctor's check of email addresses that a former version accepted. */
import { accountsWithOddEmails } from '../accounts/email.ts';
import type { Database } from '../storage/queries.ts';
import type { Findings } from './findings.ts';

/** Account ids in the message. */
const MAX_NAMED = 5;

export async function checkEmails(findings: Findings, database: Database): Promise<void> {
  const check = 'email_addresses';
  const ids = await accountsWithOddEmails(database);
  if (ids.length === 0) return findings.ok(check, 'mail can be sent to every account');
  const named = ids.slice(0, MAX_NAMED).join(', ');
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : '';
  findings.warning({
    check,
    where: 'accounts',
    message: `${ids.length} of the accounts have an address that mail may not reach: ${named}${more}`,
    remedy: 'they can sign in with it; give them another one with `accounts update --new-email`',
  });
}
