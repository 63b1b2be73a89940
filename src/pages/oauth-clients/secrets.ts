/** `/profile/oauth-clients/:id/secrets`: lists, adds and removes the secrets of a client, and shows a new one once. */
import type { Context, Next } from 'koa';
import type { OneTimeValues } from '../../accounts/one-time-values.ts';
import type { Clock } from '../../base/clock.ts';
import { message } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { type ClientKind, type ClientSecret, hasSecret } from '../../clients/client.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { formerSecretsOf, type OwnedClient } from '../../clients/client-row.ts';
import { isRenewable, MAX_SECRETS, refusedFrom } from '../../clients/client-secrets.ts';
import { formOf } from '../../provider/form.ts';
import { endingRoutes } from '../ending.ts';
import { formRoutes, type Said } from '../form-step.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, type Route, type ShownApi } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import type { ConfirmView } from '../view-data.ts';
import { momentOrNothing, toMoment } from '../words/moment.ts';
import { environmentAround } from './connect.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

const partOf = (client: OwnedClient): string => urlOf(client, 'secrets');

export function clientSecretsPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clock: Clock;
  readonly clients: ClientRegistry;
  readonly oneTimeValues: OneTimeValues;
  /** The setting `leaks.secret_grace`, in seconds. */
  readonly graceSeconds: number;
  readonly issuer: string;
  readonly api: ShownApi | undefined;
}): Route[] {
  const { kit, own, clock, clients, oneTimeValues, graceSeconds, issuer, api } = parts;

  async function draw(ctx: Context, { notice, problems }: Said): Promise<void> {
    const client = ownClientOf(ctx);
    await kit.render(ctx, 'oauth-client-secrets', {
      head: await own.head(ctx, 'secrets'),
      notice,
      problems,
      live: secretRowsOf(client, clock(), graceSeconds),
      ...changesOf(client),
    });
  }

  async function show(ctx: Context): Promise<void> {
    if (!hasSecret(ownClientOf(ctx).kind)) ctx.throw(404, 'this client has no secrets');
    await draw(ctx, { notice: await kit.notices.take(ctx), problems: [] });
  }

  const rotating = formRoutes<object>(kit, {
    path: `${CLIENT}/rotate-secret`,
    admit: [own.requireOwnClient],
    isForEverybody: false,
    read: () => ({}),
    stored: (ctx) => ({ page: partOf(ownClientOf(ctx)) }),
    draw: (ctx, _nothing, said) => draw(ctx, said),
    async save(ctx) {
      const client = ownClientOf(ctx);
      const { secret } = await clients.addSecret(client.id, (tx, { lastFour }) =>
        own.record(ctx, 'client_secret_added', { last_four: lastFour }, tx),
      );
      const shown: ShownSecret = { clientId: client.id, value: secret, isOfNewClient: false };
      return { url: `${urlOf(client)}/created?once=${await oneTimeValues.store(accountOf(ctx).id, shown)}` };
    },
  });

  /** Redirects to the list of secrets if the query is missing (a sign-in loses the query) or names the only secret. */
  async function requireAnotherSecret(ctx: Context, next: Next): Promise<void> {
    const { secret_id: asked } = ctx.query;
    const isAnother = asked !== undefined && ownClientOf(ctx).secrets.some(({ id }) => id !== asked);
    await (ctx.method === 'POST' || isAnother ? next() : seeOther(ctx, partOf(ownClientOf(ctx))));
  }

  const removing = endingRoutes<SecretRow>(kit, {
    path: `${CLIENT}/remove-secret`,
    admit: [own.requireOwnClient, requireAnotherSecret],
    async find(ctx) {
      const id = ctx.method === 'POST' ? formOf(ctx).get('secret_id') : ctx.query.secret_id;
      return secretRowsOf(ownClientOf(ctx), clock(), graceSeconds).find((row) => row.id === id);
    },
    ask(ctx, secret) {
      const { name, kind } = ownClientOf(ctx);
      return {
        section: 'oauth-clients',
        heading: message('oauth-clients.remove-secret-heading', { lastFour: secret.lastFour, client: name }),
        ...lastUseOf(secret, kind),
        fields: [{ name: 'secret_id', value: secret.id }],
        button: message('oauth-clients.remove-secret'),
      };
    },
    async end(ctx, secret) {
      const client = ownClientOf(ctx);
      try {
        await clients.removeSecret(client.id, secret.id, (tx, { lastFour }) =>
          own.record(ctx, 'client_secret_removed', { last_four: lastFour }, tx),
        );
      } catch (error) {
        if (error instanceof Refusal && error.code === 'secret_unknown') return undefined;
        throw error;
      }
      const leavesTokens = String(leavesTokensOf(secret, client.kind));
      return { said: message('client-secrets.removed', { leavesTokens }) };
    },
    already: message('oauth-clients.no-such-secret'),
    back: (ctx) => partOf(ownClientOf(ctx)),
  });

  async function take(ctx: Context): Promise<ShownSecret | undefined> {
    // HEAD must not consume the one-time secret.
    if (ctx.method !== 'GET') return undefined;
    const once = String(ctx.query.once ?? '');
    const shown = await oneTimeValues.take<ShownSecret>(accountOf(ctx).id, once);
    return shown?.clientId === ownClientOf(ctx).id ? shown : undefined;
  }

  async function showCreated(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const shown = await take(ctx);
    if (shown) return kit.render(ctx, 'oauth-client-created', shownOnce(client, shown, { issuer, api }));
    await kit.render(ctx, 'secret-shown', {
      section: 'oauth-clients',
      heading: message('client-secret.shown-already'),
      remedy: message('client-secret.not-copied'),
      next: { href: partOf(client), label: message('client-secret.go') },
    });
  }

  return [
    get(`${CLIENT}/secrets`, ...own.page, show),
    get(`${CLIENT}/created`, ...own.page, showCreated),
    ...rotating,
    ...removing,
  ];
}

