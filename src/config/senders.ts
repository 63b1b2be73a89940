/** The systems that may call a path of the operators' listener. Each has a name and one or two secrets. */
import type { ConfigurationProblem } from './problems.ts';

export interface Sender {
  /** The audit log shows this name. While a secret is being replaced, two entries have the same name. */
  readonly name: string;
  readonly secret: string;
}

/** The variable with the secrets for each path. The key `changes` stands for `/changes`. */
export const SENDER_VARIABLES = {
  changes: 'GATEHOUSE_CHANGES_SECRETS',
  leaks: 'GATEHOUSE_LEAKS_SECRETS',
  audit: 'GATEHOUSE_AUDIT_SECRETS',
} as const;

export type SenderPath = keyof typeof SENDER_VARIABLES;

/** The senders that may use each path. A path without a sender is not served. */
export type Senders = Readonly<Record<SenderPath, readonly Sender[]>>;

/** @param read returns the senders in the value of the named variable */
export const sendersBy = (read: (variable: string) => readonly Sender[]): Senders => ({
  changes: read(SENDER_VARIABLES.changes),
  leaks: read(SENDER_VARIABLES.leaks),
  audit: read(SENDER_VARIABLES.audit),
});

const SENDER = /^([a-z0-9][a-z0-9._-]{0,39}):([A-Za-z0-9._~+/=-]{32,200})$/;
const MAX_SECRETS_PER_NAME = 2;
const REMEDY =
  'write name:secret, separated by commas or line breaks: a name of lower-case letters, digits, ' +
  'dots and hyphens, and a secret of at least 32 characters from `openssl rand -base64 48`';

/** Parses the list, and adds a problem for each invalid entry. The problem contains no secret. */
export function sendersFrom(variable: string, list: string, problems: ConfigurationProblem[]): readonly Sender[] {
  const entries = list.split(/[\s,]+/).filter((entry) => entry !== '');
  const senders = entries.flatMap((entry, index): Sender[] => {
    const [, name, secret] = SENDER.exec(entry) ?? [];
    if (name !== undefined && secret !== undefined) return [{ name, secret }];
    const path = `${variable}, entry ${index + 1} of ${entries.length}`;
    problems.push({ path, message: 'is not a name and a secret', remedy: REMEDY });
    return [];
  });
  for (const [name, own] of Map.groupBy(senders, (sender) => sender.name)) {
    if (own.length <= MAX_SECRETS_PER_NAME) continue;
    const message = `has ${own.length} secrets for ${name}; a sender may have at most two`;
    problems.push({ path: variable, message, remedy: 'remove the oldest secret' });
  }
  return senders;
}
