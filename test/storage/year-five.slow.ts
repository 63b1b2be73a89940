/** No statement of a page, a command or a job outgrows its time limit on a database in its fifth year. */
import { expect } from 'chai';
import type { Command } from 'commander';
import { newValue } from '../../src/base/random-id.ts';
import { createProgram } from '../../src/operator/program/program.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { fileOf, line } from '../import/import-file.ts';
import { push, SENDERS } from '../import/pushing.ts';
import { operatorFor, type RunOperator } from '../operator/run-operator.ts';
import { type SignedInPerson, signedIn } from '../pages/signed-in-person.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { largeReads, startExplainingServer } from './statement-reads.ts';
import { fill, IDS } from './year-five-data.ts';

/** More than one page of a list for programs, and little enough for each time limit. */
const MAX_ROWS = 21_000;

/** Event streams, which do not end. */
const STREAMS = ['/oauth/introspect/changes'];

const { account, organization, warehouse, client, leftClient } = IDS;
const UNKNOWN_KEY = 'key_unknown000000000';

/** Options for each command, in the order of the steps; POPULAR is the client that everyone uses. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  'accounts list': ['', '--match 25999@many', '--state suspended', '--owing-a-passkey', '--json'],
  'accounts add': ['--email new@many.test --name New --invite'],
  'accounts invite': [account],
  'accounts update': [`${account} --new-email changed@many.test`],
  'accounts suspend': [account],
  'accounts resume': [account],
  'links list': [account],
  'links remove': [`${account} --provider platform --yes`],
  'passkeys list': [account],
  'passkeys remove': [`${account} --passkey pk_VcX0bq7mWcXk2f1S --yes`],
  'organizations list': ['', '--match 7999', '--json'],
  'organizations add': ['--name Freshly-Named'],
  'organizations update': [`${organization} --name Renamed`],
  'organizations policy': [organization, `${organization} ask`],
  'organizations block': [`${organization} POPULAR`],
  'organizations unblock': [`${organization} POPULAR`],
  'warehouses list': ['', `--organization ${organization}`, '--match 7999', '--json'],
  'warehouses add': [`--organization ${organization} --name Second`],
  'warehouses update': [`${warehouse} --name Renamed`],
  'memberships list': [
    `--account ${account}`,
    `--organization ${organization}`,
    `--organization ${organization} --role owner`,
    `--warehouse ${warehouse}`,
    `--organization ${organization} --json`,
  ],
  'memberships set': [`--account ${account} --organization ${organization} --role admin`],
  'memberships remove': [`--account ${account} --organization ${organization}`],
  'clients list': ['', '--kind machine', '--suspended', `--owner ${account}`, '--json'],
  'clients show': [client, 'POPULAR'],
  'clients add': ['--kind machine --name Nightly-Export'],
  'clients update': [`${client} --name Changed-Name`],
  'clients suspend': [client],
  'clients resume': [client],
  'clients transfer': [`${client} --to-operator`],
  'clients rotate-secret': [client],
  'clients remove-secret': [`${client} --secret=none --yes`],
  'clients renew': [`${client} --yes`, 'POPULAR --yes'],
  'connections list': [`--account ${account}`, '--client POPULAR', `--client ${leftClient}`, '--client POPULAR --json'],
  'sessions list': [`--account HEAVY`, `--account ${account}`],
  'api-keys list': ['', '--account HEAVY', '--match hash', '--json'],
  show: [
    'POPULAR',
    client,
    leftClient,
    account,
    organization,
    warehouse,
    IDS.key,
    `${account}/POPULAR`,
    IDS.request,
    `${IDS.request.slice(0, -3)}fff`,
    newValue('client_secret'),
    newValue('api_key'),
    UNKNOWN_KEY,
    `pk_${'x'.repeat(16)}`,
    `org_${'x'.repeat(16)}`,
    `ses_${'x'.repeat(16)}`,
    'nobody@many.test',
    `${account},${client},${IDS.request}`,
  ],
  audit: [
    '',
    '--account HEAVY',
    '--client POPULAR',
    `--client ${client}`,
    '--action sign_in_failed',
    '--action signed_in',
    '--action account_deleted',
    '--actor operator',
    '--actor person --action connected',
    '--account HEAVY --action account_suspended',
    '--client POPULAR --action client_suspended',
    '--actor client --action signed_in',
    `--request ${IDS.request}`,
    '--since 1h',
    '--import imp_VcX0bq7mWcXk2f1S',
    '--json',
  ],
  import: ['FILE --dry-run', 'FILE --prune --dry-run', 'FILE --yes'],
  'changes allow': ['480'],
  'check-config': [''],
  reload: ['--dry-run'],
  'keys list': [''],
  doctor: ['', '--json'],
  nodes: [''],
  migrate: [''],
  leaked: ['-'],
  'connections end': [`${account}/POPULAR --yes`],
  'sessions end': [`--account HEAVY --yes`, '--all --yes'],
  'api-keys revoke': [`${IDS.key} --yes`, `${UNKNOWN_KEY} --yes`],
  revoke: ['--account HEAVY', '--client POPULAR --yes'],
  'warehouses delete': [`${warehouse} --yes`],
  'organizations delete': [`${organization} --yes`],
  'accounts delete': ['HEAVY --yes', `${account} --yes`],
  'clients delete': [`${leftClient} --yes`, 'POPULAR --yes', `${client} --yes`],
};

describeOn([postgresServer], 'a database in its fifth year', () => {
  const start = startsOn();
  let service: TestService;
  let seeded: Seed;
  let readSince: Awaited<ReturnType<typeof largeReads>>;
  let heavy: SignedInPerson;
  let owner: SignedInPerson;
  let run: RunOperator;

  before('fill the database', async function () {
    this.timeout(300_000);
    const server = await startExplainingServer();
    const databaseUrl = await server.createDatabase();
    const database = await openDatabase({ databaseUrl, dataDirectory: '', timeoutFactor: 20 });
    await migrate(database).finally(() => database.close());
    service = await start({ settings: { storage: { databaseUrl }, senders: SENDERS } });
    seeded = await seed(service);
    await fill(databaseUrl, seeded);
    run = operatorFor(service);
    readSince = await largeReads(server, MAX_ROWS);
  });

  /** Does the work. Returns what went wrong, and what read more rows than it may. */
  async function problemsOf(title: string, work: () => Promise<unknown>): Promise<string[]> {
    const failure = await work().then(
      () => [],
      (error: unknown) => [String(error)],
    );
    const reads = await readSince();
    const most = reads.map(({ rows, from, statement }) => {
      return `reads ${rows} rows of ${from}: ${statement.replace(/\s+/g, ' ').slice(0, 300)}`;
    });
    return [...failure, ...new Set(most)].map((one) => `${title} ${one}`);
  }

  const step = (title: string, work: () => Promise<unknown>): void =>
    void it(title, async () => {
      const problems = await problemsOf(title, work);
      expect(problems).to.deep.equal([]);
    });

  step('people sign in', async () => {
    heavy = await signedIn(service, seeded.person);
    owner = await signedIn(service, seeded.other);
  });

  step('a partner connects a user, and its tokens are introspected', async () => {
    const partner = partnerTokens(service.issuer, seeded);
    const { accessToken } = await partner.tokens(seeded.clients.confidential);
    expect(await partner.isActive(accessToken)).to.equal(true);
  });

  it('each page reads a bounded number of rows', async () => {
    const { id } = seeded.clients.confidential;
    const parameters: Readonly<Record<string, string>> = {
      '/profile/oauth-clients/:id': `/profile/oauth-clients/${id}`,
      '/profile/connections/:id': `/profile/connections/${id}`,
      '/profile/organizations/:id': `/profile/organizations/${organization}`,
      '/profile/api-keys/:id': `/profile/api-keys/${IDS.key}`,
      '/people/:person': `/people/${account}`,
      '/clients/:client': `/clients/${id}`,
    };
    const urls = service
      .routes()
      .filter(({ method, path }) => method === 'GET' && !STREAMS.includes(path))
      .map(({ path }) => Object.entries(parameters).reduce((all, [one, by]) => all.replace(one, by), path))
      .map((filled) => filled.replace(/:\w+/g, 'unknown'));
    for (const [who, person] of Object.entries({ heavy, owner })) {
      const problems = await problemsOf(`a page for ${who}`, async () => {
        for (const url of urls) expect((await person.open(url)).status, url).to.be.below(500);
      });
      expect(problems).to.deep.equal([]);
    }
  });

  step('pushed lines', async () => {
    const member = (number: number) => ({
      account_id: `acc_${`${number}`.padStart(16, '0')}`,
      organization_id: organization,
    });
    const lines = [
      ...Array.from({ length: 60 }, (_, at) => ({ type: 'membership', ...member(at + 1), removed: true })),
      { type: 'membership', ...member(100), role: 'viewer', as_of: new Date(Date.now() - 60_000).toISOString() },
      {
        type: 'warehouse_rights',
        account_id: member(100).account_id,
        warehouse_id: warehouse,
        rights: ['read', 'write'],
      },
      { type: 'account', id: member(20_101).account_id, removed: true },
      { type: 'account', id: member(20_102).account_id, removed: true, deleted: true },
      line.warehouse('W1', '', { organization: undefined, organization_id: organization }),
    ];
    expect((await push(service, lines)).results).to.deep.equal(lines.map(() => 'ok'));
  });

  step('the cleaning jobs', async () => {
    await service.clean();
    const failed = service.logLines.filter((line) => line.includes('could not be removed'));
    expect(failed.join('\n').slice(0, 2_000)).to.equal('');
  });

  it('the list of commands in this test contains every operator command', () => {
    const program = createProgram({ stdout: process.stdout } as never, { json: false });
    const pathsOf = ({ commands }: Command, path: readonly string[]): string[] =>
      commands.length === 0 ? [path.join(' ')] : commands.flatMap((one) => pathsOf(one, [...path, one.name()]));
    expect(Object.keys(COMMANDS)).to.have.members(pathsOf(program, []));
  });

  for (const [words, all] of Object.entries(COMMANDS)) {
    for (const options of all) {
      step(`${words} ${options}`, async () => {
        const file = fileOf(line.organization('O1'), line.account('A1'), line.membership('A1', 'O1'));
        const filled = options
          .replaceAll('POPULAR', seeded.clients.confidential.id)
          .replaceAll('HEAVY', seeded.person.accountId)
          .replaceAll('FILE', file);
        const { output, errors } = await run(`${words} ${filled}`, 'nothing\n');
        // The doctor finds no service at the issuer, which is another answer than that of a slow statement.
        const text = `${errors}${output.slice(0, 2_000)}`.replaceAll('the service does not answer', '');
        expect(text).not.to.match(/statement|does not answer|unexpected/i);
      });
    }
  }
});
