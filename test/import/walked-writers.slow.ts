/** Whatever writes people, places and access, and however late: nothing reaches what a newer truth ended. */
import { expect } from 'chai';
import fc from 'fast-check';
import { createOrganizationEndings } from '../../src/authorizations/organization-endings.ts';
import { createTestOrganizations } from '../../src/changes/test-organizations.ts';
import { operatorOn, valueFrom } from '../operator/run-operator.ts';
import { introspect } from '../support/oauth.ts';
import { repeated } from '../support/repetitions.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { apiKeyOf } from '../support/seed.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { type Deployment, startsOn, type TestService } from '../support/service.ts';
import { fileOf, type Line, line } from './import-file.ts';
import { push, SENDERS } from './pushing.ts';

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const PEOPLE = ['A1', 'A2'] as const;
const ISSUER = 'https://id.example.test';
const WRITERS = [
  'push',
  'import',
  'memberships',
  'page',
  'accounts add',
  'accounts suspend',
  'accounts resume',
  'accounts delete',
  'organizations delete',
  'warehouses delete',
  'join',
  'leave',
  'unlink',
] as const;

const KINDS = ['organization', 'warehouse', 'account', 'membership', 'rights'] as const;
const OFTEN = [...Array<'push'>(8).fill('push'), 'memberships', 'accounts resume', 'unlink', 'unlink'] as const;

const anyStep = fc.record({
  writer: fc.constantFrom(...WRITERS, ...OFTEN),
  person: fc.constantFrom(...PEOPLE),
  kind: fc.constantFrom(...KINDS, 'membership', 'membership', 'rights'),
  late: fc.constantFrom<number>(60, 60, 60, 3_600, 2 * 86_400, 0),
  isGiven: fc.constantFrom(true, true, false),
  isOfSecondNode: fc.boolean(),
  /** True if lines of a minute ago follow, which would give back all that the step ended. */
  isFollowed: fc.boolean(),
});
type Step = typeof anyStep extends fc.Arbitrary<infer Value> ? Value : never;

/** A statement about a record: it was so at this time, in milliseconds. */
interface Truth {
  readonly about: string;
  readonly isGiven: boolean;
  readonly at: number;
  readonly isImport: boolean;
}

/** The records without which a person does not reach the organization, or the warehouse. */
const needed = (person: string) => [`account ${person}`, 'organization', `membership ${person}`];
const neededInside = (person: string) => [...needed(person), 'warehouse', `rights ${person}`];

class Walk {
  readonly #on: Seeded;
  readonly #nodes: readonly TestService[];
  readonly #truths: Truth[] = [];
  readonly #keys = new Map<string, string>();
  readonly reached = new Set<string>();

  constructor(on: Seeded, nodes: readonly TestService[]) {
    this.#on = on;
    this.#nodes = nodes;
  }

