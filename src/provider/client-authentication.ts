/** Authenticates the client of a request: by Basic header or by form, never by both. */
import type { Context, Next } from 'koa';
import type { Clock } from '../base/clock.ts';
import { requestState } from '../base/request-state.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { findSecret, matchesSecret, refusedFrom } from '../clients/client-secrets.ts';
import type { LastUsed } from '../storage/last-used.ts';
import { isFromPage, requireOwnPage } from './cross-origin.ts';
import type { FailureLimits } from './failure-limits.ts';
import { formOf } from './form.ts';
import { OAuthError } from './oauth-error.ts';

export type ClientAuthentication = ReturnType<typeof createClientAuthentication>;

const authenticated = requestState<Client>('requireClient');

export const authenticatedClient = authenticated.get;
/** Like `authenticatedClient`; undefined if no client was authenticated, or not yet. */
export const findAuthenticatedClient = authenticated.find;

export function createClientAuthentication(parts: {
  clients: ClientRegistry;
  failures: Pick<FailureLimits, 'answerOf'>;
  lastUsed: Pick<LastUsed<'client' | 'client_secret'>, 'record'>;
  issuer: string;
  clock: Clock;
  /** `leaks.secret_grace` */
  graceSeconds: number;
}) {
  const { clients, failures, lastUsed, issuer, clock, graceSeconds } = parts;

  /** Records the use of the secret. Returns the cause of the refusal, if it must be refused. */
  function secretProblem(client: Client, presented: string): string | undefined {
    const secret = findSecret(client, presented);
    if (!secret) return presented ? WRONG_SECRET : WRONG_METHOD;
    const until = refusedFrom(client, secret, graceSeconds);
    if (until && until.getTime() <= clock()) return LEAKED_SECRET;
    lastUsed.record('client_secret', secret.id);
    lastUsed.record('client', client.id);
    return undefined;
  }

  return {
    /**
     * Route step: authenticates the client of a form request (RFC 6749 §2.3) for
     * `authenticatedClient`. Public clients only send their id.
     *
     * @throws OAuthError `invalid_client`, or TooManyFailures in its place; `invalid_request`, also
     *   for a web page that is not the client's own
     */
    async requireClient(ctx: Context, next: Next): Promise<void> {
      const { id, secret, byHeader } = presentedCredentials(ctx);
      // RFC 6749 §5.2 requires it if the header was used. Also sent if there were no credentials.
      const challenge = { 'WWW-Authenticate': `Basic realm="${issuer}"` };
      if (!id)
        throw new OAuthError(401, 'invalid_client', 'the request names no client', challenge);
      const refusal = async (cause: string): Promise<OAuthError> => {
        const description = 'client authentication failed';
        const headers = byHeader ? challenge : {};
        const refused = new OAuthError(401, 'invalid_client', description, headers, cause);
        return isFromPage(ctx) ? refused : failures.answerOf(ctx, refused, id);
      };
      const client = await clients.find(id);
      if (client) ctx.state.clientId = client.id;
      if (!client || client.isSuspended) {
        // Do the same work as for a known client, so that the time does not reveal which ids exist.
        matchesSecret(undefined, secret ?? '');
        throw await refusal(client ? 'the client is suspended' : 'there is no such client');
      }
      // Check the origin before the secret, so that no page can guess secrets.
      requireOwnPage(client, ctx);
      const publicProblem = secret === undefined ? undefined : WRONG_METHOD;
      const isPublic = client.kind === 'public';
      const problem = isPublic ? publicProblem : secretProblem(client, secret ?? '');
      if (problem) throw await refusal(problem);
      authenticated.set(ctx, client);
      await next();
    },
  };
}

const WRONG_METHOD =
  'a confidential client must send its secret, and a public one has none to send';
const WRONG_SECRET = 'client_secret is not one of the live secrets of the client';
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
  const [, encoded = ''] = /^basic ([A-Za-z0-9+/]+={0,2})$/i.exec(header) ?? [];
  const [, headerId, headerSecret] =
    /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  if (headerId === undefined || headerSecret === undefined) {
    throw invalidRequest('the Authorization header is not Basic credentials');
  }
  const decoded = { id: formDecode(headerId), secret: formDecode(headerSecret), byHeader: true };
  if (id !== undefined && id !== decoded.id) {
    throw invalidRequest('client_id differs from the one in the Authorization header');
  }
  return decoded;
}

/** Decodes half of a Basic credential: RFC 6749 §2.3.1 form-encodes both before joining them. */
function formDecode(text: string): string {
  // The ids and secrets that we issue need no decoding.
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw invalidRequest('the Authorization header is not form-encoded');
  }
}

const invalidRequest = (description: string): OAuthError =>
  new OAuthError(400, 'invalid_request', description);
