/** Identifies the caller of each request to an API. Independent of any framework. */
import type { Caller, CallerFields } from './caller.ts';
import { type ChangeStream, createChangeStream } from './change-stream.ts';
import { IntrospectionFailure, introspectionAnswer } from './introspection-answer.ts';
import { createIntrospectionEndpoint } from './introspection-endpoint.ts';
import { knownCaller } from './known-caller.ts';
import { createLookUps } from './look-ups.ts';
import { protectedResourceMetadata } from './protected-resource.ts';
import { type ReceivedRequest, receivedToken } from './received-token.ts';
import { cannotTell, invalidToken, type Refusal, withMetadata } from './refusal.ts';
import { createRememberedCallers, type Moment } from './remembered-callers.ts';
import { isMadeUp } from './value-checksum.ts';

export interface IntrospectorOptions {
  /** The service's public origin, such as `https://auth.example.com`. */
  readonly issuer: string;
  /** Allows an issuer with http on another machine, as in a test network. Default: false. */
  readonly allowInsecureIssuer?: boolean;
  /** An internal address of the endpoint, such as `http://10.0.0.7:3000/oauth/introspect`. */
  readonly introspectionEndpoint?: string;
  /** The id of a client of the kind `resource-server`. */
  readonly clientId: string;
  readonly clientSecret: string;
  /** Time limit in milliseconds for a whole look-up, at most 60,000. Default: 1,000. */
  readonly timeoutMs?: number;
  /**
   * If true, answers about active tokens are cached while a stream from the service announces
   * changes; without a stream every call is introspected. Default: every call is introspected.
   */
  readonly live?: boolean;
  /** Maximum number of cached callers. Default: 50,000. */
  readonly mostRemembered?: number;
  /**
   * Milliseconds after which a cached answer is no longer used, at least 1,000. Before that, a
   * token in use is introspected again in the background. Default: 600,000, ten minutes.
   */
  readonly rememberForMs?: number;
  /**
   * Maximum number of open connections to the service. Default: 16. Further requests wait for a connection: if the
   * service is too slow, more connections would only make it slower for all APIs.
   */
  readonly maxConnections?: number;
  /**
   * Receives each failed introspection, which is the cause of a 503 unless it ran in the background,
   * and each failure of the stream. Default: prints at most one message a second.
   */
  readonly onFailure?: (failure: IntrospectionFailure) => void;
  /** This API's address, such as `https://api.example.com/graphql`: challenges link to its metadata. */
  readonly resource?: string;
  /** Milliseconds since the epoch. */
  readonly clock?: () => number;
}

export type Identified = (
  | { readonly caller: Caller; readonly refusal?: undefined }
  | { readonly refusal: Refusal; readonly caller?: undefined }
) & {
  /** `memory`: a cached answer; `service`: an introspection; `request`: the request has no valid token. */
  readonly decidedBy: 'memory' | 'service' | 'request';
};

export interface Introspector {
  /** Returns the caller, or the refusal to respond with. Never rejects: a failure is a refusal, too. */
  identify(request: ReceivedRequest): Promise<Identified>;
  /** Closes all connections and the stream. */
  close(): void;
}

const MAX_REMEMBERED = 50_000;
const MAX_TIMEOUT_MS = 60_000;
const REMEMBER_FOR_MS = 600_000;
const MIN_REMEMBER_FOR_MS = 1_000;
/** Milliseconds between two searches for callers to introspect again. */
const BACKGROUND_INTERVAL = 100;
/** Seconds for `Retry-After`. The service detects within one second that its stores work again. */
const RETRY_AFTER = 2;

/** @throws TypeError if an option cannot work. */
export const createIntrospector = (options: IntrospectorOptions): Introspector =>
  introspectorOver(createIntrospectionEndpoint, options);

