/** Forms that create a client or key with a secret are idempotent, also if the answer was lost. */
import { expect } from 'chai';
import { startTcpProxy } from '../../storage/tcp-proxy.ts';
import { createOpened } from '../../support/opened.ts';
import type { Fields, Page } from '../../support/person.ts';
import { freshMigratedDatabaseUrl } from '../../support/postgres-server.ts';
import { valuesIn } from '../../support/redis-server.ts';
import { describeOn, postgresServer } from '../../support/requirements.ts';
import { seed } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { isSecretValid, LIST, REDIRECT_URI, shownOn } from '../client-owner.ts';
import { fieldOf, type SignedInPerson, signedIn } from '../signed-in-person.ts';

const KEYS = '/profile/api-keys';

interface Form {
  readonly title: string;
  readonly path: string;
  readonly fields: Fields;
  /** Returns the ids of everything that the user created with this form. */
  list(service: TestService, accountId: string): Promise<string[]>;
  isValid(service: TestService, made: { id: string; secret: string }): Promise<boolean>;
  readonly action: 'client_added' | 'api_key_added';
}

const FORMS: readonly [Form, Form] = [
  {
    title: 'OAuth client',
    path: `${LIST}/new`,
    fields: { name: 'Stock Sync', redirect_uris: [REDIRECT_URI] },
    list: async ({ clients }, accountId) => (await clients.listByOwner(accountId)).map(({ id }) => id),
    isValid: ({ issuer }, made) => isSecretValid(issuer, { ...made, redirectUri: REDIRECT_URI }),
    action: 'client_added',
  },
  {
    title: 'API key',
    path: KEYS,
    fields: { name: 'Export', expires_in_days: '90' },
    list: async ({ apiKeys }, accountId) => (await apiKeys.listOf(accountId)).map(({ id }) => id),
    isValid: async ({ apiKeys }, { secret }) => (await apiKeys.findByValue(secret)) !== undefined,
    action: 'api_key_added',
  },
];

const secretOn = (page: Page): string => shownOn(page).secret;

