/** What a command or a page changed is not undone by a line or a file that was known before; see `walked-writers.slow.ts`. */
import { expect } from 'chai';
import { endedPlacesCleaning } from '../../src/changes/organizations.ts';
import { operatorFor, refusalFrom, valueFrom } from '../operator/run-operator.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { refuseChanges } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson } from '../support/person.ts';
import { addPerson, passwordLink, type SeededPerson } from '../support/seed.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis, type TestService } from '../support/service.ts';
import { fileOf, type Line, line } from './import-file.ts';
import { ago, countFromBegin, push, SENDERS } from './pushing.ts';

/** The ids of the records of a row of the table, and the words of the late lines. */
interface Records {
  readonly service: TestService;
  readonly account: string;
  readonly organization: string;
  readonly warehouse: string;
  readonly email: string;
  readonly command: (words: string) => Promise<unknown>;
  readonly person: SeededPerson;
  /** An owner of the organization. */
  readonly owner: SeededPerson;
}

interface Row {
  /** Members of the line of the account that differ from the usual ones at first. */
  readonly first?: Line;
  /** True if the person has a link with a provider at first: of late lines only the identity is then left out. */
  readonly isLinked?: boolean;
  readonly change: (records: Records) => Promise<unknown>;
  readonly late: (keyof typeof LATE)[];
}

const ISSUER = 'https://id.example.test';

const LINK = `provider ${ISSUER}`;

/** Lines that would give back what the changes of the table take. */
const LATE = {
  account: (n: number) => line.account(`A${n}`),
  active: (n: number) => line.account(`A${n}`, { suspended: false }),
  suspended: (n: number) => line.account(`A${n}`, { suspended: true }),
  linked: (n: number) => line.account(`A${n}`, { identity: { issuer: ISSUER, subject: `person ${n}` } }),
  organization: (n: number) => line.organization(`O${n}`),
  open: (n: number): Line => ({ ...line.organization(`O${n}`), clients: 'open' }),
  warehouse: (n: number) => line.warehouse(`W${n}`, `O${n}`),
  membership: (n: number) => line.membership(`A${n}`, `O${n}`, 'owner'),
  rights: (n: number) => line.rights(`A${n}`, `W${n}`, 'read', 'write'),
} as const;

const everything = ['organization', 'warehouse', 'membership', 'rights'] as const;

const deleting =
  (table: string, by: 'account' | 'organization' | 'warehouse') =>
  ({ service, ...ids }: Records): Promise<unknown> =>
    service.database.query(`DELETE FROM ${table} WHERE ${table.includes('_') ? `${by}_id` : 'id'} = $1`, [ids[by]]);

/** Runs a command about the person, organization or warehouse that its words name with capital letters. */
const command =
  (words: string) =>
  ({ command, email, ...ids }: Records): Promise<unknown> =>
    command(
      words.replace(/ACCOUNT|ORG|WH/g, (name) => ({ ACCOUNT: email, ORG: ids.organization })[name] ?? ids.warehouse),
    );

const access: Row['late'] = ['membership', 'rights'];
const linked = { isLinked: true, late: ['linked'] } satisfies Omit<Row, 'change'>;

