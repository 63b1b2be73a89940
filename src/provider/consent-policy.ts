/** When a user must sign in or approve, and how an approval becomes an authorization. */
import type Provider from 'oidc-provider';
import { errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Authorizations } from '../authorizations/authorization.ts';
import type { ConnectedConsent, Connections } from '../authorizations/connections.ts';
import type { ValueSource } from '../authorizations/token-formats.ts';
import { redirectHosts } from '../clients/client.ts';
import { type Approvals, type Asked, askedIn, isStillSo } from './approvals.ts';
import { clientOf } from './engine-clients.ts';

const { Check, Prompt } = interactionPolicy;

interface ConsentPolicyParts {
  readonly connections: Pick<Connections, 'find'>;
  readonly authorizations: Pick<Authorizations, 'draft'>;
  readonly approvals: Approvals;
  readonly accounts: Pick<AccountRegistry, 'find'>;
  /** Identifies the authorization requests of client tests. */
  readonly testRedirectUri: string;
}

/** Replaces the engine's policy, which without scopes asks web clients for no consent at all. */
export function consentPolicy(parts: ConsentPolicyParts): interactionPolicy.Prompt[] {
  const { accounts } = parts;
  const login = new Prompt(
    { name: 'login', requestable: true },
    // Runs before the user is asked for anything, and again before anything is issued.
    new Check('owner_suspended', 'the client collects no approvals', async (ctx) => {
      const { ownerAccountId } = clientOf(ctx.oidc.client);
      const owner = ownerAccountId === undefined ? undefined : await accounts.find(ownerAccountId);
      if (owner?.isSuspended) throw new OwnerSuspended(ctx.oidc.prompts.has('none'));
      return Check.NO_NEED_TO_PROMPT;
    }),
    new Check(
      'no_account',
      'the person must sign in',
      'login_required',
      // If the account of the session is suspended or deleted, `findAccount` finds none.
      (ctx) => ctx.oidc.account === undefined,
    ),
  );
  const consent = new Prompt(
    { name: 'consent', requestable: true },
    new Check('not_approved', 'the person must approve', 'consent_required', async (ctx) =>
      (await isApproved(ctx, parts)) ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT,
    ),
  );
  // The engine runs the checks of a prompt concurrently; ours handles `prompt=consent` as well,
  // so that nothing is issued while a question is open.
  consent.checks.remove('consent_prompt');
  return [login, consent];
}

/** The client asks for an approval, but its owner is suspended. */
export class OwnerSuspended extends errors.CustomOIDCProviderError {
  /** @param mayRedirect true if no page may be shown; otherwise users are not redirected unasked */
  constructor(mayRedirect: boolean) {
    super('unauthorized_client', 'the owner of this client is suspended');
    this.allow_redirect = mayRedirect;
    this.status = this.statusCode = 403;
  }
}

async function isApproved(ctx: KoaContextWithOIDC, parts: ConsentPolicyParts): Promise<boolean> {
  const { oidc } = ctx;
  const { authorizations, testRedirectUri } = parts;
  const asked = answeredPage(ctx);
  // Approved, but no longer what the page showed: the user is informed, and asked again.
  if (asked && !isStillSo(asked, clientOf(oidc.client))) return false;
  if (oidc.params?.redirect_uri === testRedirectUri) {
    // A client test has no connection: it finds none, so it asks, and it leaves none behind.
    if (asked) grant(ctx, { ...authorizations.draft() });
    return asked !== undefined;
  }
  // It may have been removed while the user was asked: the engine checks it at the start only.
  if (!oidc.client?.redirectUriAllowed(String(oidc.params?.redirect_uri))) {
    throw new errors.InvalidRedirectUri();
  }
  const generation = await generationFor(ctx, asked, parts);
  if (generation === undefined) return false;
  grant(ctx, { ...authorizations.draft(), generation });
  return true;
}

/**
 * Returns what was approved on the page of this very interaction. The engine carries an answer on
 * through a later sign-in, in which no user gave it.
 */
function answeredPage({ oidc }: KoaContextWithOIDC): Asked | undefined {
  const asked = askedIn(oidc.result);
  const isOfNow =
    asked?.interaction === oidc.entities.Interaction?.uid &&
    asked?.accountId === oidc.account?.accountId;
  return isOfNow ? asked : undefined;
}

/**
 * Stores the approval here, after the interaction was removed from the token store: of several
 * answers to it only one arrives, and the client receives that one as well.
 */
async function generationFor(
  ctx: KoaContextWithOIDC,
  asked: Asked | undefined,
  { connections, approvals }: ConsentPolicyParts,
): Promise<number | undefined> {
  const { client, account, session } = ctx.oidc;
  if (asked)
    return approvals.keep(ctx, asked, {
      generation: Number(session?.acr),
      uid: session?.uid ?? '',
    });
  const remembered = await connections.find(account?.accountId ?? '', clientOf(client).id);
  return remembered && !mustAsk(ctx, remembered) ? remembered.generation : undefined;
}

function mustAsk({ oidc }: KoaContextWithOIDC, remembered: ConnectedConsent): boolean {
  if (oidc.prompts.has('consent')) return true;
  const client = clientOf(oidc.client);
  // RFC 8252 §8.6: nothing proves the identity of a public client.
  if (client.kind === 'public') return true;
  const hosts = redirectHosts(client);
  return remembered.name !== client.name || remembered.hosts.join() !== hosts.join();
}

interface Draft extends ValueSource {
  readonly generation?: number;
}

const drafts = new WeakMap<object, Draft>();

/**
 * Makes one grant per authorization, so that ending one leaves the user's others alone. The grant
 * of the engine only stands for it, and is not stored.
 */
function grant(ctx: KoaContextWithOIDC, draft: Draft): void {
  const { client, session, account, provider } = ctx.oidc;
  if (!client || !session || !account) throw new TypeError('a grant needs a person and a client');
  const shadow = new provider.Grant({ accountId: account.accountId, clientId: client.clientId });
  shadow.jti = draft.id;
  drafts.set(shadow, draft);
  // The code handler takes the grant from here.
  session.ensureClientContainer(client.clientId);
  session.grantIdFor(client.clientId, draft.id);
  ctx.oidc.entity('Grant', shadow);
}

/** Stores the authorization, and returns its code for the engine to issue. */
export async function saveCode(
  authorizations: Pick<Authorizations, 'begin' | 'codeOf'>,
  { accountId, clientId, redirectUri, codeChallenge }: ApprovedCode,
  ctx: KoaContextWithOIDC | undefined,
): Promise<string> {
  const approved = ctx?.oidc.entities.Grant;
  const draft = approved && drafts.get(approved);
  if (!draft || !accountId || !clientId || !redirectUri) {
    throw new TypeError('a code without an approval');
  }
  await authorizations.begin(draft, {
    accountId,
    clientId,
    redirectUri,
    ...(draft.generation !== undefined && { generation: draft.generation }),
    ...(codeChallenge !== undefined && { codeChallenge }),
  });
  return authorizations.codeOf(draft);
}

type ApprovedCode = Pick<
  InstanceType<Provider['AuthorizationCode']>,
  'accountId' | 'clientId' | 'redirectUri' | 'codeChallenge'
>;
