/** Our clients in the engine's form, and the engine's questions about them. */
import type Provider from 'oidc-provider';
import { type ClientMetadata, type Client as EngineClient, errors } from 'oidc-provider';
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

/** Puts our registry and our rules in place of the engine's. */
export function installClients({
  provider,
  clients,
  authentication,
  tests,
}: {
  provider: Provider;
  clients: ClientRegistry;
  authentication: ClientAuthentication;
  tests: ClientTests;
}): void {
  // The types leave out that the class is made of metadata.
  const EngineClientClass = provider.Client as typeof provider.Client &
    (new (
      metadata: ClientMetadata,
    ) => EngineClient);
  const parsed = new Map<string, { version: string; engineClient: EngineClient }>();

  // A parsed client is good for one version of the record, and the record is asked for every time.
  EngineClientClass.find = async (id) => {
    const client = await clients.find(id);
    if (!client || client.isSuspended) {
      // The same work as for a wrong secret, so that the time tells nothing.
      matchesSecret(undefined, '');
      return undefined;
    }
    const known = parsed.get(id);
    if (known?.version === client.version) return known.engineClient;
    const engineClient = new EngineClientClass(metadataOf(client));
    origins.set(engineClient, client);
    if (parsed.size >= MOST_PARSED_CLIENTS) parsed.delete(parsed.keys().next().value ?? '');
    parsed.set(id, { version: client.version, engineClient });
    return engineClient;
  };

  const prototype = EngineClientClass.prototype as EngineClient & ClientHooks;
  const currentContext = () => (provider.constructor as typeof Provider).ctx;

  prototype.compareClientSecret = function (presented) {
    return authentication.hasSecret(clientOf(this), presented);
  };

  // Whoever asks for the redirect URI of tests without being one is told that it is not registered.
  const { redirectUriAllowed } = prototype;
  prototype.redirectUriAllowed = function (uri) {
    if (uri === tests.redirectUri) return tests.isRecognized(currentContext(), clientOf(this));
    return redirectUriAllowed.call(this, uri);
  };

  // Asked at the token endpoint once the client has authenticated and before a code or a token is
  // touched: the place for what must be refused without consuming anything.
  prototype.grantTypeAllowed = function (grantType) {
    const isAllowed = GRANT_TYPES[clientOf(this).kind].includes(grantType);
    const { oidc } = currentContext() ?? {};
    if (oidc?.route !== 'token' || oidc.params?.grant_type !== grantType) return isAllowed;
    if (!isAllowed) {
      throw new errors.CustomOIDCProviderError(
        'unauthorized_client',
        `this client may not use grant_type ${grantType}`,
      );
    }
    requireNoScope(oidc.body?.scope);
    return true;
  };

  // The engine would also answer in the fragment and by a posted form.
  prototype.responseModeAllowed = (mode) => {
    const { params } = currentContext()?.oidc ?? {};
    // None was asked for: this one follows from the response type, which is judged for itself.
    if (params?.response_mode === undefined) return true;
    if (mode === 'query') return true;
    throw new errors.UnsupportedResponseMode();
  };
}

interface ClientHooks {
  compareClientSecret(this: EngineClient, presented: string): boolean;
  redirectUriAllowed(this: EngineClient, uri: string): boolean;
  grantTypeAllowed(this: EngineClient, grantType: string): boolean;
  responseModeAllowed(this: EngineClient, mode: string | undefined): boolean;
}
