/** Operations of users on pages, and of operators with commands, that change several things at once. */
import { expect } from 'chai';
import { fileOf, line } from '../import/import-file.ts';
import { operatorOn, valueFrom } from '../operator/run-operator.ts';
import { LIST, shownOn, signInOwner } from '../pages/client-owner.ts';
import { fieldOf, type SignedInPerson, signedIn } from '../pages/signed-in-person.ts';
import { granted } from '../provider/partner-tokens.ts';
import { authorizationUrl, exchangeCode, refresh } from '../support/oauth.ts';
import { createPerson, type Fields, type Page } from '../support/person.ts';
import type { TestService } from '../support/service.ts';
import { ending, expectStatus, expectUsable } from './crash-requests.ts';
import type { CrashWorld } from './crash-world.ts';
import type { Attempt, Operation } from './crashes.ts';

/** A user who is signed in at the node and has connected a client. */
async function connected(world: CrashWorld) {
  const { issuer } = world.node;
  const { confidential: client } = world.seeded.clients;
  const account = await world.addPerson('Pat');
  const person = await signedIn(world.node, account);
  const redirect = await person.authorize(authorizationUrl(issuer, client), account);
  const tokens = await granted(exchangeCode(issuer, client, redirect.searchParams.get('code') ?? ''));
  await world.remember(tokens.accessToken);
  return { account, person, client, tokens };
}

/** Opens the page of a form before the node is killed; `again` opens and sends a new form. */
async function form(person: SignedInPerson, path: string, fields: Fields = {}) {
  const form_token = fieldOf(await person.get('/errors'), 'form_token');
  return {
    act: () => expectStatus(person.post(path, { ...fields, form_token }), 303),
    again: () => person.send(path, fields),
  };
}

const isSignedIn = async (person: SignedInPerson, { issuer }: TestService): Promise<boolean> => {
  const headers = { cookie: person.cookieHeader('/profile') };
  const { status } = await fetch(new URL('/profile', issuer), { headers, redirect: 'manual' });
  expect(status).to.be.oneOf([200, 303]);
  return status === 200;
};

const signOutEverywhere: Operation = async (world) => {
  const account = await world.addPerson('Pat');
  const person = await signedIn(world.node, account);
  const elsewhere = await signedIn(world.node, account);
  const { act, again } = await form(person, '/profile/security/sign-out-everywhere');
  return {
    act,
    async retry() {
      if (!(await isSignedIn(person, world.node))) await person.signIn(account);
      await expectStatus(again(), 303);
    },
    isDone: async (node) => !(await isSignedIn(elsewhere, node)),
    expectDone: async () => expect(await isSignedIn(person, world.node)).to.equal(true),
  };
};

const NEW_PASSWORD = 'eight blue pallets, stacked';

const newPassword: Operation = async (world) => {
  const { account, person, client, tokens } = await connected(world);
  const { act, again } = await form(person, '/profile/security/password', {
    current_password: account.password,
    new_password: NEW_PASSWORD,
    end_connections: 'yes',
  });
  const ended = ending(world, client, tokens);
  const hashAt = async ({ database }: TestService): Promise<unknown> => {
    const select = 'SELECT password_hash FROM accounts WHERE id = $1';
    return (await database.query<{ password_hash: string }>(select, [account.accountId]))[0]?.password_hash;
  };
  const former = await hashAt(world.node);
  const isDone: Attempt['isDone'] = async (node) => {
    const isChanged = (await hashAt(node)) !== former;
    expect(await ended.isDone(node), 'the connections ended').to.equal(isChanged);
    return isChanged;
  };
  return {
    ...ended,
    act,
    isDone,
    async retry() {
      if (!(await isDone(world.node))) await expectStatus(again(), 303);
    },
    async expectDone() {
      await ended.expectDone?.();
      const { email } = account;
      for (const [password, reached] of [
        [account.password, '/login'],
        [NEW_PASSWORD, '/profile'],
      ] as const) {
        const page = await createPerson(world.node.issuer).signIn({ email, password });
        expect(page.url.pathname.startsWith(reached), page.url.pathname).to.equal(true);
      }
    },
  };
};

