/** Our clients in the engine's form, and the engine's questions about them. */
import type Provider from 'oidc-provider';
import {
  type ClientMetadata,
  type Client as EngineClient,
  errors,
  type KoaContextWithOIDC,
} from 'oidc-provider';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { matchesSecret } from '../clients/client-secrets.ts';
import type { ClientTests } from './client-tests.ts';

/** Far more than are active at once; the engine itself keeps 100 and parses the others each time. */
const MOST_PARSED_CLIENTS = 10_000;

/** Which client of ours stands behind the engine's. */
const origins = new WeakMap<EngineClient, Client>();

/** @throws TypeError for a client that this service did not make. */
export function clientOf(engineClient: EngineClient | undefined): Client {
  const client = engineClient && origins.get(engineClient);
  if (!client) throw new TypeError('not a client of this service');
  return client;
}

/** RFC 7591 §2 metadata, as far as the engine decides by it. */
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

/** Our registry and our rules, as the engine asks for them (engine-overrides.ts). */
export function createEngineClients(parts: {
  provider: Provider;
  clients: ClientRegistry;
  tests: ClientTests;
}) {
  const { provider, clients, tests } = parts;
  // The types leave out that the class is made of metadata.
  const Parsed = provider.Client as unknown as new (metadata: ClientMetadata) => EngineClient;
  const parsed = new Map<string, { version: string; engineClient: EngineClient }>();

  return {
    /** A parsed client is good for one version of the record, which is asked for every time. */
    async find(id: string): Promise<EngineClient | undefined> {
      const client = await clients.find(id);
      if (!client || client.isSuspended) {
        // The same work as for a wrong secret, so that the time tells nothing.
        matchesSecret(undefined, '');
        return undefined;
      }
      const known = parsed.get(id);
      if (known?.version === client.version) return known.engineClient;
      const engineClient = new Parsed(metadataOf(client));
      origins.set(engineClient, client);
      if (parsed.size >= MOST_PARSED_CLIENTS) parsed.delete(parsed.keys().next().value ?? '');
      parsed.set(id, { version: client.version, engineClient });
      return engineClient;
    },

    /**
     * Whoever asks for the redirect URI of tests without being one is told that it is not registered.
     *
     * @returns undefined for any other URI.
     */
    isOfTest(client: EngineClient, uri: string, ctx: EngineContext): boolean | undefined {
      if (uri !== tests.redirectUri) return undefined;
      return tests.isRecognized(ctx, clientOf(client));
    },

    mayAnswerIn(mode: string | undefined, ctx: EngineContext): boolean {
      // None was asked for: this one follows from the response type, which is judged for itself.
      if (ctx?.oidc.params?.response_mode === undefined) return true;
      if (mode === 'query') return true;
      throw new errors.UnsupportedResponseMode();
    },
  };
}

/** Of the request that is under way, where there is one. */
type EngineContext = KoaContextWithOIDC | undefined;
