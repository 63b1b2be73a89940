/**
 * The two grants that give out tokens of an authorization. The engine has authenticated the client
 * and read the parameters before, and answers what is thrown here.
 */
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Logger } from 'pino';
import {
  type Authorization,
  type Authorizations,
  hashOfRequest,
  type IssuedTokens,
  type NotCounted,
  type NothingIssued,
} from '../authorizations/authorization.ts';
import type { Endings } from '../authorizations/endings.ts';
import type { PresentedValue } from '../authorizations/token-formats.ts';
import { sha256 } from '../random-id.ts';
import type { ProviderOutcomes } from './outcomes.ts';

export interface TokenGrantParts {
  readonly authorizations: Authorizations;
  readonly endings: Pick<Endings, 'noteReplay'>;
  readonly outcomes: Pick<ProviderOutcomes, 'refreshRetried' | 'grantReplayed'>;
  readonly log: Logger;
}

/** RFC 6749 §4.1.3, RFC 7636 §4.6. What is refused here leaves the code as good as it was. */
export function exchangeCode(parts: TokenGrantParts) {
  return async function exchange(ctx: KoaContextWithOIDC): Promise<void> {
    const { code, redirect_uri: redirectUri } = required(ctx, 'code', 'redirect_uri');
    const authorization = await requireOwn(ctx, parts, code, 'code');
    await requireCounted(authorization, parts);
    requireVerifier(authorization, ctx.oidc.params?.code_verifier);
    if (hashOfRequest(redirectUri) !== authorization.redirectUriHash) {
      throw invalidGrant('redirect_uri is not the one of the authorization request');
    }
    // Used up last, so that a store that is away or a crash before costs the client nothing.
    const issued = await parts.authorizations.exchange(authorization);
    answer(ctx, parts, authorization, 'code', issued);
  };
}

/** RFC 6749 §6. */
export function refreshTokens(parts: TokenGrantParts) {
  return async function refresh(ctx: KoaContextWithOIDC): Promise<void> {
    const { refresh_token: value } = required(ctx, 'refresh_token');
    const authorization = await requireOwn(ctx, parts, value, 'refresh_token');
    await requireCounted(authorization, parts);
    const { rotation } = authorization.presented;
    const issued = await parts.authorizations.refresh(authorization, rotation);
    if (typeof issued !== 'string' && issued.isRetry) parts.outcomes.refreshRetried();
    answer(ctx, parts, authorization, 'refresh_token', issued);
  };
}

type Kind = 'code' | 'refresh_token';

const NAME = { code: 'authorization code', refresh_token: 'refresh token' } as const;

/** @throws `invalid_request` that names every one that is missing. */
function required<Name extends string>(
  ctx: KoaContextWithOIDC,
  ...names: readonly Name[]
): Readonly<Record<Name, string>> {
  const params = (ctx.oidc.params ?? {}) as Readonly<Record<string, string | undefined>>;
  const missing = names.filter((name) => !params[name]);
  if (missing.length > 0) {
    const list = missing.map((name) => `'${name}'`).join(' and ');
    throw new errors.InvalidRequest(`missing required parameter(s) ${list}`);
  }
  return params as Readonly<Record<Name, string>>;
}

interface PresentedAuthorization<Value> extends Authorization {
  readonly presented: Value;
}

/** The authorization behind the value, where it is one of this client. */
async function requireOwn<Wanted extends Kind>(
  ctx: KoaContextWithOIDC,
  { authorizations }: TokenGrantParts,
  value: string,
  kind: Wanted,
): Promise<PresentedAuthorization<Extract<PresentedValue, { kind: Wanted }>>> {
  const found = await authorizations.find(value);
  if (found?.value.kind !== kind) {
    throw invalidGrant(`${NAME[kind]} is not known here, or its authorization was revoked`);
  }
  const { authorization } = found;
  if (authorization.clientId !== ctx.oidc.client?.clientId) {
    throw invalidGrant('it was issued to another client');
  }
  ctx.state.authorizationId = authorization.id;
  ctx.state.accountId = authorization.accountId;
  const presented = found.value as Extract<PresentedValue, { kind: Wanted }>;
  return { ...authorization, presented };
}

const NOT_COUNTED: Readonly<Record<NotCounted, string>> = {
  ended: 'the authorization was revoked',
  account_unavailable: 'the account of this authorization is suspended or gone',
  client_unavailable: 'the client is suspended or gone',
};

async function requireCounted(
  authorization: Authorization,
  { authorizations }: TokenGrantParts,
): Promise<void> {
  const holders = await authorizations.holdersOf(authorization);
  if (typeof holders === 'string') throw invalidGrant(NOT_COUNTED[holders]);
}

/** RFC 7636 §4.1: 43 to 128 unreserved characters. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

function requireVerifier({ codeChallengeHash }: Authorization, verifier: unknown): void {
  if (typeof verifier !== 'string' || verifier === '') {
    if (codeChallengeHash === undefined) return;
    throw invalidGrant('code_verifier is missing');
  }
  if (!VERIFIER.test(verifier)) {
    throw new errors.InvalidRequest(
      'code_verifier must be 43 to 128 characters of A-Z, a-z, 0-9, "-", ".", "_" and "~"',
    );
  }
  if (codeChallengeHash === undefined) {
    // RFC 9700 §4.8.2: somebody took the challenge out of the authorization request.
    throw invalidGrant(
      'code_verifier was sent, but the authorization request had no code_challenge',
    );
  }
  if (hashOfRequest(sha256(verifier)) !== codeChallengeHash) {
    throw invalidGrant('code_verifier does not match');
  }
}

function answer(
  ctx: KoaContextWithOIDC,
  { endings, outcomes, log }: TokenGrantParts,
  authorization: Authorization,
  kind: Kind,
  issued: IssuedTokens | NothingIssued,
): void {
  if (typeof issued !== 'string') {
    ctx.body = {
      access_token: issued.accessToken,
      expires_in: issued.expiresIn,
      refresh_token: issued.refreshToken,
      token_type: 'Bearer',
    };
    return;
  }
  if (issued === 'replayed') {
    // RFC 6749 §4.1.2, RFC 9700 §4.14.2: somebody else may have it, so all of it is over.
    const { id, clientId } = authorization;
    const about = { requestId: ctx.state.requestId, clientId, authorization: id };
    log.warn(about, `a ${NAME[kind]} was replayed: its authorization is ended`);
    outcomes.grantReplayed(kind);
    endings.noteReplay(authorization, kind, { address: ctx.ip, browser: ctx.get('user-agent') });
  }
  throw invalidGrant(REFUSED[kind][issued]);
}

const REFUSED: Readonly<Record<Kind, Readonly<Record<NothingIssued, string>>>> = {
  code: {
    replayed: 'authorization code was already used',
    expired: 'authorization code has expired',
    too_old: 'authorization code has expired',
    missing: 'the authorization was revoked',
  },
  refresh_token: {
    replayed: 'refresh token was already used, so the whole authorization was revoked',
    expired: 'refresh token has expired',
    too_old: 'the authorization has reached its greatest age, connect again',
    missing: 'refresh token was revoked',
  },
};

/** The engine answers the code with a general sentence; the cause is for who authenticated. */
const invalidGrant = (cause: string): Error => new errors.InvalidGrant(cause);
