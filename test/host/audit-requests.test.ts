/** `GET /audit`: who may read the security log, its pages, and the form of its entries. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { z } from 'zod';
import { ACTIONS } from '../../src/accounts/activity/activity-words.ts';
import { eventually } from '../support/eventually.ts';
import { rawRequest } from '../support/raw-request.ts';
import { onPostgresAndRedis, type TestService } from '../support/service.ts';

const SECRET = 'audit-secret-of-the-tests-0123456789abcd';
const senders = { changes: [], audit: [{ name: 'siem', secret: SECRET }] };
const schema = z.fromJSONSchema(
  JSON.parse(readFileSync(new URL('../../docs/audit.schema.json', import.meta.url), 'utf8')),
);

interface Answer {
  readonly entries: readonly { readonly id: number; readonly cursor: string }[];
  readonly next: string;
  readonly more: boolean;
  readonly code?: string;
  readonly remedy?: string;
}

onPostgresAndRedis('GET /audit', (start) => {
  let service: TestService;
  before(async () => {
    service = await start({
      settings: { senders, limits: { clientFailuresPerAddress: 3 } },
    });
    for (const action of ACTIONS) {
      await service.activity.record({
        action,
        actor: 'person',
        accountId: 'acc_gone',
        details: { client_name: 'Acme', count: 3, confirmation: true, changed: ['email'] },
        origin: { address: '192.0.2.7', browser: 'Firefox' },
      });
    }
  });

  const ask = (query = '', headers: Record<string, string> = {}, method = 'GET') =>
    rawRequest(Number(new URL(service.operatorsUrl).port), `/audit${query}`, {
      method,
      headers: { host: 'localhost', authorization: `Bearer ${SECRET}`, ...headers },
    });
  const read = async (query = ''): Promise<Answer> => JSON.parse((await ask(query)).text);

  it('without a secret in the settings, the path does not exist', async () => {
    const other = await start({ settings: { senders: { changes: senders.audit } } });
    const headers = { authorization: `Bearer ${SECRET}` };
    const { status } = await fetch(`${other.operatorsUrl}/audit`, { headers });
    expect(status).to.equal(404);
  });

  it('browsers, other host names, other methods and wrong secrets are refused', async () => {
    expect((await ask('', { origin: 'null' })).status).to.equal(403);
    expect((await ask('', { host: 'evil.example' })).status).to.equal(421);
    expect((await ask('', { 'content-length': '0' }, 'POST')).status).to.equal(405);
    const statuses: number[] = [];
    for (const authorization of ['', 'Bearer', `Basic ${SECRET}`, 'Bearer x', `bearer ${SECRET}`]) {
      statuses.push((await ask('', { authorization })).status);
    }
    expect([statuses[0], statuses.at(-1)]).to.deep.equal([401, 429]);
    const { text } = await ask('', { authorization: 'Bearer x' });
    expect(text).to.contain('GATEHOUSE_AUDIT_SECRETS');
    expect((await ask('')).status).to.equal(200);
  });

  it('the pages contain each entry once, oldest first, in the form of the schema', async () => {
    const ids: number[] = [];
    for (let query = '?limit=7'; ; ) {
      const { entries, next, more } = await eventually(() => read(query));
      for (const entry of entries) schema.parse(entry);
      expect(entries.at(-1)?.cursor ?? next).to.equal(next);
      ids.push(...entries.map(({ id }) => id));
      query = `?limit=7&after=${next}`;
      if (!more) break;
    }
    const stored = await service.database.query<{ id: string }>('SELECT id FROM activity ORDER BY id');
    expect(ids).to.deep.equal(stored.map(({ id }) => Number(id)));
    expect(ids.length).to.be.at.least(ACTIONS.length);
  });

  it('a wrong limit, cursor or parameter is answered 400 with a remedy', async () => {
    const { next } = await read();
    for (const [query, code] of [
      ['?limit=1e9', 'limit_invalid'],
      ['?limit=0', 'limit_invalid'],
      ['?limit=1001', 'limit_invalid'],
      ['?limit=1&limit=2', 'limit_invalid'],
      ['?after=%00', 'cursor_invalid'],
      ['?after=', 'cursor_invalid'],
      [`?after=${next}x`, 'cursor_invalid'],
      ['?after=000000000000-1-1', 'cursor_of_another_log'],
      [`?after=${next}&after=${next}`, 'parameter_invalid'],
      [`?afer=${next}`, 'parameter_invalid'],
    ] as const) {
      const { status, text } = await ask(query);
      const answer: Answer = JSON.parse(text);
      expect({ status, code: answer.code }, query).to.deep.equal({ status: 400, code });
      expect(answer.remedy, query).to.match(/^[A-Z].*\.$/);
    }
  });
});
