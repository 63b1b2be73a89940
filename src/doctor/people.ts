/** The doctor's check of accounts: unreachable addresses, and users who owe a stronger sign-in. */
import { accountsWithOddEmails } from '../accounts/email.ts';
import { strongWaysOf, whoOwesAWay } from '../accounts/stronger-sign-ins.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import type { Database } from '../storage/queries.ts';
import { type Findings, ok, type Verdict, warning } from './findings.ts';

const MAX_LISTED_IDS = 5;

export async function checkPeople(
  findings: Findings,
  database: Database,
  signIn: SettingsWithoutSecrets['signIn'],
): Promise<void> {
  if (signIn.require !== 'off') {
    findings.add('sign_in_require', 'sign_in.require', await owingVerdict(database, signIn));
  }
  findings.add('email_addresses', 'accounts', await emailsVerdict(database));
}

async function owingVerdict(
  database: Database,
  signIn: SettingsWithoutSecrets['signIn'],
): Promise<Verdict> {
  const { length } = await whoOwesAWay(database, strongWaysOf(signIn));
  if (length === 0) return ok('everybody of whom it is demanded has a passkey or a provider');
  return warning(
    `${length} of whom it is demanded have neither a passkey nor a provider: after their grace they reach nothing but the page to add one`,
    '`accounts list --owing-a-passkey` names them: tell them',
  );
}

/** Finds addresses that a former version accepted and that are refused today. */
async function emailsVerdict(database: Database): Promise<Verdict> {
  const ids = await accountsWithOddEmails(database);
  if (ids.length === 0) return ok('mail can be sent to every account');
  const named = ids.slice(0, MAX_LISTED_IDS).join(', ');
  const more = ids.length > MAX_LISTED_IDS ? ` and ${ids.length - MAX_LISTED_IDS} more` : '';
  return warning(
    `${ids.length} of the accounts have an address that mail may not reach: ${named}${more}`,
    'they can sign in with it; give them another one with `accounts update --new-email`',
  );
}
