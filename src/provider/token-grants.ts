/** Handles the grants of the token endpoint: exchanges codes, refreshes tokens, and issues machine tokens. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import {
  type Authorization,
  type Authorizations,
  hashRequestValue,
  type InactiveReason,
  type IssuedTokens,
  type NothingIssued,
} from '../authorizations/authorization.ts';
import type { Endings } from '../authorizations/endings.ts';
import type { MachineTokens } from '../authorizations/machine-tokens.ts';
import type { PresentedValue } from '../authorizations/token-formats.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { newValue, sha256 } from '../base/random-id.ts';
import { requestOrigin } from '../base/request-state.ts';
import type { Client } from '../clients/client.ts';
import { authenticatedSecret } from './client-authentication.ts';
import { OAuthError } from './oauth-error.ts';
import type { ProviderOutcomes } from './outcomes.ts';

export interface TokenGrantParts {
  readonly authorizations: Authorizations;
  readonly machineTokens: MachineTokens;
  readonly machineTokenLifetimeSeconds: number;
  readonly endings: Pick<Endings, 'end'>;
  readonly outcomes: Pick<ProviderOutcomes, 'refreshRetried' | 'grantReplayed'>;
  readonly log: Logger;
  readonly clock: Clock;
}

interface TokenResponse {
  readonly access_token: string;
  readonly expires_in: number;
  readonly refresh_token?: string;
  readonly token_type: 'Bearer';
}

/** @throws OAuthError `invalid_grant` or `invalid_request`; nothing was changed, except after a replay */
export type Grant = (
  parts: TokenGrantParts,
  client: Client,
  form: URLSearchParams,
  ctx: Context,
) => Promise<TokenResponse>;

export const GRANTS = {
  authorization_code: exchangeCode,
  refresh_token: refreshTokens,
  client_credentials: issueMachineToken,
} satisfies Readonly<Record<string, Grant>>;

/** Exchanges a code (RFC 6749 §4.1.3). A refused code stays usable; a code used twice ends its authorization. */
async function exchangeCode(parts: TokenGrantParts, client: Client, form: URLSearchParams, ctx: Context) {
  const { code, redirect_uri: redirectUri } = requireFields(form, 'code', 'redirect_uri');
  const authorization = await findAuthorization(ctx, parts, client, code, 'code');
  const until = await requireActive(authorization, parts);
  // Also refuse if the cached client predates its renewal: this node may have accepted the client's former secret.
  if (authorization.clientGeneration !== client.generation) throw invalidGrant(INACTIVE_REASONS.renewed);
  requireVerifier(authorization, form.get('code_verifier'));
  if (hashRequestValue(redirectUri) !== authorization.redirectUriHash) {
    throw invalidGrant('redirect_uri is not the one of the authorization request');
  }
  // Consume the code last: if a check, a store or this process fails before, the code stays usable.
  const issuing = parts.authorizations.exchange(authorization, until);
  return respondWith(ctx, parts, { authorization, kind: 'code', issuing });
}

async function refreshTokens(parts: TokenGrantParts, client: Client, form: URLSearchParams, ctx: Context) {
  const { refresh_token: value } = requireFields(form, 'refresh_token');
  const authorization = await findAuthorization(ctx, parts, client, value, 'refresh_token');
  const until = await requireActive(authorization, parts);
  const { rotation } = authorization.presented;
  const issuing = parts.authorizations.refresh(authorization, rotation, client, until);
  return respondWith(ctx, parts, { authorization, kind: 'refresh_token', issuing });
}

async function issueMachineToken(parts: TokenGrantParts, client: Client, _form: URLSearchParams, ctx: Context) {
  const { machineTokens, machineTokenLifetimeSeconds: lifetime, clock } = parts;
  const value = newValue('machine_token');
  const issuedAt = epochSeconds(clock);
  const { id: secretId } = authenticatedSecret(ctx);
  await machineTokens.keep(value, { client, secretId, issuedAt, expiresAt: issuedAt + lifetime });
  return { access_token: value, expires_in: lifetime, token_type: 'Bearer' } as const;
}

type Kind = 'code' | 'refresh_token';

const NAMES = { code: 'authorization code', refresh_token: 'refresh token' } as const;

function requireFields<Name extends string>(
  form: URLSearchParams,
  ...names: readonly Name[]
): Readonly<Record<Name, string>> {
  const missing = names.filter((name) => !form.get(name));
  if (missing.length > 0) {
    const list = missing.map((name) => `'${name}'`).join(' and ');
    throw invalidRequest(`missing required parameter(s) ${list}`);
  }
  return Object.fromEntries(names.map((name) => [name, form.get(name)])) as Record<Name, string>;
}

interface PresentedAuthorization<Value> extends Authorization {
  readonly presented: Value;
}

/** @throws OAuthError `invalid_grant` if the value is unknown or belongs to another client */
async function findAuthorization<Wanted extends Kind>(
  ctx: Context,
  { authorizations }: TokenGrantParts,
  client: Client,
  value: string,
  kind: Wanted,
): Promise<PresentedAuthorization<Extract<PresentedValue, { kind: Wanted }>>> {
  const found = await authorizations.find(value);
  if (found?.value.kind !== kind) {
    throw hiddenGrant(`${NAMES[kind]} is not known here, or its authorization was revoked`);
  }
  const { authorization } = found;
  if (authorization.clientId !== client.id) {
    throw hiddenGrant('it was issued to another client');
  }
  ctx.state.authorizationId = authorization.id;
  ctx.state.accountId = authorization.accountId;
  const presented = found.value as Extract<PresentedValue, { kind: Wanted }>;
  return { ...authorization, presented };
}

