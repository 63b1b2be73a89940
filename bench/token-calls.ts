/** Introspection, refresh and exchange of the authorizations that `filled-stores.ts` has written. */
import type { Deployment } from './deployment.ts';
import { type FilledStores, VERIFIER } from './filled-stores.ts';
import { type Measurement, measure } from './load.ts';
import type { Call } from './open-loop.ts';
import { onIdleCore } from './processor.ts';
import { exchangeOf, introspectionOf, refreshOf } from './token-requests.ts';

export interface TokenCalls {
  /** Number of authorizations that are introspected and refreshed. */
  readonly count: number;
  introspect(): Call;
  refresh(): Call;
  /** Needs codes of `makeCodes`. */
  exchange(): Call;
  /** Replaces the codes. Runs on the core of the service, which must be idle. */
  makeCodes(count: number): Promise<void>;
}

/** Uses every 100th authorization, or more of them if that were less than a thousand. */
const stepIn = (authorizations: number): number => Math.max(1, Math.min(100, Math.floor(authorizations / 1_000)));

export function createTokenCalls(
  { seed }: Pick<Deployment, 'seed'>,
  stores: FilledStores,
  authorizations: number,
): TokenCalls {
  const { confidential: client, resourceServer } = seed.clients;
  const accessTokens: string[] = [];
  const refreshTokens: (string | undefined)[] = [];
  for (let number = 0; number < authorizations; number += stepIn(authorizations)) {
    const { accessToken, refreshToken } = stores.tokensOf(number);
    accessTokens.push(accessToken);
    refreshTokens.push(refreshToken);
  }
  const count = accessTokens.length;
  let introspected = 0;
  let refreshed = 0;
  let codes: string[] = [];

  /** Skips authorizations in use: a refresh token that is sent twice would be a retry. */
  function takeUnused(): [place: number, refreshToken: string] {
    for (let tried = 0; tried < count; tried += 1) {
      const place = refreshed % count;
      refreshed += 1;
      const token = refreshTokens[place];
      refreshTokens[place] = undefined;
      if (token !== undefined) return [place, token];
    }
    throw new Error('no authorization is left: their refreshes failed');
  }

  return {
    count,

    introspect() {
      const token = accessTokens[introspected % count] ?? '';
      introspected += 1;
      return {
        request: introspectionOf(resourceServer, token),
        // Only of answers with status 200: others are failures already.
        answered: ({ status, body }) => status !== 200 || body.startsWith('{"active":true'),
      };
    },

    refresh() {
      const [place, token] = takeUnused();
      return {
        request: refreshOf(client, token),
        answered({ status, body }) {
          // A refused token stays usable: after an answer with 503 the client may repeat the request.
          refreshTokens[place] = /"refresh_token":"([^"]+)"/.exec(body)?.[1] ?? token;
          return status !== 200 || refreshTokens[place] !== token;
        },
      };
    },

    exchange() {
      const code = codes.pop();
      if (code === undefined) throw new Error('no code is left');
      return {
        request: exchangeOf(client, code, VERIFIER),
        answered: ({ status, body }) => status !== 200 || body.includes('"refresh_token"'),
      };
    },

    async makeCodes(wanted) {
      codes = await onIdleCore(() => stores.makeCodes(wanted));
    },
  };
}

/** Sends each next request as soon as the last one is answered. Wrong answers are failures, too. */
export async function closedLoop(
  url: string,
  limit: Parameters<typeof measure>[1],
  next: () => Call,
): Promise<Measurement> {
  let wrong = 0;
  const measured = await measure(url, limit, () => {
    let call: Call | undefined;
    return {
      next() {
        call = next();
        return call.request;
      },
      answered(answer) {
        if (call?.answered?.(answer) === false) wrong += 1;
      },
    };
  });
  return { ...measured, failures: measured.failures + wrong };
}
