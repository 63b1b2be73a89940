/** `/profile/oauth-clients/:id/test`: the owner of a client tests its authorization code flow. */
import type { Context } from 'koa';
import type { Access } from '../../accounts/access/access.ts';
import type { Activity } from '../../accounts/activity/activity.ts';
import { LIFETIME_SECONDS, type OneTimeValues } from '../../accounts/one-time-values.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import type { TestOrganizations } from '../../changes/test-organizations.ts';
import { type Client, hasSecret, redirectsPeople } from '../../clients/client.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { findSecret } from '../../clients/client-secrets.ts';
import type { ClientTests } from '../../provider/client-tests.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import { formOf } from '../../provider/form.ts';
import { isUnknown } from '../../texts/texts.ts';
import { requestOrigin, seeOther, visitorIn } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { durationOf } from '../words/moment.ts';
import { describeReached } from '../words/reached.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';
import type { RunClientTest, TestOutcome } from './test-run.ts';

/** The result of a test, which is stored until the page has shown it. */
interface KeptResult extends TestOutcome {
  readonly clientId: string;
}

export function clientTestPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly access: Pick<Access, 'accessThrough'>;
  readonly clientTests: Pick<ClientTests, 'begin'>;
  readonly oneTimeValues: Pick<OneTimeValues, 'peek'>;
  readonly testOrganizations: TestOrganizations;
}): Route[] {
  const { kit, own, access, clientTests, oneTimeValues, testOrganizations } = parts;

  const offeredTo = async (ctx: Context) =>
    testableClient(ctx).isSuspended ? [] : testOrganizations.listFor(accountOf(ctx).id);

  async function draw(ctx: Context, problem?: Text): Promise<void> {
    const client = testableClient(ctx);
    const { id: accountId } = accountOf(ctx);
    const { run } = ctx.query;
    const kept = typeof run === 'string' && (await oneTimeValues.peek<KeptResult>(accountId, run));
    const view = kept && kept.clientId === client.id ? resultView(kept) : undefined;
    const result = view && isReadable(view) ? view : undefined;
    const reached = result?.isPassed ? await access.accessThrough(accountId, { clientId: client.id }) : [];
    const organizations = await offeredTo(ctx);
    await kit.render(ctx, 'oauth-client-test', {
      notice: await kit.notices.take(ctx),
      testOrganizations: organizations.map(({ id, name, isViewer }) => ({
        name,
        isViewer,
        action: `${urlOf(client)}/test/${isViewer ? 'leave' : 'join'}/${id}`,
      })),
      client: { name: client.name, url: urlOf(client, 'connect') },
      form: testFormOf(client, problem),
      result,
      isGone: run !== undefined && !result,
      organizations: reached.map((one) => describeReached(one, kit.rightsInWords(ctx))),
    });
  }

  const show = (ctx: Context): Promise<void> => draw(ctx);

  /** Redirects the user to the authorization endpoint, as the client itself would. */
  async function begin(ctx: Context): Promise<void> {
    const client = testableClient(ctx);
    const secret = formOf(ctx).get('client_secret')?.trim() ?? '';
    const problem = problemWith(client, secret);
    if (problem !== undefined) {
      ctx.status = 422;
      return draw(ctx, problem);
    }
    const query = await clientTests.begin(visitorIn(ctx).session, {
      clientId: client.id,
      ...(hasSecret(client.kind) && { secret }),
    });
    seeOther(ctx, `${ENDPOINT.authorization}?${query}`);
  }

  const backToTest = (ctx: Context): void => seeOther(ctx, `${urlOf(ownClientOf(ctx))}/test`);

  function changing(to: 'join' | 'leave'): Route[] {
    const path = `${CLIENT}/test/${to}/:organization`;
    /** Lets the user join or leave a test organization. Any other organization gets a 404. */
    async function changeMembership(ctx: Context): Promise<void> {
      const place = (await offeredTo(ctx)).find(({ id }) => id === ctx.params.organization);
      if (!place) return;
      const details = { organization_id: place.id, organization_name: place.name };
      await testOrganizations.change(to, [accountOf(ctx).id, place.id], (tx) =>
        to === 'join'
          ? own.record(ctx, 'membership_set', { ...details, role: 'viewer' }, tx)
          : own.record(ctx, 'membership_removed', details, tx),
      );
      const said = message(to === 'join' ? 'client-test.joined' : 'client-test.left', { organization: place.name });
      await kit.notices.redirect(ctx, `${urlOf(ownClientOf(ctx))}/test`, said);
    }
    const steps = [...own.form(), kit.requireRecentSignIn, changeMembership];
    return [get(path, ...own.page, backToTest), post(path, ...steps)];
  }

  return [
    get(`${CLIENT}/test`, ...own.page, show),
    post(`${CLIENT}/test`, ...own.form(), begin),
    ...changing('join'),
    ...changing('leave'),
  ];
}

