/** A consent page gives one code: a second approval, sent while the first is resumed, gets none. */
import { expect } from 'chai';
import pg from 'pg';
import { signedIn } from '../pages/signed-in-person.ts';
import { startTcpProxy, type TcpProxy } from '../storage/tcp-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import type { Page, Person } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { type Deployment, startTestService, type TestService } from '../support/service.ts';
import { answerIn } from './authorization-outcome.ts';

/** Controls a node that pauses after it has read an interaction, before it writes the answer. */
interface Hold {
  readonly held: Promise<void>;
  release(): Promise<void> | void;
}

interface Nodes {
  readonly service: TestService;
  /** Another node, whose next answer to an interaction can be delayed. */
  readonly slow: TestService;
  hold(): Promise<Hold>;
}

const PLACES = [
  { title: 'PostgreSQL', needs: [postgresServer], open: onPostgres },
  { title: 'Redis', needs: [postgresServer, redisServer], open: onRedis },
] as const;

for (const { title, needs, open } of PLACES) {
  describeOn(needs, `two approvals of one consent page, ${title}`, () => {
    const opened = createOpened();
    after(opened.closeAll);

    it('a second approval of one request gets no code while the first approval is being processed', async () => {
      const { service, slow, hold } = await open(opened);
      const seeded = await seed(service);
      const person = await signedIn(service, seeded.person);
      const request = authorizationUrl(service.issuer, seeded.clients.confidential);
      const consent = await person.open(request);

      const first = await person.submit(consent, { decision: 'approve' });
      const resumption = cookiesOf(person, first.location);
      const { held, release } = await hold();
      const second = approveAt(slow, person, consent);
      await held;
      expect(answerIn(await person.follow(first))).to.have.property('code');
      await release();

      const { status, location } = await second;
      expect(status).to.equal(303);
      expect(location?.pathname).to.equal(consent.url.pathname);
      // The browser has deleted the interaction's cookie by now; a copy of it must be useless.
      const session = person.cookieHeader('/');
      const again = await fetch(first.location ?? '', {
        headers: { cookie: `${session}; ${resumption}`, accept: 'text/html' },
        redirect: 'manual',
      });
      expect(again.status).to.equal(410);
      expect(again.headers.get('location')).to.equal(null);
    });
  });
}

describe('an approval that cannot be recorded', () => {
  const on = startSeeded();

  it('connects nothing, and the next request asks again', async () => {
    const { accountId } = on.seeded.person;
    const { id } = on.clients.confidential;
    const recorded = () => on.service.database.query(`SELECT FROM activity WHERE action = 'connected'`);
    const person = await signedIn(on.service, on.seeded.person);
    const request = authorizationUrl(on.issuer, on.clients.confidential);
    const consent = await person.open(request);
    await on.service.database.query(`ALTER TABLE activity ADD CONSTRAINT disk_full CHECK (action <> 'connected')`);
    const failed = await person.follow(await person.submit(consent, { decision: 'approve' }));
    expect(failed.status).to.be.at.least(500);
    expect(await on.service.connections.find(accountId, id)).to.equal(undefined);
    await on.service.database.query('ALTER TABLE activity DROP CONSTRAINT disk_full');
    const again = await person.open(request);
    const done = await person.follow(await person.submit(again, { decision: 'approve' }));
    expect(answerIn(done)).to.have.property('code');
    expect(await recorded()).to.have.length(1);
  });
});

/** Returns the cookies of the interaction, without those of the session. */
function cookiesOf(person: Person, url: URL | undefined): string {
  const session = person.cookieHeader('/').split('; ');
  const all = person.cookieHeader(url?.pathname ?? '').split('; ');
  return all.filter((cookie) => !session.includes(cookie)).join('; ');
}

/** Sends the same approval to another node. */
async function approveAt(node: TestService, person: Person, consent: Page) {
  const fields = consent.forms.flatMap(({ values }) => values);
  const url = new URL(consent.url.pathname, node.issuer);
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      cookie: person.cookieHeader(consent.url.pathname),
      origin: node.issuer,
      'sec-fetch-site': 'same-origin',
    },
    body: new URLSearchParams(Object.fromEntries([...fields, ['decision', 'approve']])),
    redirect: 'manual',
  });
  const location = response.headers.get('location');
  return { status: response.status, location: location === null ? null : new URL(location, url) };
}

async function onPostgres(opened: Opened): Promise<Nodes> {
  const { service, slow } = await startNodes(opened, 'postgres');
  const connectionString = service.settings.storage.databaseUrl;
  const connecting = new pg.Client({ connectionString });
  const client = await opened.add(
    connecting.connect().then(() => connecting),
    () => connecting.end(),
  );
  const hold = async (): Promise<Hold> => {
    await client.query('BEGIN');
    // Lock the record that marks the interaction as answered, because it is written first.
    await client.query(`SELECT 1 FROM token_records WHERE data->>'restart' IS NOT NULL FOR UPDATE`);
    const held = eventually(async () => {
      const waiting = await client.query('SELECT 1 FROM pg_locks WHERE NOT granted');
      expect(waiting.rowCount).to.equal(1);
    });
    return { held, release: () => client.query('COMMIT').then(() => undefined) };
  };
  return { service, slow, hold };
}

async function onRedis(opened: Opened): Promise<Nodes> {
  let proxy: TcpProxy | undefined;
  const { service, slow } = await startNodes(opened, 'postgres+redis', async (redisUrl) => {
    const url = new URL(redisUrl);
    proxy = await opened.add(startTcpProxy(Number(url.port)), ({ close }) => close());
    url.port = String(proxy.port);
    return url.href;
  });
  // Give each node a proxy of its own, because a proxy pauses a whole connection.
  const hold = async (): Promise<Hold> => {
    if (!proxy) throw new Error('no proxy');
    return proxy.hold(/\r\nset\r\n.*gh:i:/s);
  };
  return { service, slow, hold };
}

type Opened = ReturnType<typeof createOpened>;

async function startNodes(opened: Opened, deployment: Deployment, proxied?: (redisUrl: string) => Promise<string>) {
  const close = (node: TestService): Promise<void> => node.close();
  const service = await opened.add(startTestService({ deployment }), close);
  const { redisUrl = '' } = service.settings.storage;
  const storage = proxied ? { redisUrl: await proxied(redisUrl) } : {};
  const options = { deployment, sharing: service, settings: { storage } };
  return { service, slow: await opened.add(startTestService(options), close) };
}
