/** Who is calling the API, by which authentication method, and what they may reach right now. */
import { CallerRefused, missingRight } from './refusal.ts';

/** Told apart by `method`; only a person has an `accountId`. */
export type Caller = CallerFields & {
  /**
   * With `live`: fires when this caller's access ended or changed, or when nobody would tell. Whatever
   * goes on for longer than a request ends with it, and whoever comes again is looked at again.
   */
  readonly signal?: AbortSignal;
};

/** What the service answers. */
export type CallerFields =
  | PersonThroughClient
  /** A machine client, which acts for itself (client credentials). */
  | (Reach & { readonly method: 'client_credentials'; readonly clientId: string })
  /** A private integration of one person. */
  | (Reach & Person & { readonly method: 'api_key'; readonly apiKey?: string });

type PersonThroughClient = Reach &
  Person & {
    readonly method: 'authorization_code';
    readonly clientId: string;
    /** Public: it opens nothing, and finds in the service's log what belongs together. */
    readonly authorization?: string;
  };

interface Person {
  readonly accountId: string;
  /** The email address this person signs in with. */
  readonly username?: string;
  /** What the system that accounts are imported from calls this person; absent for others. */
  readonly externalId?: string;
}

interface Reach {
  /** The account id, or the client id of a machine client: for logs and rate limits. */
  readonly subject: string;
  /** Absent where what was presented does not expire. */
  readonly expiresAt?: Date;
  readonly organizations: readonly Organization[];
}

export type Role = 'owner' | 'admin' | 'member' | 'viewer';
export type Right = 'read' | 'write' | 'manage';

export interface Organization {
  readonly id: string;
  /** In the system it was imported from; absent for one made by hand. */
  readonly externalId?: string;
  readonly name: string;
  readonly role: Role;
  /** Only those in which the caller has a right. */
  readonly warehouses: readonly Warehouse[];
}

export interface Warehouse {
  readonly id: string;
  readonly externalId?: string;
  readonly name: string;
  readonly rights: readonly Right[];
}

/** Every warehouse in which the caller has `right`, of all organizations. */
export const warehousesOf = (caller: Caller, right: Right = 'read'): Warehouse[] =>
  caller.organizations
    .flatMap(({ warehouses }) => warehouses)
    .filter(({ rights }) => rights.includes(right));

/** Unknown warehouses and those of other organizations are out of reach alike. */
export const mayReach = (caller: Caller, warehouseId: string, right: Right): boolean =>
  warehousesOf(caller, right).some(({ id }) => id === warehouseId);

/**
 * Ends a resolver or a route unless the caller may.
 *
 * @throws CallerRefused with status 403; in a GraphQL answer an error with the code `FORBIDDEN`.
 */
export function requireRight(caller: Caller, warehouseId: string, right: Right): void {
  if (!mayReach(caller, warehouseId, right)) throw new CallerRefused(missingRight(right));
}
