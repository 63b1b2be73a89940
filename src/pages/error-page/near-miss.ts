/** Compares an unregistered redirect URI with the nearest registered one, for the owner only. */
import type { Context } from 'koa';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { isDifferent, redirectUriDifference } from '../../clients/redirect-uri-difference.ts';
import type { Visitor } from '../page.ts';

/** Both URIs, split into parts; the parts that differ are marked. */
export interface NearMiss {
  readonly sent: readonly UriPart[];
  readonly nearest: readonly UriPart[];
  /** The page of the client, which links to its *Problems*. */
  readonly clientUrl: string;
}

interface UriPart {
  readonly text: string;
  readonly isMarked: boolean;
}

export interface NearMissParts {
  readonly clients: Pick<ClientRegistry, 'find'>;
  visitorOf(ctx: Context): Promise<Visitor | undefined>;
}

/** Compares the URI of the authorization request; undefined unless the owner is signed in. */
export async function nearMissIn(ctx: Context, parts: NearMissParts): Promise<NearMiss | undefined> {
  const { client_id: id, redirect_uri: sent } = ctx.query;
  if (typeof id !== 'string' || typeof sent !== 'string') return undefined;
  const [client, visitor] = await Promise.all([parts.clients.find(id), parts.visitorOf(ctx)]);
  if (!client || !visitor || client.ownerAccountId !== visitor.account.id) return undefined;
  const difference = redirectUriDifference(sent, client.redirectUris);
  if (!difference) return undefined;
  return {
    sent: difference.map((part) => ({ text: part.sent, isMarked: isDifferent(part) })),
    nearest: difference.map((part) => ({ text: part.registered, isMarked: isDifferent(part) })),
    clientUrl: `/profile/oauth-clients/${client.id}`,
  };
}
