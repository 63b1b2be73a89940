/** Finds out, on each request to an API, who is calling: the part that knows no framework. */
import type { Caller } from './caller.ts';
import { type IntrospectionAnswer, introspectionAnswer } from './introspection-answer.ts';
import { createIntrospectionEndpoint } from './introspection-endpoint.ts';
import { IntrospectionFailure } from './introspection-failure.ts';
import { createLookUps } from './look-ups.ts';
import { protectedResourceMetadata } from './protected-resource.ts';
import { type ReceivedRequest, receivedToken } from './received-token.ts';
import { cannotTell, invalidToken, type Refusal, withMetadata } from './refusal.ts';
import { createRememberedCallers } from './remembered-callers.ts';

export interface IntrospectorOptions {
  /** The service's public origin, `https://auth.example.com`. */
  readonly issuer: string;
  /** Where it is reached, if not there: `http://10.0.0.7:3000/oauth/introspect`. */
  readonly introspectionEndpoint?: string;
  /** Of a client of the kind `resource-server`. */
  readonly clientId: string;
  readonly clientSecret: string;
  /** Milliseconds for a whole look-up; 1,000 unless told. */
  readonly timeoutMs?: number;
  /**
   * 0 (unless told) to 5. A caller may be remembered for so long, if the service's answer allows
   * it; Gatehouse allows it nowhere today, so that every change counts on the next call.
   */
  readonly cacheSeconds?: number;
  /** Connections to the service that are open at the same time; 32 unless told. */
  readonly maxConnections?: number;
  /** Told why callers are answered 503; unless given, one message a second is printed. */
  readonly onFailure?: (failure: IntrospectionFailure) => void;
  /** This API's own address, `https://api.example.com/graphql`: challenges lead to its metadata. */
  readonly resource?: string;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
}

export type Identified =
  | { readonly caller: Caller; readonly refusal?: undefined }
  | { readonly refusal: Refusal; readonly caller?: undefined };

export interface Introspector {
  /** Who is calling, or what to answer instead. Whatever goes wrong, nobody is let in by it. */
  identify(request: ReceivedRequest): Promise<Identified>;
  /** To be called when the API learns that this token was revoked: its next use is asked about. */
  forget(token: string): void;
  /** The same for every token: somebody's access changed. */
  forgetAll(): void;
  /** Closes the connections that are kept open. */
  close(): void;
}

const LONGEST_CACHE_SECONDS = 5;
/** Seconds. The service notices within one that its stores are back. */
const RETRY_AFTER = 2;

/** @throws TypeError when an option cannot work, before any request. */
export function createIntrospector(options: IntrospectorOptions): Introspector {
  const { issuer, clientId, clientSecret } = options;
  const { timeoutMs = 1_000, cacheSeconds = 0, maxConnections = 32, clock = Date.now } = options;
  const { onFailure = printOnceASecond() } = options;
  if (!clientId || !clientSecret) throw new TypeError('clientId and clientSecret are required');
  if (!(timeoutMs > 0)) throw new TypeError('timeoutMs must be a number of milliseconds above 0');
  if (!(cacheSeconds >= 0 && cacheSeconds <= LONGEST_CACHE_SECONDS)) {
    throw new TypeError(`cacheSeconds must be from 0 to ${LONGEST_CACHE_SECONDS}`);
  }
  const { host } = originOf(issuer);
  const url = endpointOf(options);
  const { resource } = options;
  const { parameter } = resource ? protectedResourceMetadata({ issuer, resource }) : {};

  const endpoint = createIntrospectionEndpoint({
    url,
    host,
    clientId,
    clientSecret,
    maxConnections,
  });
  const remembered = createRememberedCallers({ seconds: cacheSeconds, clock });
  const lookUps = createLookUps({ ask, keep, timeoutMs });

  async function ask(token: string, deadline: number): Promise<Outcome> {
    try {
      return introspectionAnswer(await endpoint.ask(token, deadline), issuer);
    } catch (error) {
      const failure = asFailure(error);
      onFailure(failure);
      return failure;
    }
  }

  function keep(token: string, outcome: Outcome): void {
    if (!(outcome instanceof IntrospectionFailure)) remembered.keep(token, outcome);
  }

  return {
    async identify(request) {
      const { token, refusal } = receivedToken(request);
      if (refusal) return { refusal: withMetadata(refusal, parameter) };
      const known = remembered.find(token);
      if (known) return { caller: known };
      const outcome = await lookUps.find(token);
      if (outcome instanceof IntrospectionFailure) {
        return { refusal: cannotTell(outcome.retryAfterSeconds ?? RETRY_AFTER) };
      }
      if (outcome.caller) return { caller: outcome.caller };
      return { refusal: withMetadata(invalidToken(), parameter) };
    },
    forget(token) {
      remembered.forget(token);
      lookUps.forget(token);
    },
    forgetAll() {
      remembered.forgetAll();
      lookUps.forgetAll();
    },
    close: endpoint.close,
  };
}

type Outcome = IntrospectionAnswer | IntrospectionFailure;

const asFailure = (error: unknown): IntrospectionFailure =>
  error instanceof IntrospectionFailure
    ? error
    : new IntrospectionFailure('failed', 'introspection failed', { cause: error });

/** Every call fails while the service is away, and one line says as much as a thousand. */
function printOnceASecond(): (failure: IntrospectionFailure) => void {
  let printedAt = Number.NEGATIVE_INFINITY;
  return (failure) => {
    if (performance.now() - printedAt < 1_000) return;
    printedAt = performance.now();
    console.error(failure.message);
  };
}

function originOf(issuer: string): URL {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
  if (url?.origin === issuer) return url;
  throw new TypeError('issuer must be an origin without a path: https://auth.example.com');
}

function endpointOf({ issuer, introspectionEndpoint }: IntrospectorOptions): URL {
  const address = introspectionEndpoint ?? `${issuer}/oauth/introspect`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url;
  throw new TypeError('introspectionEndpoint must be an http or https URL');
}
