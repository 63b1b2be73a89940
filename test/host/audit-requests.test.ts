/** `GET /audit`: the pages of the security log, and the form of its entries. */
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
    service = await start({ settings: { senders } });
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

  const ask = (query = '') =>
    rawRequest(Number(new URL(service.operatorsUrl).port), `/audit${query}`, {
      headers: { host: 'localhost', authorization: `Bearer ${SECRET}` },
    });
  const read = async (query = ''): Promise<Answer> => JSON.parse((await ask(query)).text);

  it('the pages of the audit log contain each entry once, oldest first, as docs/audit.schema.json describes', async () => {
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
