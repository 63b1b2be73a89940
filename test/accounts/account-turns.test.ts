/** Parallel requests of one user never take the database connections that other users need. */
import { expect } from 'chai';
import pg from 'pg';
import type { AccountBusy } from '../../src/base/refusal.ts';
import { createAccountTurns, createTurns, createTurnsOf } from '../../src/storage/account-turns.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import { join, type Member } from '../pages/organization-members.ts';
import { type SignedInPerson, signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, introspect } from '../support/oauth.ts';
import type { Fields, Page } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addTestClient, apiKeyOf, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

/** Must equal the limit in storage/account-turns.ts. */
const MAX_WAITING = 10;

/** These statements lock every row that a change of the account needs to lock. */
const LOCKS = [
  'SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE',
  'SELECT FROM clients WHERE owner_account_id = $1 FOR UPDATE',
  'SELECT FROM api_keys WHERE account_id = $1 FOR UPDATE',
  'SELECT FROM connections WHERE account_id = $1 FOR UPDATE',
  'SELECT FROM organization_memberships WHERE account_id = $1 FOR UPDATE',
];

describeOn([postgresServer, redisServer], 'parallel requests of one user', () => {
  const on = startSeeded({ on: 'postgres+redis' });
  let holder: pg.Client;
  let ada: Member;
  let grace: SignedInPerson;

  before('sign in two users', async () => {
    ada = await join(on, 'Ada Admin', 'owner');
    grace = await signedIn(on.service, on.seeded.person);
  });
  beforeEach('connect to the database', async () => {
    const { databaseUrl: connectionString } = on.service.settings.storage;
    holder = new pg.Client({ connectionString });
    await holder.connect();
  });
  afterEach(() => holder.end());

  async function lockEverythingOf({ accountId }: SeededPerson): Promise<void> {
    await holder.query('BEGIN');
    for (const lock of LOCKS) await holder.query(lock, [accountId]);
  }

  /** Counts connections that wait for a row lock, except the one that writes last-used times. */
  async function blockedConnections(): Promise<number> {
    const waiting = await on.service.database.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock' AND application_name = 'gatehouse'
        AND query NOT LIKE '%used.at%'`,
    );
    return waiting.length;
  }

  /** Sends all requests. @returns the statuses received so far, and a promise of all pages. */
  function sendAll(requests: readonly (() => Promise<Page>)[]) {
    const statuses: number[] = [];
    const answers = requests.map(async (send) => {
      const page = await send();
      statuses.push(page.status);
      return page;
    });
    return { statuses, all: Promise.all(answers) };
  }

  it('parallel requests of one account use one database connection: ten more wait, others get 429 with Retry-After', async () => {
    const page = await ada.get('/profile/api-keys');
    const { value: secret, id } = await apiKeyOf(on.service, ada);
    await lockEverythingOf(ada);
    const count = 30;
    const requests = Array.from({ length: count }, (_, index) => () => {
      return ada.submit(page, { name: `Key ${index}`, creation_key: keyFor(index) });
    });
    const sent = sendAll(requests);
    await eventually(() => expect(sent.statuses).to.have.length(count - 1 - MAX_WAITING));
    await eventually(async () => expect(await blockedConnections()).to.equal(1));
    expect(new Set(sent.statuses)).to.deep.equal(new Set([429]));

    // Other users get answers while the requests of this user wait.
    const others = Array.from({ length: 12 }, () => grace.get('/profile/connections'));
    expect((await Promise.all(others)).map(({ status }) => status)).to.deep.equal(Array(12).fill(200));
    const { body } = await introspect(on.issuer, on.clients.resourceServer, secret);
    expect(body).to.include({ active: true, api_key: id });
    expect(await blockedConnections()).to.equal(1);

    await holder.query('ROLLBACK');
    const pages = await sent.all;
    const made = pages.filter(({ status }) => status === 303);
    expect(made).to.have.length(1 + MAX_WAITING);
    const refused = pages.find(({ status }) => status === 429);
    expect(refused?.headers.get('retry-after')).to.equal('2');
    expect(refused?.html).to.match(/Nothing was done: wait a few seconds and send the form again/);
    expect(refused?.html, 'the typed value is in the form').to.match(/value="Key \d+"/);
    expect(await on.service.apiKeys.listOf(ada.accountId)).to.have.length(2 + MAX_WAITING);
  });

  it('parallel requests of one account use one database connection, whichever forms they send', async () => {
    const client = (name: string) =>
      addTestClient(on.service, name, {
        redirectUris: ['https://ada.example/callback'],
        ownerAccountId: ada.accountId,
      });
    const [first, second] = [await client('First'), await client('Second')];
    const twoSecrets = await on.service.clients.addSecret(second.id);
    const secretId = twoSecrets.client.secrets[0]?.id ?? '';
    const { id: keyId } = await apiKeyOf(on.service, ada);
    const { confidential, otherConfidential } = on.clients;
    for (const connected of [confidential, otherConfidential]) {
      await ada.authorize(authorizationUrl(on.issuer, connected), ada);
    }
    const organization = `/profile/organizations/${on.seeded.organization.id}`;
    const own = `/profile/oauth-clients/${first.id}`;
    const forms: readonly (readonly [path: string, fields: Fields])[] = [
      ['/profile/oauth-clients/new', { name: 'Third', redirect_uris: 'https://ada.example/' }],
      [`${own}/settings`, { name: 'Renamed', redirect_uris: 'https://ada.example/callback' }],
      [`${own}/redirect-uris`, { redirect_uri: 'https://ada.example/other' }],
      [`${own}/links`, { homepage_url: 'https://ada.example/' }],
      [`${own}/rotate-secret`, {}],
      [`/profile/oauth-clients/${second.id}/remove-secret`, { secret_id: secretId }],
      [`/profile/oauth-clients/${second.id}/delete`, { confirm_name: 'Second' }],
      ['/profile/api-keys', { name: 'Another', expires_in_days: '30' }],
      [`/profile/api-keys/${keyId}/revoke`, {}],
      [`${organization}/clients/${confidential.id}/end`, {}],
      [`/profile/connections/${otherConfidential.id}/disconnect`, {}],
      ['/profile/connections/disconnect-all', {}],
      ['/profile/security/mail', {}],
      [`${organization}/people/${on.seeded.person.accountId}/end`, {}],
      ['/profile/security/sign-out-everywhere', {}],
    ];
    // Send one form at a time, so that the waiting requests stay below the limit.
    for (const [path, fields] of forms) {
      await lockEverythingOf(ada);
      const sent = sendAll([() => ada.send(path, fields), () => ada.send(path, fields)]);
      await eventually(async () => expect(await blockedConnections(), path).to.equal(1));
      expect(sent.statuses, path).to.deep.equal([]);
      await holder.query('ROLLBACK');
      await sent.all;
    }
  });

  const keyFor = (index: number): string => String(index).padStart(43, 'k');
});

/** Begins work that keeps its turn. @returns what ends it */
function beginIn(takeTurn: (work: () => Promise<void>) => Promise<void>): () => Promise<void> {
  const blocked = Promise.withResolvers<void>();
  const first = takeTurn(() => blocked.promise);
  return () => {
    blocked.resolve();
    return first;
  };
}

describe('requests that change the data of one account run one after the other', () => {
  it('if the database does not respond, the waiting requests of an account fail together, not one by one', async () => {
    const inTurn = createAccountTurns();
    const pending = Promise.withResolvers<never>();
    let calls = 0;
    const call = () => {
      calls += 1;
      return pending.promise;
    };
    const works = [1, 2, 3].map(() => inTurn('acc_a', call).catch((error: unknown) => error));
    const error = new StorageUnavailable('postgresql', new Error('timeout'));
    pending.reject(error);
    expect(await Promise.all(works)).to.deep.equal([error, error, error]);
    expect(calls).to.equal(1);
    expect(await inTurn('acc_a', async () => 'answered')).to.equal('answered');
  });

  it('a failed request does not block the next request of its account', async () => {
    const inTurn = createAccountTurns();
    const refused = inTurn('acc_a', () => Promise.reject(new Error('refused')));
    const next = inTurn('acc_a', async () => 'answered');
    expect(await refused.catch((error: Error) => error.message)).to.equal('refused');
    expect(await next).to.equal('answered');
  });

  it('waiting requests of one account do not block other accounts', async () => {
    const inTurn = createAccountTurns();
    const end = beginIn((work) => inTurn('acc_a', work));
    expect(await inTurn('acc_b', async () => 'answered')).to.equal('answered');
    await end();
  });
});

describe('the queue of requests for one account, with limits', () => {
  const busy = (work: Promise<unknown>) => work.catch(({ code }: AccountBusy) => code);

  it('one caller cannot take all the waiting places of an account', async () => {
    const inTurn = createTurnsOf({ maxWaiting: 2, maxWaitingPerCaller: 1 });
    const end = beginIn((work) => inTurn('acc_a', work, 'a'));
    const [own, tooMany, other, full] = ['a', 'a', 'b', 'c'].map((caller) =>
      busy(inTurn('acc_a', async () => caller, caller)),
    );
    expect(await Promise.all([tooMany, full])).to.deep.equal(['account_busy', 'account_busy']);
    await end();
    expect(await Promise.all([own, other])).to.deep.equal(['a', 'b']);
  });

  it('a full queue accepts a caller with few requests, and refuses the latest request of a busier caller instead', async () => {
    const inTurn = createTurnsOf({ maxWaiting: 4, maxWaitingPerCaller: 2 });
    const end = beginIn((work) => inTurn('acc_a', work, 'a'));
    const callers = ['a', 'a', 'b', 'b', 'c', 'd', 'e'];
    const results = callers.map((caller) => busy(inTurn('acc_a', async () => caller, caller)));
    await end();
    const refused = 'account_busy';
    expect(await Promise.all(results)).to.deep.equal(['a', refused, 'b', refused, 'c', 'd', refused]);
  });

  it('a request that waits for too long is refused, and the next request is served', async () => {
    const inTurn = createTurnsOf({ maxWaiting: 2, maxWaitMs: 1 });
    const end = beginIn((work) => inTurn('acc_a', work));
    expect(await busy(inTurn('acc_a', async () => 'answered'))).to.equal('account_busy');
    await end();
    expect(await inTurn('acc_a', async () => 'answered')).to.equal('answered');
  });
});

describe('the queue of requests for all accounts', () => {
  it('a request that waits for too long, or behind too many others, is refused, and the next request is served', async () => {
    const takeTurn = createTurns(1, { maxWaiting: 1, maxWaitMs: 1 });
    const codeOf = (work: Promise<unknown>) => work.catch(({ code }: StorageUnavailable) => code);
    const end = beginIn(takeTurn);
    const [waits, isOneTooMany] = [1, 2].map(() => codeOf(takeTurn(async () => 'answered')));
    expect(await isOneTooMany).to.equal('too_many_waiting');
    expect(await waits).to.equal('too_many_waiting');
    await end();
    expect(await takeTurn(async () => 'answered')).to.equal('answered');
  });
});
