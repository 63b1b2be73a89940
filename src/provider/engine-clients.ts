/** Converts our clients to the engine's form, and implements the engine's checks of clients. */
import type Provider from 'oidc-provider';
import { type ClientMetadata, type Client as EngineClient, errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';

/** Far more than the number of clients in use at the same time. The engine's own cache holds only 100. */
const MAX_PARSED_CLIENTS = 10_000;

const origins = new WeakMap<EngineClient, Client>();

/** @throws TypeError for a client that `find` below did not return. */
export function clientOf(engineClient: EngineClient | undefined): Client {
  const client = engineClient && origins.get(engineClient);
  if (!client) throw new TypeError('not a client of this service');
  return client;
}

/** Returns the RFC 7591 §2 metadata that the engine uses. */
function metadataOf(client: Client): ClientMetadata {
  const redirectsPeople = client.kind === 'confidential' || client.kind === 'public';
  return {
    client_id: client.id,
    client_name: client.name,
    application_type: client.isNative ? 'native' : 'web',
    grant_types: redirectsPeople ? ['authorization_code'] : [],
    response_types: redirectsPeople ? ['code'] : [],
    redirect_uris: [...client.redirectUris],
    token_endpoint_auth_method: 'none',
  };
}

export type EngineClients = ReturnType<typeof createEngineClients>;

/** Our client registry and rules for clients, as engine-overrides.ts installs them in the engine. */
export function createEngineClients(parts: { provider: Provider; clients: ClientRegistry }) {
  const { provider, clients } = parts;
  // The types omit the constructor, which takes metadata.
  const Parsed = provider.Client as unknown as new (metadata: ClientMetadata) => EngineClient;
  const parsed = new Map<string, { version: string; engineClient: EngineClient }>();

  return {
    /** Reads the client every time, but reuses the engine's object for it until the client's version changes. */
    async find(id: string): Promise<EngineClient | undefined> {
      const client = await clients.find(id);
      if (!client || client.isSuspended) return undefined;
      const known = parsed.get(id);
      if (known?.version === client.version) return known.engineClient;
      const engineClient = new Parsed(metadataOf(client));
      origins.set(engineClient, client);
      if (parsed.size >= MAX_PARSED_CLIENTS) parsed.delete(parsed.keys().next().value ?? '');
      parsed.set(id, { version: client.version, engineClient });
      return engineClient;
    },

    mayAnswerIn(mode: string | undefined, ctx: KoaContextWithOIDC | undefined): boolean {
      // If the request has no `response_mode`, `mode` is the default mode of the response type.
      if (ctx?.oidc.params?.response_mode === undefined) return true;
      if (mode === 'query') return true;
      throw new errors.UnsupportedResponseMode();
    },
  };
}
