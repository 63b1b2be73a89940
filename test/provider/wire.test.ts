/** The service sends the answers and lines of the wire contract's test vectors. */
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { ANSWERS, STREAMS } from '../../modules/node/test/vectors.ts';
import { withChecksum } from '../../src/base/random-id.ts';
import { createChangeStreams } from '../../src/provider/introspection-changes.ts';
import type { ChangeFeed, ChangeTopic } from '../../src/storage/change-feed.ts';
import { eventually } from '../support/eventually.ts';
import { basic, clientCredentials, introspect, type TestClient } from '../support/oauth.ts';
import { type RawAnswer, rawRequest } from '../support/raw-request.ts';
import { addTestClient, apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { tokensOf } from './partner-tokens.ts';

/** Replaces each value by what a reader relies on: its type, or the prefix of its id. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
  }
  if (typeof value !== 'string') return typeof value === 'number' ? 'number' : value;
  const [prefix] = /^(?:acc|gate_ci|org|wh|key)_/.exec(value) ?? [];
  return prefix ?? (/^[a-zB_]+$/.test(value) ? value : 'text');
}

function shownBody(body: string): unknown {
  return body.startsWith('{') ? shapeOf(JSON.parse(body)) : body.replace(/ at .*/, ' at …').trim();
}

onPostgresAndRedis('the answers of the wire contract', (start) => {
  const on = startSeeded({ on: start, settings: { limits: { clientFailures: 2 } } });

  const ask = (token: string, client: TestClient = on.clients.resourceServer) => introspect(on.issuer, client, token);
  const form = (parameters: Record<string, string>, host = new URL(on.issuer).host) =>
    rawRequest(Number(new URL(on.issuer).port), '/oauth/introspect', {
      headers: { host, authorization: basic(on.clients.resourceServer) },
      form: parameters,
    });
  const wrongSecret = async (): Promise<TestClient> => ({
    ...(await addTestClient(on.service, 'Other API', { kind: 'resource-server' })),
    secret: withChecksum(`gate_cs_${'w'.repeat(43)}`),
  });
  const personToken = async () => (await on.partner.tokens(on.clients.confidential)).accessToken;
  const machineToken = async () => tokensOf(await clientCredentials(on.issuer, on.clients.machine)).accessToken;
  const keyOf = async (more = {}) => (await apiKeyOf(on.service, on.seeded.person, 'Export', more)).value;

  /** Sends the request to which the vector with this title is the answer. */
  const REQUESTS: Readonly<Record<string, () => Promise<RawAnswer>>> = {
    'a person through a client': async () => ask(await personToken()),
    'a machine client': async () => ask(await machineToken()),
    'an API key': async () => ask(await keyOf()),
    'an API key that does not expire': async () => ask(await keyOf({ expiresInDays: undefined })),
    'an imported person': async () => {
      const { person, organization, warehouse } = on.seeded;
      const ids = [person.accountId, organization.id, warehouse.id];
      const setExternalIds = async (externalId: string | null) => {
        for (const table of ['accounts', 'organizations', 'warehouses']) {
          const change = `UPDATE ${table} SET external_id = $1 WHERE id = ANY($2)`;
          await on.service.database.query(change, [externalId, ids]);
        }
      };
      await setExternalIds('erp-7');
      return ask(await personToken()).finally(() => setExternalIds(null));
    },
    'a person without any access': async () => {
      const { organization, person } = on.seeded;
      await on.service.memberships.remove({ accountId: person.accountId }, organization.id);
      // The node learns of the removal from its notification.
      return eventually(async () => {
        const sent = await ask(await personToken());
        expect(JSON.parse(sent.text).organizations).to.deep.equal([]);
        return sent;
      });
    },
    'an inactive token': () => ask('gate_at_unknown'),
    'wrong credentials of the API': async () => ask('x', await wrongSecret()),
    'too many wrong credentials': async () => {
      const client = await wrongSecret();
      for (const _ of [1, 2, 3]) await ask('x', client);
      return ask('x', client);
    },
    'a request without a token': () => form({}),
    'a Host that is not the issuer’s': () => form({ token: 'x' }, '10.0.0.7:3000'),
    'an API that is registered as a machine client': async () => ask(await machineToken(), on.clients.machine),
  };

  it('these tests cover exactly the test vectors that are marked as sent by the service', () => {
    const titles = ANSWERS.filter((vector) => vector.sent_by_service).map(({ title }) => title);
    expect(Object.keys(REQUESTS).sort()).to.deep.equal(titles.sort());
  });

  for (const vector of ANSWERS.filter(({ sent_by_service }) => sent_by_service)) {
    it(`the service sends the answer of the vector: ${vector.title}`, async () => {
      const sent = await REQUESTS[vector.title]?.();
      expect(sent?.status).to.equal(vector.status);
      expect(shownBody(sent?.text ?? '')).to.deep.equal(shownBody(vector.body));
      for (const name of ['WWW-Authenticate', 'Retry-After', 'Content-Type']) {
        const value = sent?.headers.get(name)?.replace(on.issuer, 'https://auth.example.com');
        if (name === 'Content-Type' && !vector.headers[name]) expect(value).to.match(/json/);
        else if (name === 'Retry-After') expect(Boolean(value)).to.equal(name in vector.headers);
        else expect(value).to.equal(vector.headers[name]);
      }
    });
  }
});

describe('the lines of the change stream in the wire contract', () => {
  it('for changes of every kind, the service sends exactly the lines of the test vector', async () => {
    let announce: Parameters<ChangeFeed['onChange']>[0] = () => {};
    const streams = createChangeStreams({
      ...({ isLive: true } as ChangeFeed),
      onChange: (listener) => {
        announce = listener;
      },
    });
    const stream = streams.open('gate_ci_api', 1);
    if (typeof stream === 'string') throw new Error(stream);
    const changes: readonly [ChangeTopic, string][] = [
      ['accounts', 'acc_ada'],
      ['clients', 'gate_ci_robot'],
      ['connections', 'acc_ada gate_ci_partner'],
      ['authorizations', 'Wd0Jr2x9aVnQ3mZ4kT7s1A'],
      ['organizations', 'org_dem0'],
      ['api-keys', 'a-hash'],
      ['api-key-ids', 'key_export'],
      ['everything', ''],
    ];
    for (const change of changes) announce(...change);
    streams.leave(0);
    const [vector, ...others] = STREAMS.filter(({ sent_by_service }) => sent_by_service);
    expect(others).to.deep.equal([]);
    expect(await text(stream)).to.equal(vector?.pieces.map((piece) => piece.text).join(''));
  });
});
