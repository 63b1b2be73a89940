/** Checks that an account line takes no address or identity of another account. */
import { newEmailProblem } from '../accounts/email.ts';
import type { Change, Row } from './change.ts';

/**
 * An import line may give an account the address of a second account. This type says what the file does with the second
 * account. `moves`: the file gives the second account another address.
 */
export type Holder = 'moves' | 'newer' | 'absent';

/**
 * @param context the accounts that already have the new address or the new linked identity (kinds.ts)
 * @param holders maps an account id to its `Holder`; empty if the change is not from a file
 */
export function accountProblems(
  { id, set = {}, identity }: Change,
  context: Row,
  holders: ReadonlyMap<string, Holder>,
): string[] {
  const { holder, holder_external_id: external, linked, subject } = context;
  const { email } = set;
  const problems: string[] = [];
  if (email !== undefined) {
    const inFile = holders.get(String(holder));
    if (holder != null && holder !== id && inFile !== 'moves') {
      problems.push(takenEmail(String(holder), external, inFile));
    }
    const isRefused = newEmailProblem(email);
    if (isRefused) problems.push(refusedEmail(email, isRefused));
  }
  if (identity === undefined) return problems;
  // Relinking would sign the identity's owner in to another account, so only an operator may do it.
  if (linked != null && linked !== id) {
    problems.push(
      `identity: the account ${linked} is already linked with this identity; \`links remove\` removes that link`,
    );
  } else if (subject != null && subject !== identity.subject) {
    problems.push(
      `identity: the account ${id} is linked with the subject ${JSON.stringify(subject)} of this issuer; ` +
        '`links remove` removes that link',
    );
  }
  return problems;
}

function takenEmail(holder: string, external: unknown, inFile: Holder | undefined): string {
  if (external === null) {
    return `email: the account ${holder}, which was not imported, has this address; change one of the two`;
  }
  const account = `email: the account with the external_id ${JSON.stringify(external)}`;
  if (inFile === undefined) {
    const remedy = 'or first send a line that gives that account another address';
    return `${account} has this address; use that external_id, ${remedy}`;
  }
  const why = inFile === 'newer' ? 'was changed after the file was written' : 'is not in the file';
  const remedy = 'or add a line that gives that account another address';
  return `${account}, which ${why}, has this address; use that external_id, ${remedy}`;
}

const refusedEmail = (email: string, { other }: { readonly other?: string }): string =>
  other === undefined
    ? `email: ${JSON.stringify(email)} is not an email address; write one like "ada@example.com"`
    : `email: ${JSON.stringify(email)} is not in its normalized form; write ${JSON.stringify(other)}`;
