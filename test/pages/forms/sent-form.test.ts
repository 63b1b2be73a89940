/** Forms that make something with a secret: sent twice, or answered by nobody, they make one thing. */
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
import { isSecretGood, LIST, REDIRECT_URI, shownOn } from '../client-owner.ts';
import { fieldOf, type SignedInPerson, signedIn } from '../signed-in-person.ts';

const KEYS = '/profile/api-keys';

interface Form {
  readonly title: string;
  readonly path: string;
  readonly fields: Fields;
  /** The ids of what a person made with it. */
  made(service: TestService, accountId: string): Promise<string[]>;
  isGood(service: TestService, made: { id: string; secret: string }): Promise<boolean>;
  readonly action: 'client_added' | 'api_key_added';
}

const FORMS: readonly Form[] = [
  {
    title: 'OAuth client',
    path: `${LIST}/new`,
    fields: { name: 'Stock Sync', redirect_uris: [REDIRECT_URI] },
    made: async ({ clients }, accountId) =>
      (await clients.listByOwner(accountId)).map(({ id }) => id),
    isGood: ({ issuer }, made) => isSecretGood(issuer, { ...made, redirectUri: REDIRECT_URI }),
    action: 'client_added',
  },
  {
    title: 'API key',
    path: KEYS,
    fields: { name: 'Export', expires_in_days: '90' },
    made: async ({ apiKeys }, accountId) => (await apiKeys.listOf(accountId)).map(({ id }) => id),
    isGood: async ({ apiKeys }, { secret }) => (await apiKeys.findByValue(secret)) !== undefined,
    action: 'api_key_added',
  },
];

const secretOn = (page: Page): string => shownOn(page).secret;

describe('forms that make something with a secret', () => {
  const on = startSeeded({
    clock: true,
    settings: { limits: { clientsPerPerson: 2, apiKeysPerPerson: 2 } },
  });
  let person: SignedInPerson;
  let other: SignedInPerson;

  beforeEach(async () => {
    await forget();
    await on.service.database.query('DELETE FROM activity');
  });

  async function forget(): Promise<void> {
    await on.service.database.query('DELETE FROM api_keys');
    await on.service.database.query('DELETE FROM clients WHERE owner_account_id = $1', [
      on.seeded.person.accountId,
    ]);
  }

  for (const { title, path, fields, made, isGood, action } of FORMS) {
    describe(`the form for a new ${title}`, () => {
      before(async () => {
        person = await signedIn(on.service, on.seeded.person);
        other = await signedIn(on.service, on.seeded.other);
      });

      const madeByMaker = (): Promise<string[]> => made(on.service, on.seeded.person.accountId);
      async function expectRecorded(times: number): Promise<void> {
        const rows = await on.service.database.query('SELECT 1 FROM activity WHERE action = $1', [
          action,
        ]);
        expect(rows).to.have.length(times);
      }

      it('sent by two clicks at once makes one, and shows its secret once', async () => {
        const form = await person.get(path);
        const clicks = [1, 2, 3, 4].map(() => person.submit(form, fields));
        const sent = await Promise.all(clicks);
        expect(sent.map(({ status }) => status)).to.deep.equal([303, 303, 303, 303]);
        expect(new Set(sent.map(({ location }) => location?.href)).size).to.equal(1);
        const ids = await madeByMaker();
        expect(ids).to.have.length(1);
        await expectRecorded(1);

        const pages = await Promise.all(sent.map((page) => person.follow(page)));
        const secrets = pages.map(secretOn).filter((secret) => secret !== '');
        expect(secrets).to.have.length(1);
        const [id = ''] = ids;
        const [secret = ''] = secrets;
        expect(await isGood(on.service, { id, secret })).to.equal(true);
      });

      it('of which the browser only saw the second answer still shows the secret', async () => {
        const form = await person.get(path);
        await person.submit(form, fields);
        const shown = await person.follow(await person.submit(form, fields));
        const [id = ''] = await madeByMaker();
        expect(await isGood(on.service, { id, secret: secretOn(shown) })).to.equal(true);
      });

      it('sent again later makes nothing, and says that the secret was shown', async () => {
        const form = await person.get(path);
        expect(secretOn(await person.follow(await person.submit(form, fields)))).to.not.equal('');
        const ids = await madeByMaker();
        const again = await person.follow(await person.submit(form, fields));
        expect(again.status).to.equal(200);
        expect(again.html).to.include('was shown already').and.not.include('data-secret');
        expect(await madeByMaker()).to.deep.equal(ids);
        await expectRecorded(1);
      });

      it('sent twice for the last place there is, is not refused', async () => {
        await person.submit(await person.get(path), fields);
        const form = await person.get(path);
        for (const { status } of [
          await person.submit(form, fields),
          await person.submit(form, fields),
        ]) {
          expect(status).to.equal(303);
        }
        expect(await madeByMaker()).to.have.length(2);
      });

      it('filled in otherwise, or drawn anew, makes another one', async () => {
        const form = await person.get(path);
        await person.submit(form, fields);
        await person.submit(form, { ...fields, name: 'Another' });
        expect(await madeByMaker()).to.have.length(2);
        await forget();
        await person.submit(form, fields);
        await person.submit(await person.get(path), fields);
        expect(await madeByMaker()).to.have.length(2);
      });

      it('finds nothing that somebody else made with the same key', async () => {
        const form = await person.get(path);
        await person.submit(form, fields);
        const before = await made(on.service, on.seeded.other.accountId);
        const creation_key = fieldOf(form, 'creation_key');
        expect(creation_key).to.match(/^[\w-]{43}$/);
        const own = await other.follow(
          await other.submit(await other.get(path), { ...fields, creation_key }),
        );
        expect(secretOn(own)).to.not.equal('');
        expect(await made(on.service, on.seeded.other.accountId)).to.have.length(before.length + 1);
        expect(await madeByMaker()).to.have.length(1);
      });

      it('leaves nothing in the tables and the log that tells the key or the secret', async () => {
        const form = await person.get(path);
        const shown = await person.follow(await person.submit(form, fields));
        const tables = ['clients', 'client_secrets', 'api_keys', 'token_records', 'activity'];
        const rows = await Promise.all(
          tables.map((table) => on.service.database.query(`SELECT row_to_json(t) FROM ${table} t`)),
        );
        const kept = await valuesIn(on.service.settings.storage.redisUrl);
        const text = JSON.stringify([rows, kept, on.service.logLines]);
        expect(text).to.not.include(fieldOf(form, 'creation_key')).and.not.include(secretOn(shown));
        const once = shown.url.searchParams.get('once');
        expect(once).to.be.a('string').with.length.above(20);
        expect(text).to.not.include(once);
      });

      // It moves the clock: no sign-in is recent after it.
      it('leads to the secret for five minutes, its person only; a look at the headers leaves it', async () => {
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
  }
});

describeOn([postgresServer], 'a form whose answer from PostgreSQL was lost', () => {
  const opened = createOpened();
  after(opened.closeAll);

  for (const { title, path, fields, made, isGood, action } of FORMS) {
    it(`makes one ${title}, whose secret is shown when the form is sent again`, async () => {
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
      const ids = await made(service, maker.accountId);
      expect(ids).to.have.length(1);
      const [id = ''] = ids;
      expect(await isGood(service, { id, secret: secretOn(shown) })).to.equal(true);
      const recorded = await service.activity.of(maker.accountId, { limit: 50 });
      expect(recorded.filter((entry) => entry.action === action)).to.have.length(1);
    });
  }
});
