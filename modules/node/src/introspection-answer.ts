/** Reads an introspection answer (RFC 7662 §2.2): a caller, an inactive token, or a failure. */
import type { CallerFields, Organization, Right, Role, Warehouse } from './caller.ts';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

export interface IntrospectionAnswer {
  /** Undefined if the token is not active. */
  readonly caller: CallerFields | undefined;
}

/**
 * Parses an answer. Roles and rights that this version does not know give no access.
 *
 * @throws IntrospectionFailure unless the answer is certainly valid.
 */
export function introspectionAnswer(raw: RawAnswer, issuer: string): IntrospectionAnswer {
  refuseOtherStatus(raw);
  const answer = objectIn(raw.body);
  if (answer.active === false) return { caller: undefined };
  if (answer.active !== true) throw malformed('does not say whether the token is active');
  if (answer.iss !== issuer) throw malformed(`is not from the issuer ${issuer}`);
  return { caller: callerIn(answer) };
}

/** @param what the name of the request, and the meaning of 429, for messages. */
export function refuseOtherStatus(
  { status, headers }: Pick<RawAnswer, 'status' | 'headers'>,
  { asked, throttled } = INTROSPECTION,
): void {
  if (status === 200) return;
  const wait = Number(headers['retry-after']);
  const retryAfterSeconds = Number.isInteger(wait) && wait > 0 ? wait : undefined;
  const fail = (reason: 'credentials_refused' | 'throttled' | 'failed', what: string) =>
    new IntrospectionFailure(reason, `${asked} ${what}`, { retryAfterSeconds });
  if (status === 401) {
    throw fail('credentials_refused', 'refuses the client id or secret of this API');
  }
  if (status === 429) throw fail('throttled', throttled);
  throw fail('failed', `answered with status ${status}`);
}

const INTROSPECTION = {
  asked: 'introspection',
  throttled: 'refuses this API for a while after too many wrong secrets',
};

type Fields = Readonly<Record<string, unknown>>;

function callerIn(answer: Fields): CallerFields {
  const subject = textIn(answer, 'sub');
  const exp = timeIn(answer, 'exp');
  // Check `iat` although it is not used: a proxy or program that has changed `iat` may have changed other members.
  timeIn(answer, 'iat');
  const reach = {
    subject,
    ...(exp !== undefined && { expiresAt: new Date(exp * 1000) }),
    organizations: organizationsIn(answer.organizations),
    ...(answer.withheld !== undefined && { withheld: listIn(answer.withheld).map(asText) }),
  };
  const person = {
    accountId: subject,
    ...optional(answer, 'username', 'username'),
    ...externalIdIn(answer),
  };
  const tokenType = textIn(answer, 'token_type').toLowerCase();
  if (tokenType === 'api_key')
    return { ...reach, ...person, method: 'api_key', ...optional(answer, 'api_key', 'apiKey') };
  if (tokenType !== 'bearer') throw malformed('has an unknown token_type');

  const clientId = textIn(answer, 'client_id');
  // RFC 9700 §4.15: do not treat a client that acts for itself as a person.
  if (subject === clientId) return { ...reach, method: 'client_credentials', clientId };
  const authorization = optional(answer, 'authorization', 'authorization');
  return { ...reach, ...person, method: 'authorization_code', clientId, ...authorization };
}

const ROLES: readonly unknown[] = ['owner', 'admin', 'member', 'viewer'] satisfies Role[];
const RIGHTS: readonly unknown[] = ['read', 'write', 'manage'] satisfies Right[];

const isRole = (value: unknown): value is Role => ROLES.includes(value);
const isRight = (value: unknown): value is Right => RIGHTS.includes(value);

function organizationsIn(value: unknown): Organization[] {
  if (value === undefined) {
    throw malformed('has no organizations: is this client registered as a resource server?');
  }
  return objectsIn(value).flatMap((organization) => {
    const { role } = organization;
    if (!isRole(role)) return [];
    return [{ ...named(organization), role, warehouses: warehousesIn(organization) }];
  });
}

const warehousesIn = ({ warehouses }: Fields): Warehouse[] =>
  objectsIn(warehouses).map((warehouse) => ({
    ...named(warehouse),
    rights: listIn(warehouse.rights).filter(isRight),
  }));

const named = (fields: Fields) => ({
  id: textIn(fields, 'id'),
  ...externalIdIn(fields),
  name: textIn(fields, 'name'),
});

const externalIdIn = (fields: Fields) => optional(fields, 'external_id', 'externalId');

/** Returns the member under `name`; an empty object if the answer does not have the member. */
function optional<Name extends string>(fields: Fields, from: string, name: Name): { [Key in Name]?: string } {
  const { [from]: value } = fields;
  if (value === undefined) return {};
  if (typeof value !== 'string') throw malformed(`has another value instead of a text in ${from}`);
  return { [name]: value } as { [Key in Name]?: string };
}

/** The end of the year 9999, in seconds: many languages have no dates after it. */
const MAX_TIME = 253_402_300_799;

/** Refuses a wrong `exp`, which must not be read as an absent one: an access without `exp` never expires. */
function timeIn(fields: Fields, name: 'exp' | 'iat'): number | undefined {
  const value = fields[name];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= 0 && value <= MAX_TIME) return value;
  throw malformed(`has another value instead of a time in ${name}`);
}

function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string' || value === '') throw malformed(`has no ${name}`);
  return value;
}

function asText(value: unknown): string {
  if (typeof value === 'string') return value;
  throw malformed('has another value instead of a text in a list');
}

function listIn(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw malformed('has another value instead of a list');
}

const objectsIn = (value: unknown): Fields[] => listIn(value).map(asObject);

function asObject(value: unknown): Fields {
  if (typeof value === 'object' && value !== null) return value as Fields;
  throw malformed('has another value instead of an object');
}

function objectIn(json: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // Do not pass on the parser's own message: it repeats a piece of its input.
    throw malformed('is not JSON');
  }
  return asObject(value);
}

const malformed = (what: string): IntrospectionFailure =>
  new IntrospectionFailure('malformed_answer', `the introspection answer ${what}`);

/** Stable codes: monitoring may compare them. */
export type FailureReason =
  /** There was no connection, or the connection broke. */
  | 'unreachable'
  /** The complete answer did not arrive within the time limit. */
  | 'timed_out'
  /** The API's client id or secret is wrong, or its client is suspended. */
  | 'credentials_refused'
  /** Status 429: too many wrong secrets, or too many streams of this client. */
  | 'throttled'
  /** The service answered with any other status but 200. */
  | 'failed'
  /** Status 200 with a body that Gatehouse does not send to a resource server. */
  | 'malformed_answer';

/** Neither the message nor `cause` contains a token. */
export class IntrospectionFailure extends Error {
  readonly reason: FailureReason;
  /** The value of `Retry-After` in the answer. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    reason: FailureReason,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number | undefined } = {},
  ) {
    super(message, options);
    this.name = 'IntrospectionFailure';
    this.reason = reason;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
