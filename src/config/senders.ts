/** The systems that may push changes of memberships. Each has a name, and one or two secrets. */
import type { ConfigurationProblem } from './problems.ts';

export interface Sender {
  /** Shown in the audit. Two entries have the same name while a secret is being replaced. */
  readonly name: string;
  readonly secret: string;
}

export const SENDERS_VARIABLE = 'GATEHOUSE_CHANGES_SECRETS';

const SENDER = /^([a-z0-9][a-z0-9._-]{0,39}):([A-Za-z0-9._~+/=-]{32,200})$/;
const MAX_SECRETS_PER_NAME = 2;
const REMEDY =
  'write name:secret, separated by commas or line breaks: a name of lower-case letters, digits, ' +
  'dots and hyphens, and a secret of at least 32 characters from `openssl rand -base64 48`';

/** Parses the list, and adds a problem for each invalid entry. The problem contains no secret. */
export function sendersFrom(list: string, problems: ConfigurationProblem[]): readonly Sender[] {
  const entries = list.split(/[\s,]+/).filter((entry) => entry !== '');
  const senders = entries.flatMap((entry, index): Sender[] => {
    const [, name, secret] = SENDER.exec(entry) ?? [];
    if (name !== undefined && secret !== undefined) return [{ name, secret }];
    const path = `${SENDERS_VARIABLE}, entry ${index + 1} of ${entries.length}`;
    problems.push({ path, message: 'is not a name and a secret', remedy: REMEDY });
    return [];
  });
  for (const [name, own] of Map.groupBy(senders, (sender) => sender.name)) {
    if (own.length <= MAX_SECRETS_PER_NAME) continue;
    const message = `has ${own.length} secrets for ${name}; a sender may have at most two`;
    problems.push({ path: SENDERS_VARIABLE, message, remedy: 'remove the oldest secret' });
  }
  return senders;
}
