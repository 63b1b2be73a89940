/** The caller of the API: its identity, authentication method and current access. */
import { CallerRefused, missingRight } from './refusal.ts';

/** Distinguished by `method`; only callers that act for a person have an `accountId`. */
export type Caller = CallerFields & {
  /**
   * With the option `live`: fires when this caller's access ends or changes, or when the stream that would announce it
   * is lost. Also fires when the introspector is closed, after a day without a call, and if the full cache drops the
   * caller. If the caller was identified within five seconds after a change, it fires when these seconds have passed.
   * When it fires, end everything that outlives its request, such as a subscription, and identify the caller again.
   */
  readonly signal?: AbortSignal;
};

/** The fields of a caller that come from the introspection answer. */
export type CallerFields =
  | PersonThroughClient
  /** A machine client, which acts for itself (client credentials). */
  | (Reach & { readonly method: 'client_credentials'; readonly clientId: string })
  /** An API key: a private integration of one person. */
  | (Reach & Person & { readonly method: 'api_key'; readonly apiKey?: string });

type PersonThroughClient = Reach &
  Person & {
    readonly method: 'authorization_code';
    readonly clientId: string;
    /** The id is not secret: the service logs it with each event of the authorization. */
    readonly authorization?: string;
  };

interface Person {
  readonly accountId: string;
  /** The email address with which this person signs in. */
  readonly username?: string;
  /** The person's id in the system that accounts are imported from; absent for other accounts. */
  readonly externalId?: string;
}

interface Reach {
  /** The account id, or a machine client's client id. Use it for logs and rate limits. */
  readonly subject: string;
  /** When the token or API key expires; absent if it does not expire. */
  readonly expiresAt?: Date;
  readonly organizations: readonly Organization[];
  /**
   * The ids of organizations of this person that have not approved this client, or allow no API keys; absent if there
   * are none. They give no access.
   */
  readonly withheld?: readonly string[];
}

export type Role = 'owner' | 'admin' | 'member' | 'viewer';
export type Right = 'read' | 'write' | 'manage';

export interface Organization {
  readonly id: string;
  /** The organization's id in the system that it was imported from; absent if not imported. */
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

/** Returns the warehouses of all organizations in which the caller has this right. */
export const warehousesOf = (caller: Caller, right: Right = 'read'): Warehouse[] =>
  caller.organizations.flatMap(({ warehouses }) => warehouses).filter(({ rights }) => rights.includes(right));

/** Returns false both for unknown warehouses and for those of other organizations. */
export const mayReach = (caller: Caller, warehouseId: string, right: Right): boolean =>
  warehousesOf(caller, right).some(({ id }) => id === warehouseId);

/**
 * Requires this right in this warehouse. Call it in a resolver or a route.
 *
 * @throws CallerRefused with status 403 (in GraphQL: the code `FORBIDDEN`) if the right is missing.
 */
export function requireRight(caller: Caller, warehouseId: string, right: Right): void {
  if (!mayReach(caller, warehouseId, right)) throw new CallerRefused(missingRight(right));
}
