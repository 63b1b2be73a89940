/** A change of one person, place, membership or right, with the ids of all that it names. */
import type { NewActivity } from '../accounts/activity/activity.ts';
import type { Identity } from '../accounts/identities/identities.ts';

export type ChangeType = 'organization' | 'warehouse' | 'account' | 'membership' | 'warehouse_rights';
export type NamedType = 'account' | 'organization' | 'warehouse';

export interface Names {
  readonly external?: string | undefined;
  readonly id?: string | undefined;
  readonly email?: string | undefined;
}

export interface Change extends Ids {
  readonly type: ChangeType;
  /** The number of the line in its file; absent for a change by a command or a page. */
  readonly number?: number;
  /**
   * The time at which another system knew of this change. Absent for a change that is made now, which is newer than all
   * recorded times.
   */
  readonly asOf?: Date | undefined;
  /** The new values. An absent value stays as it is. All values are absent if `end` is present. */
  readonly set?: Values;
  /** `suspended` is for a person who is no longer in the other system. */
  readonly end?: 'removed' | 'deleted' | 'suspended' | undefined;
  /** True if a missing account or place is added. If false, a change of a missing account or place does nothing. */
  readonly adds?: boolean;
  /** All records that the imported or pushed line names. Some may have been deleted. */
  readonly named?: readonly (readonly [NamedType, Names])[];
  /** The id of the organization that a moved warehouse leaves. */
  readonly formerOrganization?: string | undefined;
  /** True for rights in a warehouse if its organization in the file is not the one in the database. */
  readonly isElsewhere?: boolean;
  readonly identity?: Identity | undefined;
}

export interface Ids {
  /** The id of the changed account, organization or warehouse; a new id if the change adds the record. */
  readonly id?: string | undefined;
  readonly account_id?: string | undefined;
  readonly client_id?: string | undefined;
  readonly organization_id?: string | undefined;
  readonly warehouse_id?: string | undefined;
}

export interface Values {
  readonly external_id?: string | null | undefined;
  readonly name?: string | undefined;
  readonly email?: string | undefined;
  readonly password_hash?: string | null | undefined;
  readonly suspended?: boolean | undefined;
  readonly asks_first?: boolean | undefined;
  readonly allows_api_keys?: boolean | undefined;
  readonly organization_id?: string | undefined;
  readonly role?: string | undefined;
  readonly rights?: readonly string[] | undefined;
}

export type FieldValue = string | boolean | readonly string[] | null;
export type Fields = Readonly<Record<string, readonly [before: FieldValue, after: FieldValue]>>;
export type Row = Readonly<Record<string, unknown>>;

export interface Difference {
  readonly change: Change;
  /** `removed` also stands for an account that is suspended because it is no longer in the other system. */
  readonly kind: 'added' | 'changed' | 'removed';
  readonly fields: Fields;
  readonly before: Row | null;
  /** The row after the change, or the removed row, with the names of its organization and warehouse. */
  readonly after: Row;
}

/** The person or system that makes the changes, as the log shows it. */
export interface By {
  readonly actor: NewActivity['actor'];
  /** True if another system makes the changes. It can end only the suspensions that it began. */
  readonly isSystem?: boolean;
  /** The default for a new organization: true if the organization must approve clients before they get access. */
  readonly asksFirst?: boolean;
  /** Details that are added to each audit entry. */
  readonly details?: NewActivity['details'];
}

/** @param organizationId of the organization that the line names */
export function valuesOf(line: object, organizationId: string | undefined): Pick<Change, 'set' | 'identity'> {
  const { external_id, name, email, suspended, role, rights, clients, identity } = line as Values & {
    readonly clients?: 'open' | 'ask';
    readonly identity?: Identity;
  };
  const asks_first = clients && clients === 'ask';
  const set = { external_id, name, email, suspended, role, rights, asks_first, organization_id: organizationId };
  return { set, identity };
}
