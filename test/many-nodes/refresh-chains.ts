/** Clients that refresh repeatedly, and keep the token of the latest successful response. */
import { tokensOf } from '../provider/partner-tokens.ts';
import { refresh, type TestClient } from '../support/oauth.ts';

export interface RefreshChain {
  /** The refresh token of the latest response with status 200. */
  readonly token: string;
  /** The number of refreshes that succeeded. */
  readonly length: number;
  /** Refreshes once. A lost response (a connection error or a 502) does not change the token. */
  next(): Promise<void>;
  readonly unanswered: number;
}

/** `next` throws if a refresh is refused: the chain is broken. */
export function refreshChain(issuer: string, client: TestClient, first: string): RefreshChain {
  let token = first;
  let length = 0;
  let unanswered = 0;
  return {
    get token() {
      return token;
    },
    get length() {
      return length;
    },
    get unanswered() {
      return unanswered;
    },
    async next() {
      const answer = await refresh(issuer, client, token).catch(() => undefined);
      if (answer?.status === 200) {
        token = tokensOf(answer).refreshToken;
        length += 1;
      } else if (!answer || answer.status === 502) {
        unanswered += 1;
      } else {
        throw new Error(`refused after ${length} refreshes: ${answer.status} ${answer.text}`);
      }
    },
  };
}
