/** Steps of a walk that change memberships by an import and by `POST /changes`. */
import { expect } from 'chai';
import fc from 'fast-check';
import { fileOf, line } from '../import/import-file.ts';
import { push } from '../import/pushing.ts';
import { operatorOn, valueFrom } from '../operator/run-operator.ts';
import { DAY } from './model-memberships.ts';
import { later } from './reach-steps.ts';
import { required, type Step, type World } from './walked-world.ts';

type Role = 'member' | 'admin' | 'viewer' | undefined;
const PEOPLE = ['person', 'other'] as const;
type Name = (typeof PEOPLE)[number];

/**
 * No lateness is a multiple of the 20 seconds between steps, so that no two changes have the same time.
 *
 * @param late seconds from the change in the other system until the line or file is applied
 */
const timeOf = ({ time }: World, late: number): string => new Date(time.clock() - late * 1_000).toISOString();

/** @param times how often the same request is sent */
const byPush = ([name, role, late, times]: [Name, Role, number, number]): Step => ({
  name: `POST /changes × ${times}: ${name} was ${role} ${late} s ago`,
  async run({ memberships }, world) {
    const { service, seeded, people } = world;
    const membership = {
      type: 'membership',
      account_id: required(people.get(name)).accountId,
      organization_id: seeded.organization.id,
      as_of: timeOf(world, late),
      ...(role ? { role } : { removed: true }),
    };
    for (let sent = 0; sent < times; sent += 1) {
      const { results } = await push(service, [membership]);
      expect(results).to.deep.equal([memberships.byPush(name, role, late)]);
    }
  },
});

const byImport = ([roles, late]: [Readonly<Record<Name, Role>>, number]): Step => ({
  name: `import of a file of ${late} s ago: ${JSON.stringify(roles)}`,
  async run({ memberships }, world) {
    const { seeded, people, service } = world;
    const lines = PEOPLE.flatMap((name) => {
      const { email, name: shown } = required(people.get(name));
      const role = roles[name];
      return [line.account(name, { email, name: shown }), ...(role ? [line.membership(name, 'O1', role)] : [])];
    });
    await service.database.query(`UPDATE organizations SET external_id = 'O1' WHERE id = $1`, [seeded.organization.id]);
    const file = fileOf(line.organization('O1', seeded.organization.name), ...lines);
    const options = '--prune --prune-at-most 100% --yes';
    const asOf = timeOf(world, late);
    await valueFrom(operatorOn(service.database), `import ${file} --as-of ${asOf} ${options}`);
    // The command forgets removals 30 days later by the real clock, because the clock of the walk is not its own.
    await service.database.query(
      'UPDATE known_times SET expires_at = $1 WHERE by_import AND ended_as_of = $2 AND expires_at IS NOT NULL',
      [new Date(world.time.clock() + 30 * DAY * 1_000), asOf],
    );
    for (const name of PEOPLE) memberships.byImport(name, roles[name], late);
  },
});

const name = fc.constantFrom(...PEOPLE);
const role = fc.constantFrom<Role>('member', 'admin', 'viewer', undefined);
const late = fc.constantFrom(0, 0, 30, 90, 510, 2 * DAY + 10);

/** A change of a membership by an import or by `POST /changes`, late and repeated. */
export const membershipStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(name, role, late, fc.constantFrom(1, 1, 2))
      .map(byPush)
      .map(later),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.record({ person: role, other: role }), late)
      .map(byImport)
      .map(later),
  },
);
