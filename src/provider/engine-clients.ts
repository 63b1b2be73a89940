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
import { matchesSecret } from '../clients/client-secret.ts';
import type { ClientAuthentication } from './client-authentication.ts';
import type { ClientTests } from './client-tests.ts';
import { requireNoScope } from './no-scopes.ts';

/** Far more than are active at once; the engine itself keeps 100 and parses the others each time. */
const MOST_PARSED_CLIENTS = 10_000;

const GRANT_TYPES: Record<Client['kind'], readonly string[]> = {
  confidential: ['authorization_code', 'refresh_token'],
  public: ['authorization_code', 'refresh_token'],
  machine: ['client_credentials'],
  'resource-server': [],
};

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
    grant_types: redirectsPeople ? [...GRANT_TYPES[client.kind]] : ['client_credentials'],
    response_types: redirectsPeople ? ['code'] : [],
    redirect_uris: [...client.redirectUris],
    // The engine wants to see a secret before it counts a client as confidential. Secrets are
    // compared by compareClientSecret below, with hashes; this text is none.
    ...(client.kind === 'public'
      ? { token_endpoint_auth_method: 'none' as const }
      : {
          token_endpoint_auth_method: 'client_secret_basic' as const,
          client_secret: 'kept as a hash, never compared with this text',
        }),
  };
}

export type EngineClients = ReturnType<typeof createEngineClients>;

/** Our registry and our rules, as the engine asks for them (engine-overrides.ts). */
export function createEngineClients({
  provider,
  clients,
  authentication,
  tests,
}: {
  provider: Provider;
  clients: ClientRegistry;
  authentication: ClientAuthentication;
  tests: ClientTests;
}) {
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

    hasSecret: (client: EngineClient, presented: string): boolean =>
      authentication.hasSecret(clientOf(client), presented),

    /**
     * Whoever asks for the redirect URI of tests without being one is told that it is not registered.
     *
     * @returns undefined for any other URI.
     */
    isOfTest(client: EngineClient, uri: string, ctx: EngineContext): boolean | undefined {
      if (uri !== tests.redirectUri) return undefined;
      return tests.isRecognized(ctx, clientOf(client));
    },

    /**
     * Asked at the token endpoint once the client has authenticated and before a code or a token is
     * touched: the place for what must be refused without consuming anything.
     */
    mayUseGrant(client: EngineClient, grantType: string, ctx: EngineContext): boolean {
      const isAllowed = GRANT_TYPES[clientOf(client).kind].includes(grantType);
      const { oidc } = ctx ?? {};
      if (oidc?.route !== 'token' || oidc.params?.grant_type !== grantType) return isAllowed;
      if (!isAllowed) {
        throw new errors.CustomOIDCProviderError(
          'unauthorized_client',
          `this client may not use grant_type ${grantType}`,
        );
      }
      requireNoScope(oidc.body?.scope);
      return true;
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
