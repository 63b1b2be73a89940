/** The rows of an organization's page, which lists the users, clients and keys with access. */
import type { Right, Role } from '../accounts/access/reach.ts';
import type { ClientKind } from '../clients/client.ts';

export interface Step<Row> {
  readonly rows: readonly Row[];
  /** The `from` of the next step; undefined after the last step. */
  readonly next: string | undefined;
}

export interface Reaching {
  /** The position in the list. The next step begins after this position. */
  readonly at: string;
  readonly id: string;
  readonly name: string;
  /** The rights in the chosen warehouse, unordered, with duplicates. Meaningless if no warehouse was chosen. */
  readonly rights: readonly Right[];
}

/** Whether a client is blocked in the whole organization, in the chosen warehouse, or in any warehouse. */
export interface Blockable {
  readonly isBlocked: boolean;
  readonly isBlockedThere: boolean;
  /** The organization's warehouses in which the client is blocked. `at` is in ISO 8601. */
  readonly blockedIn: readonly {
    readonly id: string;
    readonly name: string;
    readonly at: string;
    readonly by: string | null;
  }[];
}

export interface ReachingPerson extends Reaching {
  readonly email: string;
  readonly role: Role;
  readonly isSuspended: boolean;
  readonly since: Date;
  /** Number of the organization's warehouses that the user can access; null for all of them. */
  readonly warehouses: number | null;
  /** Null if the activity log, which forgets old entries, contains no sign-in of the user. */
  readonly lastSignedInAt: Date | null;
}

export interface ReachingClient extends Reaching, Blockable {
  readonly kind: ClientKind;
  /** `waiting`: the organization must approve clients first, and has not yet decided about this client. */
  readonly state: 'admitted' | 'blocked' | 'declined' | 'waiting';
  /** Null if the operator provides the client. */
  readonly ownerName: string | null;
  readonly isSuspended: boolean;
  /**
   * How many members have connected the client, at most `MAX_COUNTED` + 1. If more than `MAX_EXAMINED` have, `people`,
   * `rights` and `lastUsedAt` concern only the members who connected it last.
   */
  readonly count: number;
  readonly people: readonly string[];
  /** When a member first connected the client; null if no member has connected it. */
  readonly requestedAt: Date | null;
  readonly lastUsedAt: Date | null;
  /** When and by whom the client was blocked, in the chosen warehouse or else the organization; null if not blocked. */
  readonly blockedAt: Date | null;
  readonly blockedBy: string | null;
  /** The time of the stored decision, even if the organization now requires no approvals; null without a decision. */
  readonly decidedAt: Date | null;
  readonly decidedBy: string | null;
  readonly sentence: string | null;
}

export interface ConnectingPerson {
  readonly id: string;
  readonly name: string;
  readonly isSuspended: boolean;
  readonly lastUsedAt: Date | null;
  /** The rights in each accessible warehouse; empty for a suspended user. */
  readonly reaches: readonly { readonly id: string; readonly rights: readonly Right[] }[];
}

export type ReachingMachine = Pick<ReachingPerson, keyof Reaching | 'role' | 'isSuspended' | 'since' | 'warehouses'> &
  Pick<ReachingClient, 'lastUsedAt' | keyof Blockable>;

export interface ReachingKey extends Reaching {
  readonly lastFour: string;
  readonly person: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
}
