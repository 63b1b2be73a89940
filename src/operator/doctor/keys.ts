/** The doctor's look at the keys: how old they are, what is left over, where the nodes differ. */
import { systemClock } from '../../clock.ts';
import { ConfigurationProblems } from '../../config/problems.ts';
import { Refusal } from '../../refusal.ts';
import type { Queries } from '../../storage/queries.ts';
import { type KeySources, keyFacts } from '../keys/keys.ts';
import { KEY_VARIABLE, keyStates, keyWarnings } from '../keys/states.ts';
import type { Findings } from './findings.ts';

type Sources = Omit<KeySources, 'database'> & { readonly database: Queries | undefined };

export async function checkKeys(
  findings: Findings,
  { database, ...sources }: Sources,
): Promise<void> {
  const check = 'keys';
  if (!database) {
    findings.notChecked([check], 'the database cannot be used');
    return;
  }
  try {
    const facts = await keyFacts({ database, ...sources });
    const now = systemClock();
    const warnings = keyWarnings(facts, now);
    for (const { kind, message, remedy, isProblem } of warnings) {
      findings[isProblem ? 'problem' : 'warning']({
        check,
        where: KEY_VARIABLE[kind],
        message,
        remedy,
      });
    }
    if (warnings.length > 0) return;
    const current = keyStates(facts).filter(({ use }) => use === 'current');
    const ages = current.map(({ kind, fingerprint, currentSince }) => {
      const since = currentSince?.toISOString().slice(0, 10);
      return `${kind} key ${fingerprint} ${since ? `since ${since}` : 'not in use yet'}`;
    });
    findings.ok(check, ages.join(', '));
  } catch (error) {
    if (error instanceof Refusal) findings.notChecked([check], 'this environment holds no keys');
    else if (error instanceof ConfigurationProblems) {
      for (const { path, message, remedy } of error.problems) {
        findings.problem({ check, where: path, message: `${path} ${message}`, remedy });
      }
    } else throw error;
  }
}
