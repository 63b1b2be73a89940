/** Who has memberships: a person, or a machine client, which acts for itself. */
import { isClientId } from '../../random-id.ts';
import { isAccountId } from '../account.ts';

export type Subject = { readonly accountId: string } | { readonly clientId: string };

/** The column that refers to the subject, and its id. */
export type SubjectColumn = readonly ['account_id' | 'client_id', string];

/** Undefined for an id that nobody can have. */
export function subjectColumn(subject: Subject): SubjectColumn | undefined {
  if ('accountId' in subject) {
    return isAccountId(subject.accountId) ? ['account_id', subject.accountId] : undefined;
  }
  return isClientId(subject.clientId) ? ['client_id', subject.clientId] : undefined;
}
