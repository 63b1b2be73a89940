/** Authenticates the client of a request: by Basic header or by form, never by both. */
import type { Context } from 'koa';
import type { Answer, NextStep } from '../base/answer.ts';
import type { Clock } from '../base/clock.ts';
import { requestState } from '../base/request-state.ts';
import type { Client, ClientSecret } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { findSecret, refusedFrom } from '../clients/client-secrets.ts';
import type { LastUsed } from '../storage/last-used.ts';
import type { ClientTurns } from './client-turns.ts';
import { isFromPage, requireOwnPage } from './cross-origin.ts';
import { type FailureLimits, TooManyFailures } from './failure-limits.ts';
import { formOf } from './form.ts';
import { OAuthError } from './oauth-error.ts';

export type ClientAuthentication = ReturnType<typeof createClientAuthentication>;

const authenticated = requestState<Client>('requireClient');
const usedSecret = requestState<ClientSecret>('the secret of requireClient');

export const authenticatedClient = authenticated.get;
/** Returns the authenticated client of the request; undefined if no client was authenticated, or not yet. */
export const findAuthenticatedClient = authenticated.find;
/** Returns the secret with which the client was authenticated; a public client has none. */
export const authenticatedSecret = usedSecret.get;
/** Undefined without a correct secret. */
export const findValidSecret = usedSecret.find;

export function createClientAuthentication(parts: {
  clients: ClientRegistry;
  failures: Pick<FailureLimits, 'answerOf'>;
  lastUsed: Pick<LastUsed<'client' | 'client_secret'>, 'record'>;
  issuer: string;
  clock: Clock;
  inTurn: ClientTurns;
  /** The setting `leaks.secret_grace`, in seconds. */
  graceSeconds: number;
}) {
  const { clients, failures, lastUsed, issuer, clock, inTurn, graceSeconds } = parts;

  function checkSecret(client: Client, presented: string): ClientSecret | string {
    const secret = findSecret(client, presented);
    if (!secret && client.renewedAt && presented) return RENEWED_SECRET;
    if (!secret) return presented ? WRONG_SECRET : WRONG_METHOD;
    const until = refusedFrom(client, secret, graceSeconds);
    if (until && until.getTime() <= clock()) return LEAKED_SECRET;
    return secret;
  }

  /** @param mayBePage false to ignore `Origin`: a proxy forwards the `Origin` of the API's caller */
  async function authenticate(ctx: Context, { id, secret, byHeader }: Credentials, mayBePage = true): Promise<void> {
    // RFC 6749 §5.2 requires a challenge if the header was used. Send it also if there were no credentials.
    const challenge = { 'WWW-Authenticate': `Basic realm="${issuer}"` };
    if (!id) throw new OAuthError(401, 'invalid_client', 'the request names no client', challenge);
    const client = await clients.find(id);
    const refused = (cause: string): OAuthError =>
      new OAuthError(401, 'invalid_client', 'client authentication failed', byHeader ? challenge : {}, cause);
    const refusal = async (cause: string): Promise<OAuthError> =>
      mayBePage && isFromPage(ctx) ? refused(cause) : failures.answerOf(ctx, refused(cause), client?.id);
    if (!client) throw await refusal('there is no such client');
    ctx.state.clientId = client.id;
    if (client.isSuspended) throw await refusal('the client is suspended');
    // Check the origin before the secret, so that no page can guess secrets.
    if (mayBePage) requireOwnPage(client, ctx);
    const publicProblem = secret === undefined ? undefined : WRONG_METHOD;
    const checked = client.kind === 'public' ? publicProblem : checkSecret(client, secret ?? '');
    if (typeof checked === 'string') throw await refusal(checked);
    if (checked) {
      usedSecret.set(ctx, checked);
      lastUsed.record('client_secret', checked.id);
      lastUsed.record('client', client.id);
    }
    authenticated.set(ctx, client);
  }

  async function authenticateInTurn(ctx: Context, next: NextStep, isForCaller: boolean): Promise<Answer> {
    const credentials = presentedCredentials(ctx);
    await authenticate(ctx, credentials);
    const client = authenticatedClient(ctx);
    const work = async (hasWaited: boolean): Promise<Answer> => {
      // If the client changed during the wait, the registry returns another object: authenticate again, as the secret
      // may be removed. A leaked secret's deadline is not checked again, so the wait may exceed it by seconds.
      const isChanged = hasWaited && (await clients.find(client.id)) !== client;
      if (isChanged) await authenticate(ctx, credentials);
      return next();
    };
    return inTurn(client, ctx, work, isForCaller);
  }

  return {
    /**
     * Route step: authenticates the client of a form request (RFC 6749 §2.3). Later steps get the client from
     * `authenticatedClient`. A public client only sends its id. Later steps wait for their turn in the client's queue.
     *
     * @throws OAuthError `invalid_client`; TooManyFailures after too many such refusals; `invalid_request`, also for a
     * web page that is not the client's own; `temporarily_unavailable` or `slow_down`, see client-turns.ts
     */
    requireClient: (ctx: Context, next: NextStep): Promise<Answer> => authenticateInTurn(ctx, next, true),
    /** Like `requireClient`, but the later steps run even if the caller has disconnected. */
    requireRevokingClient: (ctx: Context, next: NextStep): Promise<Answer> => authenticateInTurn(ctx, next, false),

    /**
     * Route step: authenticates the resource server for which a reverse proxy asks, by Basic credentials in a header of
     * its own. The status of a refusal is never 401, because the API's caller would then get another token. It is never
     * above 499, because strangers can cause the refusal, and such a status alerts the operator.
     *
     * @throws OAuthError with status 400, or TooManyFailures
     */
    async requireProxy(ctx: Context, next: NextStep): Promise<Answer> {
      const header = ctx.get(PROXY_HEADER);
      if (!header) throw invalidRequest(`${PROXY_HEADER} must have the resource server's secret`);
      try {
        await authenticate(ctx, basicCredentials(header, PROXY_HEADER), false);
      } catch (error) {
        if (!(error instanceof OAuthError) || error instanceof TooManyFailures) throw error;
        throw new OAuthError(400, error.code, error.description, {}, error.internalCause);
      }
      if (authenticatedClient(ctx).kind !== 'resource-server') {
        throw new OAuthError(400, 'unauthorized_client', 'the client is no resource server');
      }
      return next();
    },
  };
}

