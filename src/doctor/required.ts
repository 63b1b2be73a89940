/** The doctor's look at who still has nothing but a password where more is demanded of them. */
import { strongWaysOf, whoOwesAWay } from '../accounts/stronger-sign-ins.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import type { Database } from '../storage/queries.ts';
import type { Findings } from './findings.ts';

export async function checkRequired(
  findings: Findings,
  database: Database,
  signIn: SettingsWithoutSecrets['signIn'],
): Promise<void> {
  if (signIn.require === 'off') return;
  const { length } = await whoOwesAWay(database, strongWaysOf(signIn));
  const check = 'sign_in_require';
  if (length === 0) {
    return findings.ok(check, 'everybody of whom it is demanded has a passkey or a provider');
  }
  findings.warning({
    check,
    where: 'sign_in.require',
    message: `${length} of whom it is demanded have neither a passkey nor a provider: after their grace they reach nothing but the page to add one`,
    remedy: '`accounts list --owing-a-passkey` names them: tell them',
  });
}
