/** When a person must sign in or approve, and how an approval becomes a grant. */
import { interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import type { Connections } from '../accounts/connections.ts';
import { redirectHosts } from '../clients/client.ts';
import { Refusal } from '../refusal.ts';
import { clientOf } from './engine-clients.ts';

const { Check, Prompt } = interactionPolicy;

type ConsentMemory = Pick<Connections, 'find' | 'recordGrant'>;

/** A test belongs to no connection: it finds none, so it asks, and it leaves none behind. */
const OF_A_TEST: ConsentMemory = { find: async () => undefined, recordGrant: async () => {} };

/**
 * Replaces the engine's policy, which without scopes asks web clients for no consent at all.
 *
 * @param testRedirectUri by which the authorization requests of tests are known.
 */
export function consentPolicy(
  connections: ConsentMemory,
  testRedirectUri: string,
): interactionPolicy.Prompt[] {
  const memoryOf = ({ oidc }: KoaContextWithOIDC): ConsentMemory =>
    oidc.params?.redirect_uri === testRedirectUri ? OF_A_TEST : connections;

  const login = new Prompt(
    { name: 'login', requestable: true },
    new Check(
      'no_account',
      'the person must sign in',
      'login_required',
      // The account of a session may be suspended or gone: findAccount then finds none.
      (ctx) => ctx.oidc.account === undefined,
    ),
  );
  const consent = new Prompt(
    { name: 'consent', requestable: true },
    new Check('not_approved', 'the person must approve', 'consent_required', async (ctx) => {
      const memory = memoryOf(ctx);
      const isSettled = !(await mustAsk(ctx, memory)) && (await issueGrant(ctx, memory));
      return isSettled ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT;
    }),
  );
  // The engine runs the checks of one prompt at once; ours answers for `prompt=consent` as well,
  // so that no grant is issued beside an open question.
  consent.checks.remove('consent_prompt');
  return [login, consent];
}

async function mustAsk(ctx: KoaContextWithOIDC, connections: ConsentMemory): Promise<boolean> {
  const { oidc } = ctx;
  if (oidc.result?.consent) return false;
  if (oidc.prompts.has('consent')) return true;
  const client = clientOf(oidc.client);
  // RFC 8252 §8.6: nothing proves who is behind the id of a public client.
  if (client.kind === 'public') return true;
  const accountId = oidc.account?.accountId ?? '';
  const remembered = await connections.find(accountId, client.id);
  if (!remembered) return true;
  const hosts = redirectHosts(client);
  return remembered.name !== client.name || remembered.hosts.join() !== hosts.join();
}

/**
 * One grant per authorization, so that revoking one leaves the person's others alone. It grants no
 * scope, for none exist here; the engine wants to see one before it goes on, so it is shown an
 * empty one (it only tests the text for being there, and splits it into nothing).
 *
 * @returns false when the connection was ended at the same moment: then it must be asked again.
 */
async function issueGrant(ctx: KoaContextWithOIDC, connections: ConsentMemory): Promise<boolean> {
  const { client, session, account, provider } = ctx.oidc;
  if (!client || !session || !account) throw new TypeError('a grant needs a person and a client');
  const grant = new provider.Grant({ accountId: account.accountId, clientId: client.clientId });
  grant.getOIDCScopeFiltered = () => ' ';
  const grantId = await grant.save();
  try {
    await connections.recordGrant({
      grantId,
      accountId: account.accountId,
      clientId: client.clientId,
      // Not `exp`: the engine sets it in what it stores, never on the grant that was just saved.
      expiresAt: new Date(Date.now() + grant.remainingTTL * 1000),
    });
  } catch (error) {
    await grant.destroy();
    if (error instanceof Refusal) return false;
    throw error;
  }
  // The code handler takes the grant from here.
  session.ensureClientContainer(client.clientId);
  session.grantIdFor(client.clientId, grantId);
  ctx.oidc.entity('Grant', grant);
  return true;
}