const INACTIVE_REASONS: Readonly<Record<InactiveReason, string>> = {
  ended: 'the authorization was revoked',
  renewed: 'it was issued before the client was renewed: send the person through the authorization again',
  account_unavailable: 'the account of this authorization is suspended or gone',
  client_unavailable: 'the client is suspended or gone',
};

/** Returns the date on which the connection ends; undefined if the user set no end date. */
async function requireActive(
  { presented: value, ...authorization }: PresentedAuthorization<PresentedValue>,
  { authorizations }: TokenGrantParts,
): Promise<Date | undefined> {
  const parties = await authorizations.resolveParties({ value, authorization });
  if (typeof parties === 'string') {
    const refuse = parties === 'ended' || parties === 'renewed' ? invalidGrant : hiddenGrant;
    throw refuse(INACTIVE_REASONS[parties]);
  }
  return parties.limit?.until ?? undefined;
}

/** Matches 43 to 128 unreserved characters (RFC 7636 §4.1). */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

function requireVerifier({ codeChallengeHash }: Authorization, verifier: string | null): void {
  if (!verifier) {
    if (codeChallengeHash === undefined) return;
    throw invalidGrant('code_verifier is missing');
  }
  if (!VERIFIER.test(verifier)) {
    throw invalidRequest('code_verifier must be 43 to 128 characters of A-Z, a-z, 0-9, "-", ".", "_" and "~"');
  }
  if (codeChallengeHash === undefined) {
    // RFC 9700 §4.8.2: an attacker removed the challenge from the authorization request.
    throw invalidGrant('code_verifier was sent, but the authorization request had no code_challenge');
  }
  if (hashRequestValue(sha256(verifier)) !== codeChallengeHash) {
    throw invalidGrant('code_verifier does not match');
  }
}

async function respondWith(
  ctx: Context,
  { endings, outcomes, log }: TokenGrantParts,
  {
    authorization,
    kind,
    issuing,
  }: {
    readonly authorization: PresentedAuthorization<PresentedValue>;
    readonly kind: Kind;
    readonly issuing: Promise<IssuedTokens | NothingIssued>;
  },
): Promise<TokenResponse> {
  const issued = await issuing;
  if (typeof issued !== 'string') {
    if (issued.isRetry) outcomes.refreshRetried();
    return {
      access_token: issued.accessToken,
      expires_in: issued.expiresInSeconds,
      refresh_token: issued.refreshToken,
      token_type: 'Bearer',
    };
  }
  if (issued === 'replayed') {
    // RFC 6749 §4.1.2, RFC 9700 §4.14.2: a replayed value may be stolen, so end the authorization.
    const { id, clientId } = authorization;
    const about = { requestId: ctx.state.requestId, clientId, authorization: id };
    log.warn(about, `a ${NAMES[kind]} was replayed: its authorization is ended`);
    outcomes.grantReplayed(kind);
    const cause = kind === 'code' ? 'code_replayed' : 'refresh_token_replayed';
    const origin = requestOrigin(ctx);
    await endings.end({ authorization, cause, actor: 'service', origin });
    if (isSuccessorInUse(authorization)) throw hiddenGrant(EARLIER_TOKEN, REFUSALS[kind].replayed);
  }
  throw invalidGrant(REFUSALS[kind][issued]);
}

/** True if the client has used the successor of the presented refresh token, or an access token issued with it. */
const isSuccessorInUse = ({ presented, rotation, isConfirmed }: PresentedAuthorization<PresentedValue>): boolean =>
  presented.kind === 'refresh_token' && presented.rotation < (isConfirmed ? rotation : rotation - 1);

/** The message does not accuse the sender: the sender may be a client whose token a thief has used before. */
const EARLIER_TOKEN =
  'an earlier refresh token was sent although its successor is in use, so the whole authorization was revoked: ' +
  'store the refresh token that each refresh returns';

const REFUSALS: Readonly<Record<Kind, Readonly<Record<NothingIssued, string>>>> = {
  code: {
    replayed: 'authorization code was already used',
    expired: 'authorization code has expired',
    too_old: 'authorization code has expired',
    missing: 'the authorization was revoked',
    renewed: INACTIVE_REASONS.renewed,
  },
  refresh_token: {
    replayed: 'refresh token was already used, so the whole authorization was revoked',
    expired: 'refresh token has expired',
    too_old: 'the authorization has reached its greatest age, connect again',
    missing: 'refresh token was revoked',
    renewed: 'the client was renewed: refresh tokens of before need its new secret',
  },
};

const invalidRequest = (description: string): OAuthError => new OAuthError(400, 'invalid_request', description);

/** @param cause is sent even to a public client, because it concerns only the value and parameters of the request */
const invalidGrant = (cause: string): OAuthError => new OAuthError(400, 'invalid_grant', cause);

/** @param cause is for the log, the client's owner and clients with a secret; public clients get only `description` */
const hiddenGrant = (cause: string, description = 'grant request is invalid'): OAuthError =>
  new OAuthError(400, 'invalid_grant', description, {}, cause);