  #tell(about: string, isGiven: boolean, at: number, isImport = false): void {
    this.#truths.push({ about, isGiven, at, isImport });
  }

  async #idOf(table: string, external: string): Promise<string | undefined> {
    const rows = await this.#on.service.database.query<{ id: string }>(
      `SELECT id FROM ${table} WHERE external_id = $1`,
      [external],
    );
    return rows[0]?.id;
  }

  async take(step: Step): Promise<void> {
    const { writer, person, late, isGiven } = step;
    const node = this.#nodes[step.isOfSecondNode ? this.#nodes.length - 1 : 0] ?? this.#on.service;
    const account = await this.#idOf('accounts', person);
    const organization = await this.#idOf('organizations', 'O1');
    const warehouse = await this.#idOf('warehouses', 'W1');
    const begun = Date.now();
    const asOf = begun - late * 1_000;
    const command = (words: string) => valueFrom(operatorOn(this.#on.service.database), words);
    /** What is true from a time during the step on: an end since its begin, at least. */
    const since = (about: string, given: boolean): void => this.#tell(about, given, given ? Date.now() : begun);
    const endMembership = (one: string): void => {
      for (const about of ['membership', 'rights']) since(`${about} ${one}`, false);
    };
    if (writer === 'push') {
      const [one, about] = pushed(step);
      const sent = [late === 0 ? one : { ...one, as_of: new Date(asOf).toISOString() }];
      const { results } = await push(node, sent);
      expect((await push(node, sent)).results[0], 'the same line again').to.not.equal('ok');
      if (results[0] !== 'ok' && (results[0] !== 'unchanged' || !account || !organization)) return;
      for (const told of [about, ...(isGiven && about.startsWith('account') ? [`link ${person}`] : [])]) {
        if (late === 0) since(told, isGiven);
        else this.#tell(told, isGiven, asOf);
      }
    } else if (writer === 'import') {
      const members = PEOPLE.filter((one) => isGiven || one !== person);
      const lines = [
        line.organization('O1'),
        line.warehouse('W1', 'O1'),
        ...PEOPLE.map((one) => line.account(one)),
        ...members.flatMap((one) => [line.membership(one, 'O1'), line.rights(one, 'W1', 'read')]),
      ];
      const words = `import ${fileOf(...lines)} --as-of ${new Date(asOf).toISOString()} --prune --prune-at-most 100% --yes`;
      const planned = await command(`${words} --dry-run`);
      const { changes, counts } = await command(words);
      expect({ changes, counts }).to.deep.equal({ changes: planned.changes, counts: planned.counts });
      expect((await command(words)).changes, 'the same file again').to.deep.equal([]);
      for (const one of members) for (const about of neededInside(one)) this.#tell(about, true, asOf, true);
    } else if (writer === 'accounts add') {
      const { email } = line.account(person) as { readonly email: string };
      if (await this.#on.service.accounts.findByEmail(email)) return;
      await command(`accounts add --email ${email} --name ${person} --invite`);
      since(`account ${person}`, true);
    } else if (account === undefined || organization === undefined) {
      // Most steps need both records: a line without a time adds what is missing.
      for (const kind of KINDS) await this.take({ ...step, writer: 'push', kind, late: 0, isGiven: true });
    } else if (writer === 'memberships' && step.kind === 'rights') {
      if (warehouse === undefined || (isGiven && !(await this.#roleOf(account)))) return;
      const to = `--account ${account} --warehouse ${warehouse}`;
      await command(isGiven ? `memberships set ${to} --rights read` : `memberships remove ${to}`);
      since(`rights ${person}`, isGiven);
    } else if (writer === 'memberships') {
      const to = `--account ${account} --organization ${organization}`;
      await command(isGiven ? `memberships set ${to} --role member` : `memberships remove ${to}`);
      if (isGiven) since(`membership ${person}`, true);
      else endMembership(person);
    } else if (writer === 'page') {
      const { accountId } = this.#on.seeded.other;
      await this.#on.service.memberships.setRole({ accountId }, organization, 'owner');
      await createOrganizationEndings(node).endMembership(
        {
          organization: { id: organization, name: 'Any' },
          admin: { account: { id: accountId, name: 'Any' }, origin: { address: '192.0.2.1', browser: '' } },
        },
        { id: account, name: person },
      );
      endMembership(person);
    } else if (writer === 'join' || writer === 'leave') {
      const before = await this.#roleOf(account);
      await createTestOrganizations({ ...node, ids: [organization] }).change(
        writer,
        [account, organization],
        async () => {},
      );
      if ((await this.#roleOf(account)) === before) return;
      if (writer === 'leave') endMembership(person);
      else for (const about of ['membership', 'rights']) since(`${about} ${person}`, true);
    } else if (writer === 'unlink') {
      if (await node.accounts.unlink(account, ISSUER, async () => {})) since(`link ${person}`, false);
    } else if (writer === 'organizations delete') {
      await command(`organizations delete ${organization} --yes`);
      for (const about of ['organization', 'warehouse']) since(about, false);
      for (const one of PEOPLE) endMembership(one);
    } else if (writer === 'warehouses delete') {
      if (warehouse === undefined) return;
      await command(`warehouses delete ${warehouse} --yes`);
      for (const about of ['warehouse', ...PEOPLE.map((one) => `rights ${one}`)]) since(about, false);
    } else {
      await command(`${writer} ${account}${writer === 'accounts delete' ? ' --yes' : ''}`);
      since(`account ${person}`, writer === 'accounts resume');
      if (writer !== 'accounts delete') return;
      endMembership(person);
      since(`link ${person}`, false);
    }
  }

  async #roleOf(account: string): Promise<unknown> {
    const roles = await this.#on.service.database.query<{ role: string }>(
      'SELECT role FROM organization_memberships WHERE account_id = $1',
      [account],
    );
    return roles[0]?.role;
  }

  /** Asks both nodes what each person's API key reaches, and looks at the links with which people sign in. */
  async check(): Promise<void> {
    const links = await this.#on.service.database.query<{ person: string }>(
      'SELECT external_id AS person FROM accounts WHERE id IN (SELECT account_id FROM account_identities)',
    );
    for (const { person } of links) expect(this.#endedBy(`link ${person}`), `${person} is linked`).to.equal(undefined);
    const { service, clients } = this.#on;
    const organization = await this.#idOf('organizations', 'O1');
    for (const person of PEOPLE) {
      const account = await this.#idOf('accounts', person);
      if (account === undefined || organization === undefined) continue;
      if (!this.#keys.has(account)) {
        const added = await apiKeyOf(service, { accountId: account }).catch(() => undefined);
        if (added === undefined) continue;
        this.#keys.set(account, added.value);
      }
      for (const node of this.#nodes) {
        node.access.forget(account);
        const { body } = await introspect(node.issuer, clients.resourceServer, this.#keys.get(account) ?? '');
        const organizations = (body.organizations ?? []) as readonly { id: string; warehouses: readonly unknown[] }[];
        const reached = organizations.find(({ id }) => id === organization);
        if (reached === undefined) continue;
        const isInside = reached.warehouses.length > 0;
        if (isInside) this.reached.add(person);
        for (const about of isInside ? neededInside(person) : needed(person)) {
          expect(this.#endedBy(about), `${person} reaches ${about}`).to.equal(undefined);
        }
      }
    }
  }

  /** Returns an end after which nothing newer gave the record. Of two imports, the later run wins. */
  #endedBy(about: string): Truth | undefined {
    const all = this.#truths.filter((one) => one.about === about);
    return all.find(
      (end, index) =>
        !end.isGiven &&
        !all.some(
          (one, position) => one.isGiven && (one.at >= end.at || (one.isImport && end.isImport && position > index)),
        ),
    );
  }
}

function pushed({ kind, person, isGiven }: Step): [Line, string] {
  if (kind === 'account') {
    const identity = isGiven && { identity: { issuer: ISSUER, subject: person } };
    return [line.account(person, { suspended: !isGiven, ...identity }), `account ${person}`];
  }
  // A line cannot remove an organization.
  if (kind === 'organization') return [line.organization('O1'), isGiven ? 'organization' : 'nothing'];
  if (kind === 'warehouse') return [line.warehouse('W1', 'O1'), isGiven ? 'warehouse' : 'nothing'];
  const one = kind === 'rights' ? line.rights(person, 'W1', 'read') : line.membership(person, 'O1');
  return [isGiven ? one : { ...one, removed: true }, `${kind} ${person}`];
}

function suite(deployment: Deployment, walks: number, ahead?: number): () => void {
  return () => {
    const start = startsOn(deployment);
    const on = startSeeded({ on: start, settings: { senders: SENDERS, import: { removalsPerHour: '100000' } } });

    it(`no token or key grants access that a later change has ended (${walks} walks, seed ${SEED})`, async () => {
      const nodes = [on.service, ...(ahead === undefined ? [] : [await start({ sharing: on.service, ahead })])];
      let reached = 0;
      const property = fc.asyncProperty(fc.array(anyStep, { minLength: 12, maxLength: 12 }), async (steps) => {
        await on.service.database.query('DELETE FROM accounts WHERE external_id IS NOT NULL OR email = ANY($1)', [
          PEOPLE.map((one) => line.account(one).email),
        ]);
        await on.service.database.query('DELETE FROM organizations WHERE external_id IS NOT NULL');
        await on.service.database.query('DELETE FROM known_times');
        const walk = new Walk(on, nodes);
        const given = { writer: 'push', isGiven: true, isOfSecondNode: false, isFollowed: false } as const;
        for (const kind of KINDS) {
          for (const person of PEOPLE) await walk.take({ ...given, kind, person, late: 2 * 86_400 });
        }
        await walk.check();
        for (const step of steps) {
          await walk.take(step);
          await walk.check();
          if (!step.isFollowed) continue;
          for (const kind of KINDS) await walk.take({ ...step, ...given, kind, late: 60 });
          await walk.check();
        }
        reached += walk.reached.size;
      });
      await fc.assert(property, { numRuns: walks, seed: SEED, endOnFailure: true, includeErrorInReport: true });
      expect(reached, 'people who reached the organization').to.be.above(0);
    });
  };
}

describe('random sequences of changes never restore access that a newer change has ended', () => {
  describe('with the embedded database, random changes never restore ended access', suite('embedded', repeated(1)));
  describeOn([postgresServer], 'PostgreSQL', suite('postgres', repeated(2)));
  describeOn(
    [postgresServer],
    'PostgreSQL, two nodes whose clocks are two minutes apart',
    suite('postgres', repeated(1), -120),
  );
});
