/** Counts the users whom a change of the settings under `sign_in` affects. */
import type { Queries } from '../storage/queries.ts';
import { DOCTOR_EMAIL_PATTERN } from './account.ts';
import type { UpstreamStrength } from './sign-in-strength.ts';
import { HAS_POWER, hasStrongMethod, listStrongMethods } from './strong-sign-ins.ts';

interface SignIn {
  readonly passwords: boolean;
  readonly passkeys: boolean;
  readonly require: 'off' | 'passkey-or-upstream';
  readonly providers: readonly (UpstreamStrength & { readonly id: string })[];
}

/** Returns each effect on at least one user, with the number of affected users who are not suspended. */
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
  await count(
    'have no sign-in method left, unless a provider matches them or they get a mailed link',
    `(($1 AND a.password_hash IS NOT NULL) OR ${hasStrongMethod('$2', '$3')})
      AND NOT (($4 AND a.password_hash IS NOT NULL) OR ${hasStrongMethod('$5', '$6')})`,
    [now, next].flatMap((signIn) => [signIn.passwords, signIn.passkeys, issuersOf(signIn)]),
  );
  for (const { id, issuer } of now.providers) {
    if (issuersOf(next).includes(issuer)) continue;
    const effect = `can no longer sign in with the provider ${id}`;
    await count(effect, hasStrongMethod('false', '$1'), [[issuer]]);
  }
  if (now.passwords && !next.passwords)
    await count('can no longer sign in with their password', 'a.password_hash IS NOT NULL', []);
  if (next.require === 'off') return impact;
  const [strong, before] = [listStrongMethods(next), listStrongMethods(now)];
  await count(
    'must add a passkey or a provider account, because of sign_in.require',
    `${HAS_POWER} AND NOT ${hasStrongMethod('$1', '$2')} AND ($3 OR ${hasStrongMethod('$4', '$5')})`,
    [strong.passkeys, strong.issuers, now.require === 'off', before.passkeys, before.issuers],
  );
  return impact;
}
