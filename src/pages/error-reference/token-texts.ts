/** What the errors of the token endpoint and its neighbors mean, for the developer of a client. */
import type { Lifetimes } from '../routes.ts';
import { durationText } from '../words/moment.ts';

export const tokenErrorTexts = {
  invalid_request: {
    title: 'The request is not formed as it must be',
    meaning:
      'A parameter is missing, repeated or malformed, or two parameters contradict each other. ' +
      'The error_description names the one we stopped at. Nothing was issued and nothing was used up.',
    causes: [
      {
        cause: 'The authorization request carries neither state nor code_challenge.',
        remedy: 'Send a random state, a code_challenge with S256, or both.',
      },
      {
        cause:
          'A public client sent no code_challenge, or a code_challenge_method other than S256.',
        remedy: 'Send code_challenge and code_challenge_method=S256. The method plain is refused.',
      },
      {
        cause: 'The token request was sent as JSON or multipart.',
        remedy: 'Send the parameters as application/x-www-form-urlencoded in the body of a POST.',
      },
      {
        cause: 'The client secret came in the Basic header and in the body at once.',
        remedy: 'Choose one. Many libraries call the choice the token endpoint auth method.',
      },
      {
        cause: 'redirect_uri is missing, at the authorization or the token endpoint.',
        remedy: 'Send it both times, with exactly the same value, even if only one is registered.',
      },
      {
        cause: 'The code_verifier is shorter than 43 or longer than 128 characters.',
        remedy: 'Use 43 to 128 of A-Z a-z 0-9 - . _ ~ and let your library generate it.',
      },
      {
        cause: 'POST /oauth/token/revoke was sent a token parameter.',
        remedy:
          'That endpoint revokes the access token in the Authorization header. ' +
          'To name a token in the body, use POST /oauth/revoke with your client credentials.',
      },
      {
        cause: 'POST /oauth/token/refresh was called with a refresh token.',
        remedy:
          'That path serves our own pages. Refresh at POST /oauth/token with ' +
          'grant_type=refresh_token.',
      },
    ],
  },
  invalid_client: {
    title: 'We could not establish which client this is',
    meaning:
      'The client ID is unknown, or its authentication failed. ' +
      'The answer is the same for an unknown ID and a wrong secret, so that neither can be guessed.',
    causes: [
      {
        cause:
          'The client ID or the secret is mistyped, cut short, or that of another environment.',
        remedy:
          'A client ID starts with gate_ci_, a secret with gate_cs_ and has 43 characters after it. ' +
          'Compare the last four characters with those on the page of your client.',
      },
      {
        cause: 'The secret was removed after a rotation.',
        remedy:
          'Deploy the newer secret, and remove the older one only when it is shown as unused.',
      },
      {
        cause: 'A public client sent a secret, or a confidential client sent none.',
        remedy: 'Public clients send client_id only and prove themselves with PKCE.',
      },
      {
        cause: 'The client was deleted or suspended.',
        remedy: 'Ask its owner, or the operator of this service.',
      },
    ],
  },
  invalid_grant: {
    title: 'The code or refresh token cannot be used',
    meaning:
      'You are authenticated, but what you want to exchange is unknown, expired, used already, ' +
      'revoked, or belongs to another client. The error_description tells you which.',
    causes: [
      {
        cause: 'The authorization code was used already.',
        remedy:
          'Exchange each code once. A second exchange is taken for theft and ends the tokens ' +
          'of the first: look for double requests to your callback, such as link previews or reloads.',
      },
      {
        cause: ({ authorizationCodeSeconds }) =>
          `The authorization code is older than ${durationText(authorizationCodeSeconds)}.`,
        remedy: 'Exchange it as soon as your callback is called.',
      },
      {
        cause: 'redirect_uri is not the one of the authorization request.',
        remedy: 'Send the same string, character by character, including a trailing slash.',
      },
      {
        cause: 'code_verifier does not match, or was sent for a code that had no challenge.',
        remedy: 'Keep the verifier with the state of this one attempt, and send it with its code.',
      },
      {
        cause: 'A refresh token older than the current one was used after the retry window.',
        remedy:
          'Store the refresh token of every answer before you use its access token. ' +
          'Such a reuse is taken for theft: all tokens of that authorization end, and the person ' +
          'has to be sent through it again.',
      },
      {
        cause: ({ refreshTokenSeconds }) =>
          `The refresh token was not used for ${durationText(refreshTokenSeconds)}, or the connection reached its absolute age.`,
        remedy: 'Send the person through the authorization request again.',
      },
      {
        cause: 'The person disconnected your client, or their account was suspended.',
        remedy: 'Stop retrying, show it as disconnected, and let the person connect again.',
      },
    ],
  },
  unauthorized_client: {
    title: 'This client may not ask for this',
    meaning: 'The client is known and authenticated, but its kind does not allow what it asks for.',
    causes: [
      {
        cause: 'A client registered on the profile page asked for client_credentials.',
        remedy:
          'Use the authorization code. Machine clients are set up by the operator: ask them, ' +
          'or use a personal API key for an integration of your own.',
      },
      {
        cause: 'A machine client started an authorization request or sent a refresh token.',
        remedy: 'Ask for a new access token with client_credentials whenever one expires.',
      },
      {
        cause: 'The account of the client’s owner is suspended, so it collects no approvals.',
        remedy: 'Ask the operator of this service; what was approved before goes on.',
      },
    ],
  },
  unsupported_grant_type: {
    title: 'This grant type does not exist here',
    meaning: 'The token endpoint knows authorization_code, refresh_token and client_credentials.',
    causes: [
      {
        cause: 'grant_type is password, device_code, token-exchange or a JWT bearer grant.',
        remedy: 'Send people through the authorization request, in their browser.',
      },
      {
        cause: 'grant_type is misspelled.',
        remedy: 'Compare with the metadata at /.well-known/oauth-authorization-server.',
      },
    ],
  },
  invalid_scope: {
    title: 'No scopes exist here',
    meaning:
      'A client reaches what the person who approved it can reach at the moment of each call. ' +
      'There is nothing to narrow by scope, so any value is refused rather than ignored.',
    causes: [
      {
        cause: 'Your library adds a default such as openid, profile or offline_access.',
        remedy:
          'Set the scope to empty, or leave it out. A refresh token is issued without any scope.',
      },
      {
        cause: 'Your code sends a scope with a refresh or client credentials request.',
        remedy: 'Remove the parameter at the token endpoint too.',
      },
    ],
  },
  invalid_token: {
    title: 'The access token is not good',
    meaning:
      'The Bearer token is unknown, expired or revoked, or it is not an access token. ' +
      'The answer is 401 with a WWW-Authenticate header.',
    causes: [
      {
        cause: 'The access token is older than the expires_in that it came with.',
        remedy: 'Refresh it, store both new tokens, and repeat the call once.',
      },
      {
        cause: 'The connection was ended, or the token was revoked.',
        remedy: 'If the refresh answers invalid_grant, ask the person to connect again.',
      },
      {
        cause: 'A refresh token or client secret was sent as the Bearer token.',
        remedy: 'Access tokens start with gate_at_ or, for machine clients, gate_mt_.',
      },
      {
        cause: 'An API key was sent to POST /oauth/token/revoke.',
        remedy: 'API keys are revoked on the profile page of the person who made them.',
      },
    ],
  },
  slow_down: {
    title: 'Too many requests',
    meaning:
      'The answer is 429 with a Retry-After header in seconds. It stands in the place of a refusal ' +
      'after too many of them, so a request that is right is answered as ever.',
    causes: [
      {
        cause: 'Many requests in a row failed to authenticate the client.',
        remedy: 'Stop retrying with the same secret, and find out why it is refused.',
      },
      {
        cause: 'A loop starts over without waiting.',
        remedy: 'Wait as long as Retry-After says, then back off further with each try.',
      },
    ],
  },
  too_many_streams: {
    title: 'Too many streams of changes',
    meaning:
      'GET /oauth/introspect/changes is answered 429 while this resource server has as many ' +
      'streams open as it may have. Ask about each token until then.',
    causes: [
      {
        cause: 'A program opens a stream for each request, or does not close those it has left.',
        remedy: 'Open one stream for each instance of your API, and close it when it ends.',
      },
      {
        cause: 'Your API has more instances than the operator of this service expects.',
        remedy: 'Ask them to raise limits.change_streams_per_client.',
      },
    ],
  },
  temporarily_unavailable: {
    title: 'We cannot reach our storage',
    meaning:
      'The answer is 503 with a Retry-After header. Nothing was half issued: ' +
      'the same request may be sent again.',
    causes: [
      {
        cause: 'A database is restarting or out of reach.',
        remedy:
          'Wait as long as Retry-After says and repeat the request. Keep the refresh token you ' +
          'have, and do not treat this as a lost connection.',
      },
    ],
  },
  server_error: {
    title: 'Something failed on our side',
    meaning: 'The request met a fault of ours that we did not foresee. It has been logged.',
    causes: [
      {
        cause: 'A fault of ours.',
        remedy:
          'Repeat it once. If it happens again, tell the operator the X-Request-Id of the answer.',
      },
    ],
  },
} satisfies Record<string, ErrorText>;

export interface ErrorText {
  readonly title: string;
  readonly meaning: string;
  readonly causes: readonly {
    readonly cause: string | ((lifetimes: Lifetimes) => string);
    readonly remedy: string;
  }[];
}