const approval: Operation = async (world) => {
  const { issuer } = world.node;
  const { confidential: client } = world.seeded.clients;
  const account = await world.addPerson('Pat');
  const person = await signedIn(world.node, account);
  const url = authorizationUrl(issuer, client);
  const page = await person.open(url);
  let redirect: URL | undefined;
  return {
    async act() {
      redirect = (await person.follow(await person.submit(page, { decision: 'approve' }))).location;
      expect(redirect?.searchParams.get('code')).to.be.a('string');
    },
    isDone: async (node) => (await node.connections.find(account.accountId, client.id)) !== undefined,
    async retry() {
      redirect = await person.authorize(url, account);
    },
    async expectDone() {
      const code = redirect?.searchParams.get('code') ?? '';
      await expectUsable(world, client, await granted(exchangeCode(issuer, client, code)));
    },
  };
};

/** Counts the entries with this action in the user's activity log. */
async function countLogged(
  { activity }: TestService,
  { accountId }: { readonly accountId: string },
  action: string,
): Promise<number> {
  const entries = await activity.of(accountId, { limit: 20 });
  return entries.filter((entry) => entry.action === action).length;
}

/** The owner renews a robbed client that another user has connected. */
const renewedClient: Operation = async (world) => {
  const account = await world.addPerson('Pat');
  const owner = await signInOwner(world.node, account);
  const client = await owner.createClient('Stock Sync');
  const tokens = await world.partner.tokens(client);
  await world.remember(tokens.accessToken);
  const page = await owner.get(`${LIST}/${client.id}/renew`);
  let answer: Page | undefined;
  const act = async (): Promise<void> => {
    answer = await owner.submit(page, { confirm_name: 'Stock Sync' });
    expect(answer.status, answer.html).to.equal(303);
  };
  return {
    act,
    retry: act,
    async isDone(node) {
      const found = await node.clients.find(client.id);
      const isRenewed = found?.generation === 1;
      expect(found?.secrets, 'no moment is without a secret').to.have.length(1);
      expect(found?.secrets[0]?.lastFour !== client.secret.slice(-4), 'the secret is new').to.equal(isRenewed);
      expect(await countLogged(node, account, 'client_renewed')).to.equal(isRenewed ? 1 : 0);
      expect(await world.isActive(tokens.accessToken, node)).to.equal(!isRenewed);
      return isRenewed;
    },
    isDoneAtApi: async () => !(await world.call(tokens.accessToken)).isAccepted,
    async expectDone() {
      // A page shows the secret once; here its request is not interrupted.
      const { id, secret } = shownOn(await owner.follow(answer ?? page));
      expect(id).to.equal(client.id);
      const { issuer } = world.node;
      await expectStatus(refresh(issuer, client, tokens.refreshToken), 401);
      const lifted = await granted(refresh(issuer, { ...client, secret }, tokens.refreshToken));
      expect(await world.isActive(lifted.accessToken, world.node)).to.equal(true);
    },
  };
};

/** One batch that adds an account and suspends another one. */
const importBatch: Operation = async (world) => {
  const { account, client, tokens } = await connected(world);
  const { email, accountId } = account;
  const added = `Added with ${accountId}`;
  const file = fileOf(
    line.account(added, { email: `added-${email}` }),
    line.account(`Suspended ${accountId}`, { email, suspended: true }),
  );
  const run = () => valueFrom(operatorOn(world.node.database), ['import', file]);
  const ended = ending(world, client, tokens);
  return {
    ...ended,
    act: run,
    async retry() {
      // Expire the lock of the interrupted import, instead of waiting for that.
      await world.node.database.query('UPDATE import_runs SET expires_at = clock_timestamp()');
      await run();
    },
    async isDone(node) {
      const isSuspended = await ended.isDone(node);
      const found = await node.database.query('SELECT FROM accounts WHERE external_id = $1', [added]);
      expect(found.length === 1, 'both accounts of the batch are changed, or none').to.equal(isSuspended);
      return isSuspended;
    },
  };
};

export const CHANGES: Readonly<Record<string, Operation>> = {
  'a sign-out everywhere': signOutEverywhere,
  'a change of the password that ends the connections': newPassword,
  'an approval': approval,
  'the renewal of a robbed client': renewedClient,
  'a batch of an import': importBatch,
};