const ROWS: Readonly<Record<string, Row>> = {
  'a pushed removal of rights, without a time and by the ids': {
    async change({ service, account, warehouse }) {
      const removal = { type: 'warehouse_rights', account_id: account, warehouse_id: warehouse, removed: true };
      expect((await push(service, [removal])).results).to.deep.equal(['ok']);
    },
    late: ['rights'],
  },
  'memberships remove': { change: command('memberships remove --account ACCOUNT --organization ORG'), late: access },
  'memberships set, of the role that the person has already': {
    change: command('memberships set --account ACCOUNT --organization ORG --role member'),
    late: ['membership'],
  },
  'accounts resume': {
    first: { suspended: true },
    change: command('accounts resume ACCOUNT'),
    late: ['suspended'],
  },
  'accounts delete': { change: command('accounts delete ACCOUNT --yes'), late: ['account', ...access] },
  'accounts update --new-email': {
    change: ({ command, email }) => command(`accounts update ${email} --new-email new-${email}`),
    late: ['account'],
  },
  'a link removed on the security page': {
    change: async ({ service, person }) =>
      (await signedIn(service, person)).send('/profile/security/ways/remove', { remove_way: LINK }),
    ...linked,
  },
  'a link removed with a one-time link': {
    async change({ service, person }) {
      const browser = createPerson(service.issuer);
      const form = await browser.open(await passwordLink(service, person));
      expect(
        (await browser.submit(form, { new_password: 'eight blue pallets, stacked', remove_way: LINK })).status,
      ).to.equal(303);
    },
    ...linked,
  },
  'organizations update': { change: command('organizations update ORG --name Renamed'), late: ['organization'] },
  'the policy set on its page': {
    change: async ({ service, owner, organization }) =>
      (await signedIn(service, owner)).send(`/profile/organizations/${organization}/policy`, {
        clients: 'ask',
        api_keys: 'allow',
      }),
    late: ['open'],
  },
  'warehouses update': { change: command('warehouses update WH --name Renamed'), late: ['warehouse'] },
  'a membership deleted with SQL': { change: deleting('organization_memberships', 'account'), late: access },
  'a right deleted with SQL': { change: deleting('warehouse_rights', 'account'), late: ['rights'] },
  'an account deleted with SQL': { change: deleting('accounts', 'account'), late: ['account', ...access] },
  'an organization deleted with SQL': { change: deleting('organizations', 'organization'), late: [...everything] },
  'a warehouse deleted with SQL': { change: deleting('warehouses', 'warehouse'), late: ['warehouse', 'rights'] },
};

const at = (seconds: number, lines: readonly Line[]): Line[] => lines.map((one) => ({ ...one, as_of: ago(seconds) }));

let count = 0;

const idOf = async ({ database }: TestService, table: string, external: string): Promise<string> => {
  const rows = await database.query<{ id: string }>(`SELECT id FROM ${table} WHERE external_id = $1`, [external]);
  return rows[0]?.id ?? '';
};
/** Adds a person with access to a warehouse, by lines of an hour ago. */
async function add(
  { service }: Seeded,
  row: Row = { change: async () => {}, late: [] },
): Promise<Records & { readonly n: number; readonly base: readonly Line[] }> {
  count += 1;
  const n = count;
  const email = `a${n}@example.test`;
  const person = await addPerson(service, `Person A${n}`, email);
  // The person was added before the lines.
  await service.database.query("UPDATE known_times SET as_of = as_of - interval '1 day' WHERE account_id = $1", [
    person.accountId,
  ]);
  const base = [LATE.organization(n), LATE.warehouse(n), LATE.account(n)];
  const lines = [
    ...base,
    line.membership(`A${n}`, `O${n}`),
    line.rights(`A${n}`, `W${n}`, 'read'),
    ...(row.isLinked ? [LATE.linked(n)] : []),
    ...(row.first ? [{ ...LATE.account(n), ...row.first }] : []),
  ];
  const { results } = await push(service, at(3_600, lines));
  expect(new Set(results)).to.deep.equal(new Set(['ok']));
  const organization = await idOf(service, 'organizations', `O${n}`);
  const owner = await addPerson(service, `Owner ${n}`, `owner${n}@example.test`);
  await service.memberships.setRole({ accountId: owner.accountId }, organization, 'owner');
  return {
    n,
    base,
    service,
    account: person.accountId,
    organization,
    warehouse: await idOf(service, 'warehouses', `W${n}`),
    email,
    command: (words) => valueFrom(operatorFor(service), words),
    owner,
    person,
  };
}

