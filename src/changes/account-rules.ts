/** What an account line must not do: take an address or an identity of another account. */
import { newEmailProblem } from '../accounts/email.ts';
import type { Change, Row } from './change.ts';

/** @param context the accounts that have the address or the identity now (kinds.ts) */
export function accountProblems({ id, set = {}, identity }: Change, before: Row | null, context: Row): string[] {
  const { holder, holder_external_id: external, linked, subject } = context;
  const { email } = set;
  const problems: string[] = [];
  const own = before?.id ?? id;
  if (email !== undefined) {
    if (holder != null && holder !== own) problems.push(takenEmail(String(holder), external));
    const isRefused = newEmailProblem(email);
    if (isRefused) problems.push(refusedEmail(email, isRefused));
  }
  if (identity === undefined) return problems;
  // Relinking would sign an identity's owner in to another account: that is only done by hand.
  if (linked != null && linked !== own) {
    problems.push(
      `identity: the account ${linked} is already linked with this identity; \`links remove\` removes that link`,
    );
  } else if (subject != null && subject !== identity.subject) {
    problems.push(
      `identity: the account ${own} is linked with the subject ${JSON.stringify(subject)} of this issuer; ` +
        '`links remove` removes that link',
    );
  }
  return problems;
}

const takenEmail = (holder: string, external: unknown): string =>
  external === null
    ? `email: the account ${holder}, which was not imported, has this address; change one of the two`
    : `email: the account with the external_id ${JSON.stringify(external)} has this address; use that ` +
      'external_id, or first send a line that gives that account another address';

const refusedEmail = (email: string, { other }: { readonly other?: string }): string =>
  other === undefined
    ? `email: ${JSON.stringify(email)} is not an email address; write one like "ada@example.com"`
    : `email: ${JSON.stringify(email)} is not in its normalized form; write ${JSON.stringify(other)}`;
