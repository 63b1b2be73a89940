/** Decides when a user must sign in or approve, and turns an approval into an authorization. */
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
}

/** Replaces the engine's policy, which never asks for consent if a web client requests no scopes. */
export function consentPolicy(parts: ConsentPolicyParts): interactionPolicy.Prompt[] {
  const { accounts } = parts;
  const login = new Prompt(
    { name: 'login', requestable: true },
    // Runs before the user is asked for anything, and again before anything is issued.
    new Check('owner_suspended', 'the client collects no approvals', async (ctx) => {
      const { ownerAccountId } = clientOf(ctx.oidc.client);
      const owner = ownerAccountId === undefined ? undefined : await accounts.find(ownerAccountId);
      if (owner?.isSuspended) throw new ApprovalsClosed(ctx);
      return Check.NO_NEED_TO_PROMPT;
    }),
    new Check(
      'no_account',
      'the person must sign in',
      'login_required',
      // `account` is undefined if the session's account is suspended or deleted.
      (ctx) => ctx.oidc.account === undefined,
    ),
  );
  const consent = new Prompt(
    { name: 'consent', requestable: true },
    new Check('not_approved', 'the person must approve', 'consent_required', async (ctx) =>
      (await isApproved(ctx, parts)) ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT,
    ),
  );
  // The engine runs the checks of a prompt concurrently. Therefore `not_approved` handles `prompt=consent`, too, and
  // nothing is issued before the user has answered.
  consent.checks.remove('consent_prompt');
  return [login, consent];
}

/** Refuses a request because its client gets no approvals while its owner is suspended. */
export class ApprovalsClosed extends errors.CustomOIDCProviderError {
  constructor({ oidc }: KoaContextWithOIDC) {
    super('unauthorized_client', 'the owner of this client is suspended');
    // A request with `prompt=none` forbids pages: redirect its user. Otherwise, redirect only after a click on a page.
    this.allow_redirect = oidc.prompts.has('none');
    this.status = this.statusCode = 403;
  }
}

async function isApproved(ctx: KoaContextWithOIDC, parts: ConsentPolicyParts): Promise<boolean> {
  const { oidc } = ctx;
  const asked = answeredPage(ctx);
  // If the client has changed since the page was shown, the user is informed and asked again.
  if (asked && !isStillSo(asked, clientOf(oidc.client))) return false;
  // The redirect URI may have been removed since the engine checked it at the start.
  if (!oidc.client?.redirectUriAllowed(String(oidc.params?.redirect_uri))) {
    throw new errors.InvalidRedirectUri();
  }
  const approved = await approvedFor(ctx, asked, parts);
  if (approved === undefined) return false;
  const { generation, clientGeneration } = approved;
  grant(ctx, { ...parts.authorizations.draft(), generation, clientGeneration });
  return true;
}

/**
 * Returns the approval if this user gave it on the page of this interaction. The engine keeps an answer even if another
 * user signs in afterwards.
 */
function answeredPage({ oidc }: KoaContextWithOIDC): Asked | undefined {
  const asked = askedIn(oidc.result);
  const isOfNow = asked?.interaction === oidc.entities.Interaction?.uid && asked?.accountId === oidc.account?.accountId;
  return isOfNow ? asked : undefined;
}

/**
 * Stores the approval that the user gave on the consent page, or returns a remembered one. Runs after the interaction
 * was removed from the token store, so only one of several submitted answers is stored and gets the code.
 */
async function approvedFor(
  ctx: KoaContextWithOIDC,
  asked: Asked | undefined,
  { accounts, connections, approvals }: ConsentPolicyParts,
): Promise<Pick<ConnectedConsent, 'generation' | 'clientGeneration'> | undefined> {
  const { client, account, session } = ctx.oidc;
  if (asked)
    return approvals.keep(ctx, asked, {
      generation: Number(session?.acr),
      uid: session?.uid ?? '',
    });
  const remembered = await connections.find(account?.accountId ?? '', clientOf(client).id);
  if (!remembered || mustAsk(ctx, remembered)) return undefined;
  const person = await accounts.find(account?.accountId ?? '');
  if (person) await approvals.recordSilent(ctx, person, clientOf(client), remembered);
  return remembered;
}

function mustAsk({ oidc }: KoaContextWithOIDC, remembered: ConnectedConsent): boolean {
  if (oidc.prompts.has('consent') || !remembered.isSameOwner || remembered.alwaysAsks) return true;
  const client = clientOf(oidc.client);
  // RFC 8252 §8.6: nothing proves the identity of a public client.
  if (client.kind === 'public') return true;
  const hosts = redirectHosts(client);
  return remembered.name !== client.name || remembered.hosts.join() !== hosts.join();
}

interface Draft extends ValueSource {
  readonly generation: number;
  readonly clientGeneration: number;
}

const drafts = new WeakMap<object, Draft>();

/**
 * Makes one grant per authorization, so that ending one authorization does not affect the user's
 * others. The engine's grant only represents our authorization, and is not stored.
 */
function grant(ctx: KoaContextWithOIDC, draft: Draft): void {
  const { client, session, account, provider } = ctx.oidc;
  if (!client || !session || !account) throw new TypeError('a grant needs a person and a client');
  const shadow = new provider.Grant({ accountId: account.accountId, clientId: client.clientId });
  shadow.jti = draft.id;
  drafts.set(shadow, draft);
  // The engine's code handler reads the id of the grant from the session.
  session.ensureClientContainer(client.clientId);
  session.grantIdFor(client.clientId, draft.id);
  ctx.oidc.entity('Grant', shadow);
}

export async function saveCode(
  authorizations: Pick<Authorizations, 'begin' | 'codeOf'>,
  { accountId, clientId, redirectUri, codeChallenge }: InstanceType<Provider['AuthorizationCode']>,
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
    generation: draft.generation,
    clientGeneration: draft.clientGeneration,
    ...(codeChallenge !== undefined && { codeChallenge }),
  });
  return authorizations.codeOf(draft);
}
