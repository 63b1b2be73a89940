/**
 * What lines of `POST /changes` set and remove, how they name records, and which of them are refused; who may push, and
 * the answers to requests that are invalid, interrupted or repeated.
 */
import { connect } from 'node:net';
import { expect } from 'chai';
import { expectExplained } from '../clients/refusals.ts';
import { operatorOn, refusalFrom, valueFrom } from '../operator/run-operator.ts';
import { refuseChanges } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { bodyOf, emptyDatabase, fileOf, type Line, line } from './import-file.ts';
import { ago, countFromBegin, push, SECRET, SENDERS } from './pushing.ts';

const { account, membership, organization, rights, warehouse } = line;

const OTHER_SECRET = 'another-secret-of-the-tests-0123456789abc';
const MEGABYTE = 1024 * 1024;

describe('pushed lines change records, or are refused with a reason', () => {
  const start = startsOn();
  let running: TestService;
  let senders = { changes: [...SENDERS.changes, { name: 'hr', secret: OTHER_SECRET }] };
  before(async () => {
    running = await start({ settings: { senders }, reloaded: () => ({ senders }) });
  });
  beforeEach(() => emptyDatabase(running.database));
  countFromBegin();
  const service = (): TestService => running;
  const send = (...lines: (Line | string)[]) => push(running, lines);
  const results = async (...lines: (Line | string)[]) => (await send(...lines)).results;
  const query = <Row extends object>(text: string) => running.database.query<Row>(text);
  const run = (words: string) => valueFrom(operatorOn(running.database), words);
  const PLACES = [organization('O1'), warehouse('W1', 'O1')];
  const PERSON = [account('A1'), membership('A1', 'O1'), rights('A1', 'W1', 'read')];
  const at = (seconds: number, one: Line): Line => ({ ...one, as_of: ago(seconds) });
  const ending = (one: Line, more: Line = {}): Line => ({ ...one, removed: true, ...more });
  const person = { type: 'account', external_id: 'A1' };
  /** Returns who has which role, right, or suspension, in one list. */
  const state = async () =>
    (
      await query<{ one: string }>(`SELECT concat_ws(' ', email, role) AS one FROM organization_memberships m
          JOIN accounts a ON a.id = m.account_id
        UNION ALL SELECT concat_ws(' ', email, rights::text) FROM warehouse_rights r JOIN accounts a ON a.id = r.account_id
        UNION ALL SELECT email || ' suspended' FROM accounts WHERE suspended_at IS NOT NULL ORDER BY 1`)
    ).map(({ one }) => one.replace('@example.test', ''));

  /** Creates a person, an organization and a warehouse by commands, so without external ids. */
  async function byHand() {
    const { id } = await service().accounts.add({ email: 'jo@example.com', name: 'Jo' });
    const place = await service().organizations.add({ name: 'Storm' });
    const site = await service().organizations.addWarehouse({ organizationId: place.id, name: 'Bergen' });
    return { person: id, place: place.id, site: site.id };
  }

  it('pushed lines apply in order, and `removed` ends what a line names: rights, a membership or all access', async () => {
    expect(await results(...PLACES, ...PERSON)).to.deep.equal(Array(5).fill('ok'));
    const steps: readonly (readonly [Line, readonly string[]])[] = [
      [membership('A1', 'O1', 'admin'), ['a1 admin', 'a1 {read}']],
      [ending(rights('A1', 'W1')), ['a1 admin']],
      [rights('A1', 'W1', 'read', 'write'), ['a1 admin', 'a1 {read,write}']],
      [ending(membership('A1', 'O1', 'chief')), []],
      [ending(person), ['a1 suspended']],
      [account('A1'), []],
      [ending(account('A1', { name: 7, identity: 7, suspended: 7 }), { deleted: true }), []],
    ];
    for (const [one, left] of steps) {
      expect(await results(one, one)).to.deep.equal(['ok', 'unchanged']);
      expect(await state()).to.deep.equal(left);
    }
    expect(await query('SELECT FROM accounts')).to.deep.equal([]);
  });

  it('a pushed line with former_external_id gives the record with that former id a new external id', async () => {
    await results(...PLACES, ...PERSON);
    const renamed = [organization('O2'), warehouse('W2', 'O2'), account('A2')];
    const lines = renamed.map((one, index) => ({ ...one, former_external_id: ['O1', 'W1', 'A1'][index] }));
    expect(await results(...lines)).to.deep.equal(Array(3).fill('ok'));
    expect(await state()).to.deep.equal(['a2 member', 'a2 {read}']);
    const { answers } = await send(account('A3'), { ...account('A2'), former_external_id: 'A3' });
    const message = 'former_external_id: the database has both "A3" and the external_id.';
    expect(answers[1]).to.include({ code: 'line_refused', message, remedy: 'Delete one of the two first.' });
  });

  it('a new organization gets the client policy from the pushed line, or from the settings if the line has none', async () => {
    const strict = await start({ settings: { senders: SENDERS, organizations: { clients: 'ask' } } });
    for (const [on, asks] of [[service(), [false, true]] as const, [strict, [true, true]] as const]) {
      await push(on, [organization('O1'), { ...organization('O2'), clients: 'ask' }]);
      const rows = await on.database.query<{ asks: boolean }>(
        "SELECT asks_first AS asks FROM organizations WHERE external_id LIKE 'O_' ORDER BY external_id",
      );
      expect(rows.map((one) => one.asks)).to.deep.equal(asks);
    }
  });

  it('an import neither changes nor prunes a record that was pushed after the time of its file', async () => {
    const people = [...PERSON.slice(0, 2), account('A2'), membership('A2', 'O1')];
    const [before, without] = [fileOf(...PLACES, account('A0'), ...people), fileOf(...PLACES, ...people)];
    const nightly = (seconds: number, file = before) =>
      run(`import ${file} --as-of ${ago(seconds)} --prune --prune-at-most 100% --yes`);
    await nightly(500);
    const left = ending(membership('A1', 'O1'));
    await send(at(100, left), at(100, account('A3')), at(100, membership('A3', 'O1')));
    await send(at(100, ending(account('A2'), { deleted: true })));
    expect((await nightly(200, without)).newer).to.be.above(0);
    expect(await state()).to.deep.equal(['a0 suspended', 'a3 member']);
    await nightly(50);
    expect(await state()).to.deep.equal(['a1 member', 'a2 member', 'a3 suspended']);
    // An older file that is imported later wins: imports are not compared with each other.
    const older = fileOf(...PLACES, account('A1'), membership('A1', 'O1', 'viewer'));
    expect((await run(`import ${older} --as-of ${ago(400)}`)).newer).to.equal(0);
    expect(await state()).to.include('a1 viewer');
    await nightly(50);
    // The time of the file counts for each of its lines, even if the line changed nothing.
    expect(await results(at(60, left), at(40, left))).to.deep.equal(['outdated', 'ok']);
    await run(`import ${without} --as-of ${ago(20)}`);
    const late = ['A0', 'A2'].map((id) => at(30, account(id, { name: 'Renamed' })));
    expect(await results(...late)).to.deep.equal(['ok', 'outdated']);
  });

  it('a line can name records without an external id by their id, and a user by email address', async () => {
    const { person: id, place, site } = await byHand();
    const member = { type: 'membership', organization_id: place, role: 'member' };
    const named = { type: 'account', email: 'jo@example.com', name: 'Jo Storm' };
    const got = await results(
      { ...member, account_id: id },
      { type: 'warehouse_rights', warehouse_id: site, rights: ['read'], account_email: 'JO@example.com' },
      named,
      { ...named, id, email: 'jo.storm@example.com' },
      { type: 'organization', id: place, name: 'Storm Logistics' },
      { type: 'warehouse', id: site, organization_id: place, name: 'Bergen 2' },
      warehouse('W9', '', { organization: undefined, organization_id: place }),
      { ...member, account_id: id, removed: true },
      { type: 'account', email: 'jo.storm@example.com', removed: true },
    );
    expect(got).to.deep.equal(Array(9).fill('ok'));
    const names = await query<{
      name: string;
    }>(`SELECT concat_ws(' ', external_id, email, name, suspended_by_import) AS name
        FROM accounts UNION ALL SELECT name FROM organizations UNION ALL SELECT name FROM warehouses ORDER BY 1`);
    const all = ['Bergen 2', 'jo.storm@example.com Jo Storm t', 'Storm Logistics', 'Warehouse W9'];
    expect(names.map(({ name }) => name)).to.have.members(all);
  });

  it('a pushed line with id and external_id sets the external id, but is refused if its keys point to two users', async () => {
    const { person: id, place } = await byHand();
    await send(...PLACES, account('A1'));
    expect(await results(account('A2', { id }), account('A2', { id }))).to.deep.equal(['ok', 'unchanged']);
    const member = membership('A1', 'O1');
    const got = await results(
      account('A1', { id }),
      account('A3', { id }),
      { ...member, account_id: id },
      { ...member, account_email: 'a2@example.test' },
      { ...member, account_email: 'a9@example.test' },
      { ...member, organization_id: place },
      ending(person, { email: 'a2@example.test' }),
    );
    expect(got).to.deep.equal(Array(7).fill('names_disagree'));
    expect(await state()).to.deep.equal([]);
    // The person is suspended even if no account has the address in the line.
    expect(await results(ending(person, { email: 'old@example.com' }))).to.deep.equal(['ok']);
  });

  it('a line that removes a record may have any value in the keys that only describe the record', async () => {
    await send(...PLACES, ...PERSON);
    const any = 'a\0';
    const got = await results(
      ending(rights('A1', 'W1'), { rights: any }),
      ending(membership('A1', 'O1'), { role: any }),
      ending(person, { name: any, identity: any, suspended: any, former_external_id: any }),
    );
    expect(got).to.deep.equal(['ok', 'ok', 'ok']);
  });

  it('the error for a pushed line about an unknown record names the record, and the other lines are applied', async () => {
    await send(...PLACES, account('A1'));
    const { answers, results: got } = await send(
      membership('A9', 'O1'),
      membership('A1', 'O1'),
      membership('A1', 'O9'),
      rights('A1', 'W9', 'read'),
      ending(membership('A9', 'O1')),
      { type: 'account', id: `acc_${'x'.repeat(16)}`, removed: true },
      { type: 'account', email: 'unknown@example.com', name: 'Nobody' },
      { type: 'membership', role: 'member', organization: 'O1' },
      { type: 'membership', role: 'member', account: 'A1' },
    );
    const unknown = Array(3).fill('account_unknown');
    const places = ['organization_unknown', 'warehouse_unknown'];
    expect(got).to.deep.equal(['account_unknown', 'ok', ...places, ...unknown, 'name_missing', 'name_missing']);
    expect(answers[0]?.message).to.equal('account: there is no account "A9".');
    expect(answers[7]?.remedy).to.equal('Write one of account, account_id, account_email.');
    expect(answers[8]?.remedy).to.equal('Write one of organization, organization_id.');
  });

  it('if the database refuses a line, the other lines of its batch are applied, in few transactions', async () => {
    const people = Array.from({ length: 500 }, (_, number) => `P${number}`);
    const known = people.flatMap((id) => [account(id), ...(id === 'P7' ? [] : [membership(id, 'O1')])]);
    await send(...PLACES, ...known.filter(({ type }) => type === 'account'));
    await send(...known.filter(({ type }) => type === 'membership'));
    const transactions = async () =>
      Number((await query<{ at: string }>('SELECT pg_current_xact_id()::text AS at'))[0]?.at);
    const before = await transactions();
    const got = await results(...people.map((id) => rights(id, 'W1', 'read')));
    expect(await transactions()).to.be.below(before + 50);
    expect(got).to.deep.equal(people.map((id) => (id === 'P7' ? 'membership_missing' : 'ok')));
    const taken = { email: 'p2@example.test' };
    const { answers } = await send(account('A3', taken), account('A4'));
    expect(answers[1]?.result).to.equal('ok');
    expect(answers[0]).to.include({ result: 'refused', code: 'line_refused' });
    expect(answers[0]?.message).to.equal('email: the account with the external_id "P2" has this address.');
    expect(answers[0]?.remedy).to.contain('or first send a line that gives that account another address');
    // The lines are applied in their order: the first line frees the address for the second line.
    const moved = await results(account('P2', { email: 'new@example.test' }), account('A3', taken));
    expect(moved).to.deep.equal(['ok', 'ok']);
    const swap = [ending(account('P5'), { deleted: true }), account('A6', { email: 'p5@example.test' })];
    expect(await results(...swap)).to.deep.equal(['ok', 'ok']);
  });

  it('two lines about the same record are both applied, even if they name the record differently', async () => {
    const { person: account_id, place: organization_id } = await byHand();
    const one = { type: 'membership', organization_id };
    const got = await results(
      { ...one, account_id, role: 'admin' },
      { ...one, account_email: 'jo@example.com', role: 'viewer' },
      { ...one, account_id, role: 'viewer' },
    );
    expect(got).to.deep.equal(['ok', 'ok', 'unchanged']);
    await send(account('A1'));
    const named = { type: 'account', email: 'NEW@example.test', name: 'New' };
    expect(await results(account('A1', { email: 'new@example.test' }), named)).to.deep.equal(['ok', 'ok']);
  });

  it('`POST /changes` may remove 50 records an hour, or 10 % of the users if more; an operator can allow more', async () => {
    const people = Array.from({ length: 60 }, (_, index) => `P${index}`);
    await send(...people.map((id) => account(id)));
    const gone = people.map((id) => ending({ type: 'account', external_id: id }));
    const { answers, results: got } = await send(...gone);
    expect(got).to.deep.equal([...Array(50).fill('ok'), ...Array(10).fill('held_back')]);
    expect(answers[55]?.remedy).to.contain('gatehouse changes allow 10.');
    const suspended = { suspended: true };
    expect(await results(account('P55', suspended), account('Q1', suspended))).to.deep.equal(['held_back', 'ok']);
    await send(...PLACES, organization('O2'), membership('P59', 'O1'), rights('P59', 'W1', 'read'));
    expect(await results(warehouse('W1', 'O2', { former_organization: 'O1' }))).to.deep.equal(['held_back']);
    expect(await query('SELECT FROM pushed_removals')).to.have.length(1);
    expect(await results(gone[0] ?? '')).to.deep.equal(['unchanged']);
    expect(await run('changes allow 2')).to.deep.equal({ allowed: 2 });
    expect(await results(...gone.slice(50, 53))).to.deep.equal(['ok', 'ok', 'held_back']);
    await query("UPDATE pushed_removals SET at = at - interval '1 hour'");
    expect(await results(...gone.slice(52, 53))).to.deep.equal(['ok']);
    await service().clean();
    expect(await query('SELECT FROM pushed_removals')).to.have.length(1);
    await query('DELETE FROM pushed_removals');
    await query(`INSERT INTO accounts (id, email, email_key, name, created_at)
      SELECT 'acc_' || lpad(n::text, 16, '0'), n || '@many.test', n || '@many.test', 'Many', now() FROM generate_series(1, 590) n`);
    await send(...people.map((id) => account(id)));
    // 10 % of 650 people are 65.
    expect(await results(...gone)).to.deep.equal(Array(60).fill('ok'));
  });

  it('the record of an account deletion is removed after 30 days', async () => {
    const deletion = ending(account('A1'), { deleted: true });
    await send(account('A1'), account('A2'), deletion);
    await service().clean();
    expect(await results(deletion)).to.deep.equal(['unchanged']);
    await query("UPDATE known_times SET expires_at = expires_at - interval '31 days'");
    await service().clean();
    expect(await results(deletion)).to.deep.equal(['account_unknown']);
    expect(await query('SELECT FROM known_times'), 'of the account that exists').to.have.length(1);
  });

  it('a line can suspend a user who owns clients, but cannot delete the account', async () => {
    await send(account('A1'));
    const [owner] = await query<{ id: string }>('SELECT id FROM accounts');
    const client = { kind: 'confidential', name: 'App', redirectUris: ['https://a.example/'] } as const;
    const added = await service().clients.add({ ...client, isNative: false, ownerAccountId: `${owner?.id}` });
    expect(await results(ending(person, { deleted: true }), ending(person))).to.deep.equal([
      'account_owns_clients',
      'ok',
    ]);
    await service().clients.remove(added.client.id);
  });

  it('the audit shows the name of the sender, and the request', async () => {
    const { headers } = await send(account('A1'), ending(account('A1')), ending(account('A1'), { deleted: true }));
    const all = JSON.stringify(await run('audit --actor operator'));
    const actions = ['account_added', 'account_suspended', 'account_deleted'];
    for (const one of [...actions, '"hr"', '"by":"changes"', headers.get('x-request-id')]) {
      expect(all).to.contain(one);
    }
  });

  it('an import does not undo a newer push that gave an email address to another user', async () => {
    const known = [account('A1'), account('A2')];
    const words = (...lines: Line[]) => `import ${fileOf(...known, ...lines)} --as-of 2026-01-01T00:00Z`;
    await run(words());
    await send(account('A2', { email: 'new@example.test' }), account('A1', { email: 'a2@example.test' }));
    expect(await run(words())).to.deep.include({ newer: 2, changes: [] });
    expect(await query("SELECT FROM accounts WHERE email LIKE 'moving-%'")).to.have.length(0);
    const taking = words(account('A3', { email: 'new@example.test' }));
    const { problems } = await refusalFrom(operatorOn(service().database), taking);
    expect(JSON.stringify(problems)).to.contain('was changed after the file was written');
  });

  describe('requests', () => {
    const startOnPostgres = startsOn('postgres');
    const portOf = () => Number(new URL(running.operatorsUrl).port);
    const count = async (): Promise<number> => (await running.database.query('SELECT FROM accounts')).length;
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
      expect((await push(running, [account('A1')])).results).to.deep.equal(['ok']);
      const second = await push(running, [account('A1')], { secret: OTHER_SECRET });
      expect(second.results).to.deep.equal(['unchanged']);
      senders = { changes: [{ name: 'hr', secret: OTHER_SECRET }] };
      expect(await running.reload()).to.deep.include({ changed: ['GATEHOUSE_CHANGES_SECRETS'] });
      expect((await push(running, [])).status).to.equal(401);
      expect((await push(running, [], { secret: OTHER_SECRET })).status).to.equal(200);
      senders = SENDERS;
      await running.reload();
    });

    it('a line that is not a JSON object in UTF-8, or too long, is refused; others are applied, blank lines are skipped', async () => {
      const deep = `{"type":"account","external_id":${'['.repeat(30_000)}${']'.repeat(30_000)}}`;
      const member = { type: 'membership', organization: 'O1', role: 'member' };
      const rows: readonly (readonly [Line | string | Buffer, string])[] = [
        ['no json', 'is not JSON'],
        ['["list"]', 'is not an object'],
        ['null', 'is not an object'],
        ['\0', 'contains a NUL byte'],
        ['{"type":"acount"}', 'is not a type of line'],
        [Buffer.from([0xff, 0xfe]), 'is not UTF-8'],
        ['{"type":"account"}', 'email: is missing; this account line needs it name: is missing; this account'],
        ['x'.repeat(70_000), 'is longer than 65536 bytes'],
        [deep, 'external_id: '],
        [
          account('A1', { surname: 'x' }),
          'is not a key of account lines; remove it; allowed here: type, external_id, former',
        ],
        [account('A1', { as_of: 'yesterday' }), 'is not a time; write one like "2026-01-31T08:00:00Z"'],
        [account('A1', { removed: 'yes' }), 'removed: "yes" is neither true nor false'],
        [account('A1', { id: 7 }), 'id: 7 is not an id'],
        [account('A1', { id: 'acc_1' }), 'id: "acc_1" is not an id; write it as `list` shows it, or use'],
        [{ ...member, account_email: 7 }, 'account_email: 7 is not an email address'],
        [{ ...member, account_email: 'jo' }, 'is not an email address; write one like "ada@example.com"'],
        [{ ...organization('O1'), removed: true }, 'import --prune'],
        [account('A1', { deleted: true }), 'needs `"removed": true`'],
        [line.rights('A1', 'W1', ...Array(6_000).fill('fly')), 'rights: "fly" is not a right'],
      ];
      const { answers, results } = await push(running, ['', ...rows.map(([one]) => one), account('A1')]);
      expect(results).to.deep.equal([...rows.map(() => 'line_invalid'), 'ok']);
      for (const [at, [, words]] of rows.entries()) {
        const { line: number, message = '' } = answers[at] ?? {};
        expect(number, message).to.equal(at + 2);
        expect(message).to.contain(words).and.have.length.below(800);
      }
    });

    it('an as_of more than five minutes in the future is refused', async () => {
      const inSeconds = (seconds: number) => ({ as_of: new Date(Date.now() + seconds * 1_000).toISOString() });
      const { results } = await push(running, [
        account('A1', inSeconds(400)),
        account('A1', inSeconds(200)),
        account('A1', inSeconds(100)),
      ]);
      expect(results).to.deep.equal(['as_of_in_future', 'ok', 'outdated']);
    });

    it('a request may have 1,000 lines, applied in a few batches, and one with 1,001 lines is refused', async () => {
      const people = Array.from({ length: 1_001 }, (_, at) => account(`A${at}`));
      const { status, text } = await push(running, people);
      expect({ status, code: JSON.parse(text).code }).to.deep.equal({ status: 413, code: 'too_many_lines' });
      expectExplained(JSON.parse(text));
      expect(await count()).to.equal(0);
      const { results } = await push(running, people.slice(1));
      expect(new Set(results)).to.deep.equal(new Set(['ok']));
      expect(await count()).to.equal(1_000);
      // Batches of 500 lines, or of 20 lines if each may change many rows.
      await send(...people.slice(42, 63), ...people.slice(1, 42).map((one) => ending(one, { deleted: true })));
      const batches = await query('SELECT action, count(DISTINCT xact)::int FROM activity GROUP BY action ORDER BY 2');
      expect(batches.map(Object.values)).to.deep.equal([
        ['account_added', 2],
        ['account_deleted', 3],
      ]);
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
      const oneLine = await push(running, Buffer.alloc(MEGABYTE, 'x'));
      expect(oneLine.results).to.deep.equal(['line_invalid']);
    });

    it('a request cut off in its body changes nothing; if only its answer is lost, it is applied and repeatable', async () => {
      cut(request(bodyOf([account('A1'), account('A2')])).slice(0, -10));
      await eventually(() => {
        const requests = running.logLines.filter((one) => one.includes('"path":"/changes"'));
        expect(requests.at(-1)).to.match(/"status":(499|400)/);
      });
      expect(await count()).to.equal(0);
      cut(request(bodyOf([account('A1')])));
      await eventually(async () => expect(await count()).to.equal(1));
      expect((await push(running, [account('A1')])).results).to.deep.equal(['unchanged']);
    });

    it('each connection plans the statements for pushed lines once, for all values, and never scans a whole table', async () => {
      // With one connection, this query reads what the pushes have left on it.
      const one = await startOnPostgres({ settings: { senders, storage: { databaseConnections: 1 } } });
      const plans = () =>
        one.database.query<{ statement: string; reused: number }>(
          "SELECT statement, generic_plans::int AS reused FROM pg_prepared_statements WHERE statement LIKE '%known_times%'",
        );
      const add = async (name: string) => expect((await push(one, [account(name)])).results).to.deep.equal(['ok']);
      const scanning = "INSERT ON accounts FOR EACH ROW WHEN (current_setting('enable_seqscan') = 'on')";
      await refuseChanges(one.database, scanning);
      for (const name of ['A1', 'A2', 'A3', 'A4', 'A5', 'A6', 'A7']) await add(name);
      const before = await plans();
      await add('A8');
      const after = await plans();
      expect(after.map(({ statement }) => statement)).to.have.members(before.map(({ statement }) => statement));
      const reuses = (rows: typeof before) => rows.reduce((sum, { reused }) => sum + reused, 0);
      expect(reuses(after)).to.be.above(reuses(before));
    });

    it('the log contains no secret of a sender', () => {
      const log = running.logLines.join('\n');
      expect(log).to.contain('/changes').and.not.contain(SECRET).and.not.contain(OTHER_SECRET);
    });
  });
});