/** Creates the route to which the browser is redirected at the end of a test's authorization request. */
export function clientTestCallback(parts: {
  readonly kit: Pick<PageKit, 'requireSignedIn'>;
  readonly clients: Pick<ClientRegistry, 'findByOwner'>;
  readonly activity: Pick<Activity, 'record'>;
  readonly clientTests: Pick<ClientTests, 'finish'>;
  readonly oneTimeValues: Pick<OneTimeValues, 'store'>;
  readonly runTest: RunClientTest;
}): Route[] {
  const { kit, clients, activity, clientTests, oneTimeValues, runTest } = parts;

  /** Answers 404 unless this session has started the test. */
  async function finish(ctx: Context): Promise<void> {
    const { id: accountId } = accountOf(ctx);
    const callback = new URLSearchParams(ctx.querystring);
    const state = callback.get('state') ?? '';
    const test = ctx.method === 'GET' && (await clientTests.finish(visitorIn(ctx).session, state));
    const client = test && (await clients.findByOwner(accountId, test.clientId));
    if (!test || !client) ctx.throw(404, 'no such test in this session');
    await activity.record({
      action: 'client_tested',
      actor: 'person',
      accountId,
      details: { client_id: client.id, client_name: client.name },
      origin: requestOrigin(ctx),
    });
    const kept: KeptResult = { ...(await runTest(test, callback)), clientId: client.id };
    seeOther(ctx, `${urlOf(client)}/test?run=${await oneTimeValues.store(accountId, kept)}`);
  }

  return [get(ENDPOINT.clientTest, kit.requireSignedIn, finish)];
}

/** A client without redirect URIs cannot be tested, and gets a 404. */
function testableClient(ctx: Context): Client {
  const client = ownClientOf(ctx);
  if (!redirectsPeople(client.kind)) ctx.throw(404, 'this client sends no users here, so there is nothing to test');
  return client;
}

export const isTestable = ({ kind, isSuspended }: Client): boolean => redirectsPeople(kind) && !isSuspended;

export type ClientTestForm = ReturnType<typeof testFormOf>;

export const testFormOf = (client: Pick<Client, 'id' | 'kind'>, problem?: Text) => ({
  action: `${urlOf(client)}/test`,
  needsSecret: hasSecret(client.kind),
  problem,
  /** How long a test may take, and how long its result is stored. */
  keptFor: durationOf(LIFETIME_SECONDS),
});

/** Returns a problem that is known before the test begins. */
function problemWith(client: Client, secret: string): Message | undefined {
  if (client.isSuspended) return message('client-test.suspended');
  if (!hasSecret(client.kind)) return undefined;
  if (secret === '') return message('client-test.no-secret');
  if (findSecret(client, secret)) return undefined;
  const endings = client.secrets.map(({ lastFour }) => lastFour).join(', ');
  return message('client-test.wrong-secret', { endings });
}

export type ClientTestResult = ReturnType<typeof resultView>;

const resultView = ({ outcome, apiAnswer, steps }: KeptResult) => ({
  apiAnswer,
  isPassed: outcome === 'passed',
  summary: message(`client-test.${outcome}`),
  steps,
});

/** False if a node of another version has stored the result with texts that this version does not know. */
const isReadable = ({ summary, steps }: ClientTestResult): boolean =>
  [summary, ...steps.flatMap(({ title, verdict }) => [title, verdict])].every((text) => !isUnknown(text));