/** The `Authorization` header contains the caller's token, so the proxy sends its own credentials in this header. */
const PROXY_HEADER = 'X-Gatehouse-Authorization';

const WRONG_METHOD = 'a confidential client must send its secret, and a public one has none to send';
const WRONG_SECRET = 'client_secret is not one of the live secrets of the client';
const RENEWED_SECRET = `${WRONG_SECRET}: a renewal of the client has ended the earlier ones`;
const LEAKED_SECRET = 'client secret was found in public and is no longer accepted';

interface Credentials {
  readonly id?: string | undefined;
  readonly secret?: string | undefined;
  readonly byHeader: boolean;
}

function presentedCredentials(ctx: Context): Credentials {
  const form = formOf(ctx);
  const header = ctx.get('authorization');
  const id = form.get('client_id') || undefined;
  const secret = form.get('client_secret') || undefined;
  if (!header) return { id, secret, byHeader: false };
  // RFC 6749 §2.3: only one authentication method per request.
  if (secret) throw invalidRequest('a secret must be sent by one mechanism only');
  const decoded = basicCredentials(header, 'Authorization');
  if (id !== undefined && id !== decoded.id) {
    throw invalidRequest('client_id differs from the one in the Authorization header');
  }
  return decoded;
}

function basicCredentials(header: string, name: string) {
  const [, encoded = ''] = /^basic ([A-Za-z0-9+/]+={0,2})$/i.exec(header) ?? [];
  const [, id, secret] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  if (id === undefined || secret === undefined) {
    throw invalidRequest(`the ${name} header is not Basic credentials`);
  }
  return { id: formDecode(id, name), secret: formDecode(secret, name), byHeader: true };
}

/** Decodes the id or secret of a Basic credential: RFC 6749 §2.3.1 form-encodes both before joining them. */
function formDecode(text: string, header: string): string {
  // The ids and secrets that we issue need no decoding.
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw invalidRequest(`the ${header} header is not form-encoded`);
  }
}

const invalidRequest = (description: string): OAuthError => new OAuthError(400, 'invalid_request', description);