/** What the page offers to do with the secrets. */
export function changesOf(client: OwnedClient) {
  const count = client.secrets.filter(({ leakedAt }) => !leakedAt).length;
  return {
    /** Undefined if the client has the maximum number of secrets. */
    rotateUrl: hasSecret(client.kind) && count < MAX_SECRETS ? `${urlOf(client)}/rotate-secret` : undefined,
    /** Undefined if the client has only one secret, which cannot be removed. */
    removeUrl: client.secrets.length > 1 ? `${urlOf(client)}/remove-secret` : undefined,
    renewUrl: isRenewable(client.kind) ? `${urlOf(client)}/renew` : undefined,
    renewed: momentOrNothing(client.renewedAt),
  };
}

/** True if access tokens outlive the secret: only machine clients get tokens by their secret alone. */
const leavesTokensOf = ({ refusedFrom }: SecretRow, kind: ClientKind): boolean => kind === 'machine' && !refusedFrom;

/** Describes the effect of removing a secret, with a warning if the secret may still be in use. */
function lastUseOf(secret: SecretRow, kind: ClientKind): Pick<ConfirmView, 'warning' | 'consequences'> {
  const { lastFour, lastUsed, created, isSafeToRemove } = secret;
  const use = message('client-secrets.last-use', {
    secret: `gate_cs_…${lastFour}`,
    isUsed: String(lastUsed !== undefined),
    at: lastUsed ?? created,
    isSafe: String(isSafeToRemove),
  });
  const effect = message('client-secrets.remove-effect');
  const ends = leavesTokensOf(secret, kind) ? [effect, message('client-secrets.remove-tokens')] : [effect];
  return isSafeToRemove ? { consequences: [use, ...ends] } : { warning: use, consequences: ends };
}

/** If a secret is unused for one day, even a client that runs daily has changed to the newer secret. */
const UNUSED_MS = 86_400_000;

export type SecretRow = ReturnType<typeof secretRowsOf>[number];

/** Returns the rows, newest secret first. */
function secretRowsOf(client: OwnedClient, now: number, graceSeconds: number) {
  const { secrets } = client;
  const usable = secrets.filter(({ leakedAt }) => !leakedAt);
  const former = formerSecretsOf(client);
  const refusal = (secret: ClientSecret) => refusedFrom(client, secret, graceSeconds);
  const isRefused = (secret: ClientSecret) => (refusal(secret)?.getTime() ?? now + 1) <= now;
  return secrets.toReversed().map((secret) => ({
    id: secret.id,
    lastFour: secret.lastFour,
    created: toMoment(secret.createdAt),
    lastUsed: momentOrNothing(secret.lastUsedAt),
    isKnownToFormerOwner: former.includes(secret),
    refusedFrom: momentOrNothing(refusal(secret)),
    isRefused: isRefused(secret),
    isSafeToRemove:
      (isRefused(secret) && usable.length > 0) ||
      (now - lastSeen(secret) >= UNUSED_MS &&
        // The most recently used secret may be the one that the client needs, even if its last use was long ago.
        usable.some((other) => lastSeen(other) > lastSeen(secret))),
  }));
}

const lastSeen = ({ lastUsedAt, createdAt }: ClientSecret): number => (lastUsedAt ?? createdAt).getTime();

/** The data that `OneTimeValues` stores until the page shows the secret. */
export interface ShownSecret {
  readonly clientId: string;
  readonly value: string;
  /** False if the client already had another secret. */
  readonly isOfNewClient: boolean;
  /** True if the client was renewed, which ends all other secrets. */
  readonly isOnlyOne?: boolean;
}

export const shownOnce = (
  client: OwnedClient,
  { value: secret, isOfNewClient, isOnlyOne }: ShownSecret,
  served: Parameters<typeof environmentAround>[1],
) => ({
  heading: message(isOfNewClient ? 'client-secret.new-client' : 'client-secret.new-secret'),
  advice: isOfNewClient
    ? message('client-secret.copy-now')
    : message(isOnlyOne ? 'client-secret.switch-only' : 'client-secret.switch'),
  name: client.name,
  id: client.id,
  secret,
  environment: environmentAround(client, served, secret),
  nextUrl: `${urlOf(client, 'connect')}?from=secret`,
});