onPostgresAndRedis('late lines', (start) => {
  countFromBegin();
  const on = startSeeded({ on: start, settings: { senders: SENDERS } });

  /** Returns all that lines may change, of every person and place. */
  const state = () =>
    on.service.database.query(`SELECT
      (SELECT json_agg(json_build_array(id, email, name, suspended_at) ORDER BY id) FROM accounts) AS accounts,
      (SELECT json_agg(json_build_array(account_id, issuer, subject) ORDER BY account_id) FROM account_identities) AS links,
      (SELECT json_agg(json_build_array(id, name, asks_first) ORDER BY id) FROM organizations) AS organizations,
      (SELECT json_agg(json_build_array(id, name) ORDER BY id) FROM warehouses) AS warehouses,
      (SELECT json_agg(json_build_array(account_id, organization_id, role) ORDER BY id) FROM organization_memberships) AS roles,
      (SELECT json_agg(json_build_array(account_id, warehouse_id, rights) ORDER BY id) FROM warehouse_rights) AS rights`);

  const run = (words: string) => valueFrom(operatorFor(on.service), words);
  const results = async (lines: readonly Line[]) => (await push(on.service, lines)).results;
  /** Returns what lines say of the person with this address, who has at most one membership. */
  const person = async (email: string) => {
    const rows = await on.service.database.query(
      `SELECT a.id, a.external_id, a.name, a.suspended_at IS NOT NULL AS suspended, m.role FROM accounts a
        LEFT JOIN organization_memberships m ON m.account_id = a.id WHERE a.email = '${email}'`,
    );
    expect(rows, email).to.have.length(1);
    return rows[0];
  };

  it('lines and files that are older than a change by another writer change nothing; newer lines are applied', async () => {
    const changed: { name: string; row: Row; late: readonly Line[]; named: readonly Line[] }[] = [];
    for (const [name, row] of Object.entries(ROWS)) {
      const { n, base, ...records } = await add(on, row);
      const before = await state();
      await row.change(records);
      if (!name.includes('already')) expect(await state(), name).to.not.deep.equal(before);
      const late = row.late.map((one) => LATE[one](n));
      // A file contains all that its lines name.
      const has = (type: unknown) => late.some((one) => one.type === type);
      const needed = [...base, ...(has('warehouse_rights') ? [line.membership(`A${n}`, `O${n}`)] : [])];
      changed.push({ name, row, late, named: needed.filter(({ type }) => !has(type)) });
    }
    const afterwards = await state();
    const all = changed.flatMap(({ late }) => late);
    /** Returns `resultOf` of each row, with its name, for each of its late lines. */
    const each = (resultOf: (row: Row) => string): string[] =>
      changed.flatMap(({ name, row, late }) => late.map(() => `${name}: ${resultOf(row)}`));
    const names = each(() => '');
    const answered = async (lines: readonly Line[]) => (await results(lines)).map((one, at) => `${names[at]}${one}`);
    expect(await answered(at(30, all))).to.deep.equal(each((row) => (row.isLinked ? 'unchanged' : 'outdated')));
    expect(await state()).to.deep.equal(afterwards);
    const lines = changed.flatMap(({ late, named }) => [...named, ...late]);
    const report = await run(`import ${fileOf(...lines)} --as-of ${ago(20)}`);
    const outdated = changed.filter(({ row }) => !row.isLinked).flatMap(({ late }) => late);
    expect(report.newer).to.equal(outdated.length);
    expect(await state()).to.deep.equal(afterwards);
    const kept = await on.service.database.query(`SELECT thing FROM known_times k
      WHERE expires_at < now() + interval '29 days' OR (expires_at IS NULL AND thing LIKE 'warehouse_rights %' AND NOT EXISTS
        (SELECT FROM warehouse_rights r WHERE r.account_id = k.account_id AND r.warehouse_id = k.warehouse_id))`);
    expect(kept, 'the times of ended records expire after 30 days').to.deep.equal([]);
    expect(await answered(all)).to.deep.equal(each(() => 'ok'));
  });

  it('if a user was added manually after an account line was written, the line sets only the external id', async () => {
    const email = 'adam@example.test';
    const { id } = await run(`accounts add --email ${email} --name Adam --invite`);
    const known = line.account('Adam', { email, name: 'Adam Earlier', suspended: true });
    const late = at(30, [known, line.organization('O-Adam'), line.membership('Adam', 'O-Adam'), known]);
    expect(await results(late)).to.deep.equal(['ok', 'ok', 'ok', 'outdated']);
    const ended = at(30, [
      { type: 'account', email, removed: true },
      { type: 'account', email, removed: true, deleted: true },
    ] as Line[]);
    expect(await results(ended)).to.deep.equal(['outdated', 'outdated']);
    const kept = { id, external_id: 'Adam', name: 'Adam', suspended: false, role: 'member' };
    expect(await person(email)).to.deep.equal(kept);
    expect(await results([known])).to.deep.equal(['ok']);
  });

  it('a line that deletes a user is outdated if a newer change added the user again', async () => {
    const { email } = await addPerson(on.service, 'Rhea Return', 'rhea@example.test');
    await run(`accounts delete ${email} --yes`);
    const [row] = await on.service.database.query<{ now: Date }>("SELECT clock_timestamp() - interval '1 ms' AS now");
    const between = row?.now.toISOString() ?? '';
    await addPerson(on.service, 'Rhea Return', email);
    const line = { type: 'account', email, removed: true, deleted: true, as_of: between } as Line;
    expect(await results([line])).to.deep.equal(['outdated']);
    expect(await results([{ ...line, as_of: new Date().toISOString() }])).to.deep.equal(['ok']);
  });

  it('a line from before the suspension of a user sets the external id of the user, but does not end the suspension', async () => {
    for (const name of ['Sus1', 'Sus2', 'Sus3']) {
      const email = `${name.toLowerCase()}@example.test`;
      await addPerson(on.service, name, email);
      const known = [line.account(name, { email, ...(name === 'Sus2' && { suspended: true }) })];
      const suspended = at(-240, [{ type: 'account', email, removed: true } as Line]);
      expect(await results(suspended)).to.deep.equal(['ok']);
      if (name !== 'Sus3') expect(await results(at(-120, known))).to.deep.equal(['ok']);
      else for (const file of [fileOf(...known), fileOf(...known)]) await run(`import ${file}`);
      expect(await person(email), name).to.include({ external_id: name, suspended: true });
    }
  });

  it("a line that suspends a user is applied even if the user has removed a linked sign-in since the line's time", async () => {
    for (const [name, file] of Object.entries({ push: false, file: true })) {
      const row = ROWS['a link removed on the security page'] as Row;
      const { n, base, ...records } = await add(on, row);
      await row.change(records);
      const late = at(30, [LATE.suspended(n)]);
      if (file) await records.command(`import ${fileOf(...base.slice(0, 2), LATE.suspended(n))} --as-of ${ago(30)}`);
      else expect(await results(late)).to.deep.equal(['ok']);
      expect((await on.service.accounts.findByEmail(records.email))?.isSuspended, name).to.equal(true);
    }
  });

  it('a pushed line that is older than the deletion of a manually added user does not add the user again', async () => {
    const { email } = await addPerson(on.service, 'Helga Hand', 'helga@example.test');
    const late = at(30, [line.account('H1', { email })]);
    await run(`accounts delete ${email} --yes`);
    const present = { ...line.account('H2'), as_of: new Date().toISOString() };
    expect(await results([...late, present])).to.deep.equal(['outdated', 'ok']);
    expect(await results([line.account('H1', { email })])).to.deep.equal(['ok']);
  });

  it("a pushed line from before the deletion of a user is applied if it gives that user's address to another user", async () => {
    const { email } = await addPerson(on.service, 'Erik Erased', 'erik@example.test');
    expect(await results(at(60, [line.account('E2')]))).to.deep.equal(['ok']);
    await run(`accounts delete ${email} --yes`);
    expect(await results(at(30, [line.account('E2', { email })]))).to.deep.equal(['ok']);
  });

  it('a late warehouse move ends newer rights; only a rights line newer than those rights sets them again', async () => {
    const { n, base } = await add(on);
    const to = line.organization(`O${n}-to`);
    const rights = line.rights(`A${n}`, `W${n}`, 'read');
    expect(await results([...at(600, base), ...at(600, [to]), ...at(20, [rights])])).to.include('ok');
    const move = { ...line.warehouse(`W${n}`, `O${n}-to`), former_organization: `O${n}` };
    expect(await results(at(60, [move]))).to.deep.equal(['ok']);
    const member = at(60, [line.membership(`A${n}`, `O${n}-to`)]);
    const again = [...at(40, [rights]), ...at(10, [rights])];
    expect(await results([...member, ...again])).to.deep.equal(['ok', 'outdated', 'ok']);
  });

  it("an earlier line changes no rights set by a command, even if the warehouse's former organization is deleted", async () => {
    const { n, command, account, organization, warehouse, email } = await add(on);
    const to = [line.organization(`O${n}-to`), line.membership(`A${n}`, `O${n}-to`)];
    expect(await results(at(600, to))).to.deep.equal(['ok', 'ok']);
    await command(`memberships set --account ${email} --warehouse ${warehouse} --rights read,manage`);
    const move = { ...line.warehouse(`W${n}`, `O${n}-to`), former_organization: `O${n}` };
    expect(await results([move])).to.deep.equal(['ok']);
    await command(`organizations delete ${organization} --yes`);
    expect(await results(at(30, [LATE.rights(n)]))).to.deep.equal(['outdated']);
    const rows = await on.service.database.query('SELECT rights FROM warehouse_rights WHERE account_id = $1', [
      account,
    ]);
    expect(rows).to.deep.equal([{ rights: ['read', 'manage'] }]);
  });

  it('deleted organizations whose rows cannot be removed do not block the removal of others, and are tried again', async () => {
    const { database, engine } = on.service;
    await database.query(`INSERT INTO organizations (id, name, created_at, ended_at)
      SELECT 'org_' || n, 'Ended', now(), now() - n * interval '1 hour' FROM generate_series(1, 11) n`);
    const accept = await refuseChanges(database, "DELETE ON organizations FOR EACH ROW WHEN (OLD.id <> 'org_1')");
    const left = async () => (await database.query("SELECT FROM organizations WHERE name = 'Ended'")).length;
    const clean = endedPlacesCleaning({ database, engine });
    expect(await clean(1_000).catch((error: Error) => error.message)).to.equal('refused');
    await clean(1_000);
    expect(await left()).to.equal(10);
    await accept();
    await eventually(async () => {
      await clean(1_000);
      expect(await left()).to.equal(0);
    });
  });

  it('while an organization is being deleted, nothing can grant access to it, and its external ids cannot be reused', async () => {
    const { n, base, account, organization, warehouse, email } = await add(on);
    const { database, access } = on.service;
    const operator = operatorFor(on.service);
    // As a deletion leaves it that was stopped before it came to the warehouse.
    await database.query('UPDATE organizations SET ended_at = clock_timestamp() WHERE id = $1', [organization]);
    const rights = { ...LATE.rights(n), warehouse: undefined, warehouse_id: warehouse };
    expect(await results([rights, LATE.membership(n)])).to.deep.equal(['warehouse_unknown', 'organization_unknown']);
    for (const [words, code] of [
      [`memberships set --account ${email} --organization ${organization} --role owner`, 'organization_unknown'],
      [`memberships set --account ${email} --warehouse ${warehouse} --rights read`, 'warehouse_unknown'],
      [`warehouses add --organization ${organization} --name Hall`, 'organization_unknown'],
    ] as const) {
      expect((await refusalFrom(operator, words)).code, words).to.equal(code);
    }
    const away = line.organization(`O${n}-away`);
    const pruning = await run(`import ${fileOf(away)} --prune --prune-at-most 100% --dry-run`);
    expect(JSON.stringify(pruning)).to.include('"removed"').and.not.include(`"W${n}"`);
    const refused = JSON.stringify(await refusalFrom(operator, `import ${fileOf(...base)}`));
    expect(refused).to.include(`is being deleted; \`organizations delete ${organization}\` completes this`);
    await results([away]);
    const again = [{ ...line.warehouse(`W${n}`, `O${n}-away`), as_of: new Date().toISOString() }];
    // Its external id is free once the job has come to it.
    expect(await results(again)).to.deep.equal(['line_overtaken']);

    await database.query(`UPDATE organizations SET ended_at = ended_at - interval '6 minutes'`);
    await on.service.clean();
    expect(await database.query('SELECT FROM organizations WHERE id = $1', [organization])).to.deep.equal([]);
    expect(await results(at(600, again))).to.deep.equal(['outdated']);
    expect(await results(again)).to.deep.equal(['ok']);
    expect(await access.accessOf({ accountId: account })).to.deep.equal([]);
  });

  it('a pushed line with a time in the future is outdated after a later command removes its record', async () => {
    const records = await add(on);
    const ahead = at(-120, [LATE.membership(records.n)]);
    expect(await results(ahead)).to.deep.equal(['ok']);
    await ROWS['memberships remove']?.change(records);
    expect(await results(ahead)).to.deep.equal(['outdated']);
    // A line without a time is made now, after the command.
    expect(await results([LATE.membership(records.n)])).to.deep.equal(['ok']);
    const deleted = at(-60, [LATE.account(records.n)]);
    expect(await results(deleted)).to.deep.equal(['unchanged']);
    await ROWS['accounts delete']?.change(records);
    expect(await results(deleted)).to.deep.equal(['outdated']);
  });

  it('a pushed line never applies to another user who got the email address after the line was written', async () => {
    const add = (email: string) => on.service.accounts.add({ email, name: 'Bob Second' });
    const change = (email: string, to: string) => run(`accounts update ${email} --new-email ${to}`);
    /** For each way, how the other person gets the address. */
    const ways: Record<string, (email: string) => Promise<unknown>> = {
      Taken: async (email) => change((await addPerson(on.service, 'Bob', `bob-${email}`)).email, email),
      Left: async (email) => {
        await addPerson(on.service, 'Ada First', email);
        await change(email, `left-${email}`);
        await add(email);
      },
      Gone: async (email) => {
        await addPerson(on.service, 'Ada First', email);
        await run(`accounts delete ${email} --yes`);
        await add(email);
      },
    };
    for (const [name, getAddress] of Object.entries(ways)) {
      const external = `A-${name}`;
      const email = `${external.toLowerCase()}@example.test`;
      await getAddress(email);
      const known = [
        line.account(external, { email, identity: { issuer: ISSUER, subject: external } }),
        line.organization(`O-${external}`),
        line.membership(external, `O-${external}`),
      ];
      expect(await results(at(30, known)), external).to.deep.equal(['outdated', 'ok', 'account_unknown']);
      expect((await run(`import ${fileOf(...known)} --as-of ${ago(30)}`)).newer, external).to.equal(2);
      expect(await person(email), external).to.include({ external_id: null, role: null });
      const links = await on.service.database.query('SELECT FROM account_identities WHERE subject = $1', [external]);
      expect(links, external).to.deep.equal([]);
    }
  });

  it('a late pushed line sets the external id of an account whose email changed only in letter case since', async () => {
    const { email } = await addPerson(on.service, 'Sven Spelling', 'sven@example.test');
    await run(`accounts update ${email} --new-email Sven@example.test`);
    expect(await results(at(30, [line.account('A-Sven', { email })]))).to.deep.equal(['ok']);
  });

  it('an older file can move a warehouse even if a newer change removed a member of the new organization', async () => {
    const { n, command, email } = await add(on);
    const to = line.organization(`O${n}-to`);
    const known = [LATE.account(n), LATE.organization(n), to, line.membership(`A${n}`, `O${n}`)];
    const member = line.membership(`A${n}`, `O${n}-to`);
    expect(await results(at(600, [to, member]))).to.deep.equal(['ok', 'ok']);
    const id = await idOf(on.service, 'organizations', `O${n}-to`);
    await command(`memberships remove --account ${email} --organization ${id}`);
    const move = { ...line.warehouse(`W${n}`, `O${n}-to`), former_organization: `O${n}` };
    const report = await command(`import ${fileOf(...known, member, move)} --as-of ${ago(30)} --yes`);
    expect(report).to.include({ newer: 1 });
    const rows = await on.service.database.query(
      `SELECT (SELECT count(*)::int FROM warehouse_rights WHERE warehouse_id = w.id) AS rights
        FROM warehouses w WHERE external_id = 'W${n}' AND organization_id = '${id}'`,
    );
    expect(rows).to.deep.equal([{ rights: 0 }]);
  });
});