describe('forms that create a client or an API key', () => {
  const on = startSeeded({
    clock: true,
    settings: { limits: { clientsPerPerson: 2, apiKeysPerPerson: 2 } },
  });
  let person: SignedInPerson;
  let other: SignedInPerson;

  beforeEach(async () => {
    await deleteCreated();
    await on.service.database.query('DELETE FROM activity');
  });

  async function deleteCreated(): Promise<void> {
    await on.service.database.query('DELETE FROM api_keys');
    await on.service.database.query('DELETE FROM clients WHERE owner_account_id = $1', [on.seeded.person.accountId]);
  }

  async function signInBoth(): Promise<void> {
    person = await signedIn(on.service, on.seeded.person);
    other = await signedIn(on.service, on.seeded.other);
  }
  const listOwn = ({ list }: Form): Promise<string[]> => list(on.service, on.seeded.person.accountId);
  async function expectRecorded({ action }: Form, times: number): Promise<void> {
    const rows = await on.service.database.query('SELECT 1 FROM activity WHERE action = $1', [action]);
    expect(rows).to.have.length(times);
  }

  for (const one of FORMS) {
    const { title, path, fields, list, isValid } = one;
    describe(`the form for a new ${title}`, () => {
      before(signInBoth);

      it('a form sent four times in parallel creates one entry and shows its secret once', async () => {
        const form = await person.get(path);
        const clicks = [1, 2, 3, 4].map(() => person.submit(form, fields));
        const sent = await Promise.all(clicks);
        expect(sent.map(({ status }) => status)).to.deep.equal([303, 303, 303, 303]);
        expect(new Set(sent.map(({ location }) => location?.href)).size).to.equal(1);
        const ids = await listOwn(one);
        expect(ids).to.have.length(1);
        await expectRecorded(one, 1);

        const pages = await Promise.all(sent.map((page) => person.follow(page)));
        const secrets = pages.map(secretOn).filter((secret) => secret !== '');
        expect(secrets).to.have.length(1);
        const [id = ''] = ids;
        const [secret = ''] = secrets;
        expect(await isValid(on.service, { id, secret })).to.equal(true);
      });

      it('a form never returns what another user created with the same creation key', async () => {
        const form = await person.get(path);
        await person.submit(form, fields);
        const before = await list(on.service, on.seeded.other.accountId);
        const creation_key = fieldOf(form, 'creation_key');
        expect(creation_key).to.match(/^[\w-]{43}$/);
        const own = await other.follow(await other.submit(await other.get(path), { ...fields, creation_key }));
        expect(secretOn(own)).to.not.equal('');
        expect(await list(on.service, on.seeded.other.accountId)).to.have.length(before.length + 1);
        expect(await listOwn(one)).to.have.length(1);
      });

      it('once the limit is reached, the last form can be sent again, but a new form is refused', async () => {
        await person.submit(await person.get(path), fields);
        const form = await person.get(path);
        for (const { status } of [await person.submit(form, fields), await person.submit(form, fields)]) {
          expect(status).to.equal(303);
        }
        expect((await person.send(path, fields)).status).to.equal(422);
        expect(await listOwn(one)).to.have.length(2);
      });

      it('neither the creation key nor the secret is stored or logged in plain text', async () => {
        const form = await person.get(path);
        const shown = await person.follow(await person.submit(form, fields));
        const tables = ['clients', 'client_secrets', 'api_keys', 'token_records', 'activity'];
        const rows = await Promise.all(
          tables.map((table) => on.service.database.query(`SELECT row_to_json(t) FROM ${table} t`)),
        );
        const redisValues = await valuesIn(on.service.settings.storage.redisUrl);
        const text = JSON.stringify([rows, redisValues, on.service.logLines]);
        expect(text).to.not.include(fieldOf(form, 'creation_key')).and.not.include(secretOn(shown));
        const once = shown.url.searchParams.get('once');
        expect(once).to.be.a('string').with.length.above(20);
        expect(text).to.not.include(once);
      });
    });
  }

  describe('a repeated form creates no second client or API key, and a secret is shown for five minutes', () => {
    const [one] = FORMS;
    const { path, fields } = one;
    before(signInBoth);

    it('a form that is submitted again later creates nothing, and says that the secret was already shown', async () => {
      const form = await person.get(path);
      expect(secretOn(await person.follow(await person.submit(form, fields)))).to.not.equal('');
      const ids = await listOwn(one);
      const again = await person.follow(await person.submit(form, fields));
      expect(again.status).to.equal(200);
      expect(again.html).to.include('was shown already').and.not.include('data-secret');
      expect(await listOwn(one)).to.deep.equal(ids);
      await expectRecorded(one, 1);
    });

    it('a form that is submitted with other values, or after a reload, creates a second entry', async () => {
      const form = await person.get(path);
      await person.submit(form, fields);
      await person.submit(form, { ...fields, name: 'Another' });
      expect(await listOwn(one)).to.have.length(2);
      await deleteCreated();
      await person.submit(form, fields);
      await person.submit(await person.get(path), fields);
      expect(await listOwn(one)).to.have.length(2);
    });

    // Keep this test last: it moves the clock, after which no sign-in is recent.
    it('a created secret is shown for five minutes, to its user only; a HEAD request does not consume it', async () => {
      const { location = '' } = await person.submit(await person.get(path), fields);
      expect(secretOn(await other.get(location))).to.equal('');
      const headers = { cookie: person.cookieHeader(path) };
      await fetch(location, { method: 'HEAD', headers });
      on.clock.advance(299);
      expect(secretOn(await person.get(location))).to.match(/^gate_/);
      const late = await person.submit(await person.get(path), fields);
      on.clock.advance(301);
      expect(secretOn(await person.get(late.location ?? ''))).to.equal('');
    });
  });
});

describeOn([postgresServer], 'a form whose answer from PostgreSQL was lost', () => {
  const opened = createOpened();
  after(opened.closeAll);

  it('if the answer to a commit is lost, sending the form again creates no second client and shows the secret', async () => {
    const [{ path, fields, list, isValid, action }] = FORMS;
    const url = new URL(await freshMigratedDatabaseUrl());
    const proxy = await opened.add(startTcpProxy(Number(url.port)), ({ close }) => close());
    url.port = String(proxy.port);
    const settings = { storage: { databaseUrl: url.href } };
    const starting = startTestService({ deployment: 'postgres', settings });
    const service = await opened.add(starting, ({ close }) => close());
    const { person: maker } = await seed(service);
    const person = await signedIn(service, maker);
    const form = await person.get(path);

    const lost = proxy.breakAnswerTo('COMMIT');
    const failed = await person.submit(form, fields);
    await lost;
    expect(failed.status).to.equal(503);
    expect(secretOn(failed)).to.equal('');

    const shown = await person.follow(await person.submit(form, fields));
    const ids = await list(service, maker.accountId);
    expect(ids).to.have.length(1);
    const [id = ''] = ids;
    expect(await isValid(service, { id, secret: secretOn(shown) })).to.equal(true);
    const recorded = await service.activity.of(maker.accountId, { limit: 50 });
    expect(recorded.filter((entry) => entry.action === action)).to.have.length(1);
  });
});
