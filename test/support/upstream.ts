/** A sign-in provider with accounts: a second oidc-provider, which can send false ID tokens. */
import type { KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { CompactSign, decodeJwt, exportJWK, generateKeyPair, type JWTPayload, UnsecuredJWT } from 'jose';
import type { Context } from 'koa';
import Provider, { type KoaContextWithOIDC } from 'oidc-provider';
import type { SignInProvider } from '../../src/config/sign-in-providers.ts';
import { atEndOfFile } from './end-of-run.ts';
import { createPerson, type Page, type Person } from './person.ts';
import { freePort } from './programs.ts';

/** A user at the provider: the claims that the provider returns. */
export interface UpstreamAccount {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: unknown;
  readonly name?: string;
  readonly [claim: string]: unknown;
}

/** Changes of an ID token before it is signed (or not) and sent. */
export interface Lie {
  readonly claims?: (claims: JWTPayload) => JWTPayload;
  /** Changes the signed text, to send JSON that `JSON.stringify` would not produce. */
  readonly text?: (json: string) => string;
  /** True if the ID token is sent without a signature. */
  readonly isUnsigned?: boolean;
  /** A key that the provider does not publish, with which it signs. Not made here: the service would not wait so long. */
  readonly signing?: KeyObject;
}

export interface Upstream {
  readonly issuer: string;
  settings(changes?: Partial<SignInProvider>): SignInProvider;
  /** The account with which the provider signs in every browser. */
  account: UpstreamAccount;
  lie: Lie;
  /** `hung`: accepts requests and answers none. `broken`: answers 500. */
  state: 'up' | 'hung' | 'broken';
  isCancelling: boolean;
  /** Functions that change the answers of the provider, keyed by path. */
  readonly changes: Map<string, (ctx: Context) => void>;
  /** The paths of all requests so far. */
  readonly requests: readonly string[];
  rotateKeys(): Promise<void>;
}

type Interaction = InstanceType<Provider['Interaction']>;

const CLIENT_SECRET = 'secret-of-gatehouse-at-the-provider';

/** Settings of a provider, which need not run, as the file has them by default. */
export const providerSettings = (changes: Partial<SignInProvider> = {}): SignInProvider => ({
  id: 'platform',
  label: 'Platform',
  issuer: 'https://id.example',
  clientId: 'gatehouse',
  match: 'none',
  accountClaim: 'sub',
  scopes: ['openid'],
  endpointHosts: [],
  acrValues: [],
  isStrong: true,
  strongAcr: [],
  strongAmr: [],
  ...changes,
});

/**
 * Starts a provider.
 *
 * @param ours the issuer of the service to which the provider sends users back
 * @param id the id of the provider in the settings of the service
 */
export async function startUpstream(ours: string, id = 'platform'): Promise<Upstream> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  let key = await newKey('1');
  const requests: string[] = [];

  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'gatehouse',
        client_secret: CLIENT_SECRET,
        redirect_uris: [`${ours}/login/${id}/callback`],
      },
    ],
    claims: { email: ['email', 'email_verified'], profile: ['name'], openid: ['sub', 'employee'] },
    cookies: { keys: ['key of the cookies of the provider'] },
    jwks: { keys: [key.private] },
    // Not the default of 60 s for codes: an upgrade may take longer, and its sign-in is finished afterwards.
    ttl: { Interaction: 600, AuthorizationCode: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600 },
    features: {
      devInteractions: { enabled: false },
    },
    interactions: { url: (_ctx, { uid }) => `/be/${uid}` },
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ ...upstream.account, sub: accountId }),
    }),
    async loadExistingGrant({ oidc }) {
      const { client, account } = oidc;
      const grant = new oidc.provider.Grant({
        clientId: client?.clientId ?? '',
        accountId: account?.accountId ?? '',
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
  provider.use(async (ctx, next) => {
    requests.push(ctx.path);
    if (upstream.state === 'broken') {
      ctx.status = 500;
      return;
    }
    if (upstream.state === 'hung') await new Promise(() => {});
    if (ctx.path.startsWith('/be/')) {
      await finishSignIn(ctx as unknown as KoaContextWithOIDC);
      return;
    }
    await next();
    if (ctx.path === '/jwks') ctx.body = { keys: [key.public] };
    const { body } = ctx as { body?: { id_token?: string } };
    if (body?.id_token) ctx.body = { ...body, id_token: await changedIdToken(body.id_token) };
    upstream.changes.get(ctx.path)?.(ctx);
  });

  async function finishSignIn({ req, res }: KoaContextWithOIDC): Promise<void> {
    await signOutOther(await provider.interactionDetails(req, res));
    const result = upstream.isCancelling
      ? { error: 'access_denied', error_description: 'the person went back' }
      : { login: { accountId: upstream.account.sub } };
    await provider.interactionFinished(req, res, result);
  }

  /** Ends the session of another user, which oidc-provider would do only after asking. */
  async function signOutOther(interaction: Interaction): Promise<void> {
    const { session, exp } = interaction;
    if (!session || session.accountId === upstream.account.sub) return;
    await (await provider.Session.findByUid(session.uid))?.destroy();
    delete interaction.session;
    await interaction.save(exp - Math.floor(Date.now() / 1000));
  }

  async function changedIdToken(token: string): Promise<string> {
    const { claims = (same: JWTPayload) => same, text, isUnsigned, signing } = upstream.lie;
    const sent = claims(decodeJwt(token));
    if (isUnsigned) return new UnsecuredJWT(sent).encode();
    return signing ? signed(sent, { ...key, signing }) : signed(sent, key, text);
  }

  const upstream: Upstream = {
    issuer,
    requests,
    changes: new Map(),
    account: { sub: 'default-subject' },
    lie: {},
    state: 'up',
    isCancelling: false,
    settings: (changes) =>
      providerSettings({
        id,
        label: 'Warehouse platform',
        issuer,
        clientSecret: CLIENT_SECRET,
        match: 'verified_email',
        scopes: ['openid', 'email', 'profile'],
        ...changes,
      }),
    async rotateKeys() {
      key = await newKey(`${Number(key.kid) + 1}`);
    },
  };

  const server = createServer(provider.callback());
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  atEndOfFile(() => closed(server));
  return upstream;
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

type Key = Readonly<{ kid: string; signing: Parameters<CompactSign['sign']>[0] }>;

async function newKey(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const more = { kid, alg: 'RS256', use: 'sig' };
  return {
    kid,
    signing: privateKey,
    private: { ...(await exportJWK(privateKey)), ...more },
    public: { ...(await exportJWK(publicKey)), ...more },
  };
}

const signed = (claims: JWTPayload, { kid, signing }: Key, change = (json: string): string => json) =>
  new CompactSign(new TextEncoder().encode(change(JSON.stringify(claims))))
    .setProtectedHeader({ alg: 'RS256', kid, typ: 'JWT' })
    .sign(signing);

/** A browser that also visits the providers and keeps their cookies. */
export interface Traveller extends Person {
  /**
   * Follows redirects, to providers and back, until a page or another origin is reached. If
   * `/profile/security/first-sign-in` asks which access to keep, the user keeps everything.
   */
  travel(page: Page): Promise<Page>;
  /** Like `travel`, but stops at the page that asks which access to keep. */
  arrive(page: Page): Promise<Page>;
  /** Returns the callback URL to which the provider redirects the browser, without visiting it. */
  untilCallback(page: Page): Promise<URL>;
}

export function createTraveller(ours: string, ...theirs: readonly string[]): Traveller {
  const persons = new Map([ours, ...theirs].map((issuer) => [issuer, createPerson(issuer)]));
  const person = persons.get(ours) ?? createPerson(ours);
  async function go(page: Page, isEnd: (next: URL) => boolean): Promise<Page> {
    let current = page;
    for (let hops = 0; hops < 30; hops += 1) {
      const { location } = current;
      const at = location && persons.get(location.origin);
      if (!location || !at || isEnd(location)) return current;
      current = await at.get(location);
    }
    throw new Error(`redirects without end at ${current.url.pathname}`);
  }
  return {
    ...person,
    get cookieNames() {
      return person.cookieNames;
    },
    arrive: (page) => go(page, () => false),
    async travel(page) {
      const arrived = await go(page, () => false);
      const [, onward] = /href="([^"]+)">Keep everything/.exec(arrived.html) ?? [];
      if (onward === undefined) return arrived;
      return go(await person.get(onward.replaceAll('&amp;', '&')), () => false);
    },
    async untilCallback(page) {
      const { location, url, html } = await go(page, ({ pathname }) => /\/callback$/.test(pathname));
      if (!location) throw new Error(`no way back, but ${url.pathname}: ${html.slice(0, 2_000)}`);
      return location;
    },
  };
}