/** `createIntrospector` with another transport than HTTP, for the test vectors of `docs/wire`. */
export function introspectorOver(
  createEndpoint: typeof createIntrospectionEndpoint,
  options: IntrospectorOptions,
): Introspector {
  const { issuer, clientId, clientSecret } = options;
  const { timeoutMs = 1_000, maxConnections = 16, clock = Date.now } = options;
  const { live = false, mostRemembered: maxRemembered = MAX_REMEMBERED } = options;
  const { rememberForMs: maxAgeMs = REMEMBER_FOR_MS } = options;
  const onFailure = neverThrowing(options.onFailure ?? printOnceASecond());
  if (!clientId || !clientSecret) throw new TypeError('clientId and clientSecret are required');
  if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS)) {
    throw new TypeError(`timeoutMs must be above 0 and at most ${MAX_TIMEOUT_MS}`);
  }
  if (!(maxRemembered >= 1)) throw new TypeError('mostRemembered must be a number above 0');
  if (!(maxAgeMs >= MIN_REMEMBER_FOR_MS)) {
    throw new TypeError(`rememberForMs must be at least ${MIN_REMEMBER_FOR_MS}`);
  }
  const { host } = requestOrigin(options);
  const url = endpointOf(options);
  const { resource } = options;
  const { parameter } = resource ? protectedResourceMetadata({ issuer, resource }) : {};

  const endpoint = createEndpoint({
    url,
    host,
    clientId,
    clientSecret,
    maxConnections,
  });
  const remembered = createRememberedCallers({ maxSize: maxRemembered, maxAgeMs, clock });
  const lookUps = createLookUps({ ask, timeoutMs });
  const stream = live
    ? createChangeStream({
        listen: endpoint.listen,
        onFailure,
        onChange: remembered.change,
        onStart: (isComplete) => void (isComplete || remembered.forgetAll()),
        onLost: remembered.endSignals,
      })
    : undefined;

  let isAskingAgain = false;
  async function askAgain(): Promise<void> {
    if (isAskingAgain || !stream?.stands) return;
    isAskingAgain = true;
    await Promise.all(remembered.takeDue(BACKGROUND_INTERVAL).map(lookUps.find));
    isAskingAgain = false;
  }
  const background = live ? setInterval(askAgain, BACKGROUND_INTERVAL).unref() : undefined;

  async function ask(token: string, deadline: number): Promise<Outcome> {
    const asked = remembered.now();
    try {
      const answer = introspectionAnswer(await endpoint.ask(token, deadline), issuer);
      return stream ? { caller: known(token, answer.caller, asked, stream) } : answer;
    } catch (error) {
      const failure = asFailure(error);
      onFailure(failure);
      return failure;
    }
  }

  function known(
    token: string,
    fields: CallerFields | undefined,
    asked: Moment,
    { stands }: ChangeStream,
  ): Caller | undefined {
    if (fields && stands) return remembered.keep(token, fields, asked);
    if (!fields) {
      remembered.drop(token);
      return undefined;
    }
    const caller = knownCaller(fields, clock);
    // Without a stream the end of this access would not be announced: fire the signal now.
    caller.end();
    return caller;
  }

  return {
    async identify(request) {
      const { token, refusal } = receivedToken(request);
      if (refusal) return { refusal: withMetadata(refusal, parameter), decidedBy: 'request' };
      const found = stream?.stands ? remembered.find(token) : undefined;
      if (found) return { caller: found, decidedBy: 'memory' };
      if (isMadeUp(token)) {
        return { refusal: withMetadata(invalidToken(), parameter), decidedBy: 'request' };
      }
      const outcome = await lookUps.find(token);
      if (outcome instanceof IntrospectionFailure) {
        const refusal = cannotTell(outcome.retryAfterSeconds ?? RETRY_AFTER);
        return { refusal, decidedBy: 'service' };
      }
      if (outcome.caller) return { caller: outcome.caller, decidedBy: 'service' };
      return { refusal: withMetadata(invalidToken(), parameter), decidedBy: 'service' };
    },
    close() {
      clearInterval(background);
      stream?.close();
      remembered.forgetAll();
      endpoint.close();
    },
  };
}

type Outcome = { readonly caller: Caller | undefined } | IntrospectionFailure;

const asFailure = (error: unknown): IntrospectionFailure =>
  error instanceof IntrospectionFailure
    ? error
    : new IntrospectionFailure('failed', 'introspection failed', { cause: error });

/** Wraps a callback of the API, because an error in it must not end the request or the process. */
function neverThrowing(onFailure: (failure: IntrospectionFailure) => void): (failure: IntrospectionFailure) => void {
  return (failure) => {
    try {
      onFailure(failure);
    } catch (error) {
      console.error('onFailure threw', error);
    }
  };
}

/** Prints at most one line a second, because every call fails while the service is unavailable. */
function printOnceASecond(): (failure: IntrospectionFailure) => void {
  let printedAt = Number.NEGATIVE_INFINITY;
  return (failure) => {
    if (performance.now() - printedAt < 1_000) return;
    printedAt = performance.now();
    console.error(failure.message);
  };
}

function requestOrigin({ issuer, allowInsecureIssuer = false }: IntrospectorOptions): URL {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
  if (url?.origin !== issuer) {
    throw new TypeError('issuer must be an origin without a path: https://auth.example.com');
  }
  const isLoopback = /^(localhost|\[::1\]|127(\.\d+){3})$/.test(url.hostname);
  if (url.protocol === 'https:' || isLoopback || allowInsecureIssuer) return url;
  throw new TypeError(
    `the issuer ${issuer} is http: others on the network could read tokens and the client secret, ` +
      'and forge answers. Use the https address, or set allowInsecureIssuer in a test network',
  );
}

function endpointOf({ issuer, introspectionEndpoint }: IntrospectorOptions): URL {
  const address = introspectionEndpoint ?? `${issuer}/oauth/introspect`;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url;
  throw new TypeError('introspectionEndpoint must be an http or https URL');
}
