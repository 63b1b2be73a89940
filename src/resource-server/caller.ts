/** Who is calling the API, by which authentication method, and what they may reach right now. */
import { CallerRefused, missingRight } from './refusal.ts';

/** Distinguished by `method`; only callers that act for a person have an `accountId`. */
export type Caller = CallerFields & {
  /**
   * With `live`: fires when this caller's access ends or changes, or when the stream that would
   * announce it is lost. End whatever outlives its request, such as a subscription, when it fires,
   * and identify the caller again.
   */
  readonly signal?: AbortSignal;
};

/** The fields of a caller that come from the introspection answer. */
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
    /** Not a secret: the service's log has this id at each event of the authorization. */
    readonly authorization?: string;
  };

interface Person {
  readonly accountId: string;
  /** The email address this person signs in with. */
  readonly username?: string;
  /** The person's id in the system that accounts are imported from; absent for other accounts. */
  readonly externalId?: string;
}

interface Reach {
  /** The account id, or the client id of a machine client: for logs and rate limits. */
  readonly subject: string;
  /** Absent if the presented value does not expire. */
  readonly expiresAt?: Date;
  readonly organizations: readonly Organization[];
}

export type Role = 'owner' | 'admin' | 'member' | 'viewer';
export type Right = 'read' | 'write' | 'manage';

export interface Organization {
  readonly id: string;
  /** The id in the system it was imported from; absent for one created by hand. */
  readonly externalId?: string;
  readonly name: string;
  readonly role: Role;
  /** Only warehouses in which the caller has a right. */
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

/** Returns false both for unknown warehouses and for those of other organizations. */
export const mayReach = (caller: Caller, warehouseId: string, right: Right): boolean =>
  warehousesOf(caller, right).some(({ id }) => id === warehouseId);

/**
 * Ends a resolver or a route if the caller lacks the right in this warehouse.
 *
 * @throws CallerRefused with status 403; in a GraphQL answer an error with the code `FORBIDDEN`.
 */
export function requireRight(caller: Caller, warehouseId: string, right: Right): void {
  if (!mayReach(caller, warehouseId, right)) throw new CallerRefused(missingRight(right));
}
