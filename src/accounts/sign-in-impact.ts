/** Counts the people whom a change of the settings under `sign_in` affects. */
import type { Queries } from '../storage/queries.ts';
import { DOCTOR_EMAIL_PATTERN } from './doctor-accounts.ts';
import type { UpstreamStrength } from './sign-in-strength.ts';
import { listAccountsWithoutStrongMethod, listStrongMethods } from './strong-sign-ins.ts';

interface SignIn {
  readonly passwords: boolean;
  readonly passkeys: boolean;
  readonly require: 'off' | 'passkey-or-upstream';
  readonly providers: readonly (UpstreamStrength & { readonly id: string })[];
}

/** Returns each effect that concerns anyone, with the number of people who are not suspended. */
export async function signInImpact(database: Queries, now: SignIn, next: SignIn) {
  const impact: { readonly effect: string; readonly people: number }[] = [];
  async function count(effect: string, condition: string, values: unknown[]): Promise<void> {
    const [row] = await database.query<{ people: number }>(
      `SELECT count(*)::integer AS people FROM accounts a WHERE a.suspended_at IS NULL
        AND a.email NOT LIKE '${DOCTOR_EMAIL_PATTERN}' AND ${condition}`,
      values,
    );
    if (row && row.people > 0) impact.push({ effect, people: row.people });
  }
  const issuersOf = ({ providers }: SignIn) => providers.map(({ issuer }) => issuer);
  const methodsOf = (signIn: SignIn) => [signIn.passwords, signIn.passkeys, issuersOf(signIn)];
  await count(
    'have no sign-in method left, unless a provider matches them or they get a mailed link',
    `${hasMethod(1)} AND NOT ${hasMethod(4)}`,
    [...methodsOf(now), ...methodsOf(next)],
  );
  for (const { id, issuer } of now.providers) {
    if (issuersOf(next).includes(issuer)) continue;
    await count(`can no longer sign in with the provider ${id}`, isLinked('$1'), [[issuer]]);
  }
  if (now.passwords && !next.passwords)
    await count('can no longer sign in with their password', 'a.password_hash IS NOT NULL', []);
  const owing = async (signIn: SignIn): Promise<string[]> =>
    signIn.require === 'off'
      ? []
      : listAccountsWithoutStrongMethod(database, listStrongMethods(signIn));
  const before = new Set(await owing(now));
  const people = (await owing(next)).filter((id) => !before.has(id)).length;
  const effect = 'must add a passkey or a provider account, because of sign_in.require';
  return people > 0 ? [...impact, { effect, people }] : impact;
}

const isLinked = (issuers: string): string => `EXISTS (SELECT FROM account_identities i
  WHERE i.account_id = a.id AND i.issuer = ANY(${issuers}::text[]))`;

/** SQL: account `a` has one of the methods in three parameters, of which this is the first. */
const hasMethod = (first: number): string => `(($${first}::boolean AND a.password_hash IS NOT NULL)
  OR ($${first + 1}::boolean AND EXISTS (SELECT FROM passkeys p WHERE p.account_id = a.id))
  OR ${isLinked(`$${first + 2}`)})`;
