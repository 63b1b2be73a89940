/** Who may push changes, and the answers to requests that are invalid, interrupted or repeated. */
import { connect } from 'node:net';
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { bodyOf, emptyDatabase, line } from './import-file.ts';
import { push, SECRET, SENDERS } from './pushing.ts';

const { account, organization } = line;

const OTHER_SECRET = 'another-secret-of-the-tests-0123456789abc';
const MEGABYTE = 1024 * 1024;

describe('requests with pushed changes', () => {
  const start = startsOn();
  const startOnPostgres = startsOn('postgres');
  let service: TestService;
  let senders = { changes: [...SENDERS.changes, { name: 'hr', secret: OTHER_SECRET }] };
  before(async () => {
    service = await start({
      settings: { senders },
      reloaded: () => ({ senders }),
    });
  });
  beforeEach(() => emptyDatabase(service.database));
  const portOf = () => Number(new URL(service.operatorsUrl).port);
  const count = async (): Promise<number> => (await service.database.query('SELECT FROM accounts')).length;
  /** Sends the text on a new connection, and returns the answer when the connection is closed. */
  const raw = (text: string) =>
    new Promise<string>((resolve) => {
      let answer = '';
      const socket = connect(portOf(), '127.0.0.1', () => socket.write(text));
      socket.on('data', (bytes) => {
        answer += bytes;
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(answer));
    });
  /** Sends the text on a new connection, and cuts it at once. */
  const cut = (text: string): void => {
    const socket = connect(portOf(), '127.0.0.1', () => socket.write(text, () => socket.destroy()));
  };
  const head = (...headers: string[]) =>
    ['POST /changes HTTP/1.1', 'Host: localhost', `Authorization: Bearer ${SECRET}`, ...headers, '', ''].join('\r\n');
  const request = (body: Buffer) => `${head(`Content-Length: ${body.length}`)}${body}`;

  it('both secrets of a sender are accepted, and a reload replaces the secrets', async () => {
    expect((await push(service, [account('A1')])).results).to.deep.equal(['ok']);
    const second = await push(service, [account('A1')], { secret: OTHER_SECRET });
    expect(second.results).to.deep.equal(['unchanged']);
    senders = { changes: [{ name: 'hr', secret: OTHER_SECRET }] };
    expect(await service.reload()).to.deep.include({ changed: ['GATEHOUSE_CHANGES_SECRETS'] });
    expect((await push(service, [])).status).to.equal(401);
    expect((await push(service, [], { secret: OTHER_SECRET })).status).to.equal(200);
    senders = SENDERS;
    await service.reload();
  });

  it('a line that is not JSON, not UTF-8, not an object or too long is refused, other lines are applied, and blank lines are skipped', async () => {
    const deep = `{"type":"account","external_id":${'['.repeat(30_000)}${']'.repeat(30_000)}}`;
    const texts = ['["list"]', 'null', Buffer.from([0xff, 0xfe]), '{"type":"account"}', '{"type":"acount"}', '\0'];
    const { answers, results } = await push(service, [
      ...['no json', '', ...texts, 'x'.repeat(70_000), deep],
      account('A1', { surname: 'x' }),
      account('A1', { as_of: 'yesterday' }),
      { ...organization('O1'), removed: true },
      account('A1', { deleted: true }),
      line.rights('A1', 'W1', ...Array(6_000).fill('fly')),
      account('A1'),
    ]);
    expect(results).to.deep.equal([...Array(14).fill('line_invalid'), 'ok']);
    expect(answers.map(({ line: number }) => number)).to.deep.equal([
      1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
    ]);
    for (const { message = '', remedy } of answers.slice(0, -1)) {
      expect(message.length).to.be.within(10, 800);
      expect(remedy).to.be.a('string');
    }
    expect(answers[9]?.message).to.contain('surname');
    expect(answers[11]?.message).to.contain('import --prune');
    expect(answers[12]?.message).to.contain('needs `"removed": true`');
  });

  it('an as_of more than five minutes in the future is refused', async () => {
    const inSeconds = (seconds: number) => ({ as_of: new Date(Date.now() + seconds * 1_000).toISOString() });
    const { results } = await push(service, [
      account('A1', inSeconds(400)),
      account('A1', inSeconds(200)),
      account('A1', inSeconds(100)),
    ]);
    expect(results).to.deep.equal(['as_of_in_future', 'ok', 'outdated']);
  });

  it('a request with 1,000 lines is applied, and a request with 1,001 lines is refused', async () => {
    const people = Array.from({ length: 1_001 }, (_, at) => account(`A${at}`));
    const { status, text } = await push(service, people);
    expect({ status, code: JSON.parse(text).code }).to.deep.equal({ status: 413, code: 'too_many_lines' });
    expect(await count()).to.equal(0);
    const { results } = await push(service, people.slice(1));
    expect(new Set(results)).to.deep.equal(new Set(['ok']));
    expect(await count()).to.equal(1_000);
  });

  it('a body of more than one megabyte is refused before it is read completely, and changes nothing', async () => {
    const body = bodyOf([account('A1')]);
    const announced = await raw(`${head(`Content-Length: ${1024 * MEGABYTE}`)}${body}`);
    expect(announced)
      .to.match(/^HTTP\/1.1 413 /)
      .and.contain('body_too_large');
    const long = `${body}${'x'.repeat(MEGABYTE)}`;
    const chunk = `${long.length.toString(16)}\r\n${long}\r\n`;
    expect(await raw(`${head('Transfer-Encoding: chunked')}${chunk}`)).to.match(/^HTTP\/1.1 413 /);
    expect(await count()).to.equal(0);
    const oneLine = await push(service, Buffer.alloc(MEGABYTE, 'x'));
    expect(oneLine.results).to.deep.equal(['line_invalid']);
  });

  it('a request whose connection is cut during the body changes nothing; one that is cut before the answer is applied, and can be repeated', async () => {
    cut(request(bodyOf([account('A1'), account('A2')])).slice(0, -10));
    await eventually(() => {
      const requests = service.logLines.filter((one) => one.includes('"path":"/changes"'));
      expect(requests.at(-1)).to.match(/"status":(499|400)/);
    });
    expect(await count()).to.equal(0);
    cut(request(bodyOf([account('A1')])));
    await eventually(async () => expect(await count()).to.equal(1));
    expect((await push(service, [account('A1')])).results).to.deep.equal(['unchanged']);
  });

  it('a connection plans the statements of a line once, whatever the line names', async () => {
    // With one connection, this query reads what the pushes have left on it.
    const one = await startOnPostgres({ settings: { senders, storage: { databaseConnections: 1 } } });
    const plans = () =>
      one.database.query<{ statement: string; reused: number }>(
        "SELECT statement, generic_plans::int AS reused FROM pg_prepared_statements WHERE statement LIKE '%known_times%'",
      );
    const add = async (name: string) => expect((await push(one, [account(name)])).results).to.deep.equal(['ok']);
    for (const name of ['A1', 'A2', 'A3', 'A4', 'A5', 'A6', 'A7']) await add(name);
    const before = await plans();
    await add('A8');
    const after = await plans();
    expect(after.map(({ statement }) => statement)).to.have.members(before.map(({ statement }) => statement));
    const reuses = (rows: typeof before) => rows.reduce((sum, { reused }) => sum + reused, 0);
    expect(reuses(after)).to.be.above(reuses(before));
  });

  it('no secret is in the log', () => {
    const log = service.logLines.join('\n');
    expect(log).to.contain('/changes').and.not.contain(SECRET).and.not.contain(OTHER_SECRET);
  });
});
