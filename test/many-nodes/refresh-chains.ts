/** Clients that refresh again and again, and remember the token that the last 200 brought them. */
import { tokensOf } from '../provider/partner-tokens.ts';
import { refresh, type TestClient } from '../support/oauth.ts';

export interface RefreshChain {
  /** The newest refresh token that a 200 brought. */
  readonly token: string;
  /** Refreshes that succeeded. */
  readonly length: number;
  /** One more refresh. An answer that is lost (a connection error, a 502) leaves the token as it is. */
  next(): Promise<void>;
  readonly unanswered: number;
}

/** @throws Error from `next` where a refresh is refused: the chain is broken. */
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
