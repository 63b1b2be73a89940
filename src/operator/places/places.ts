/** What organizations and warehouses have in common: another name, an external id, and their end. */
import type { Command } from 'commander';
import type {
  Dependents,
  Place,
  PlaceChanges,
  PlaceKind,
} from '../../accounts/organizations/places.ts';
import { askedFirst, type ConfirmationOptions, confirmed } from '../program/confirmation.ts';
import { WrongUsage } from '../program/failure.ts';
import type { Operator } from '../program/operator.ts';
import type { Report } from '../program/report.ts';

export const EXTERNAL_ID = [
  '--external-id <id>',
  'its id in the system that it is imported from: the next import takes it for its own',
] as const;

export function addPlaceCommands(nouns: Command, kind: PlaceKind, operator: Operator): void {
  const { run } = operator;

  nouns
    .command('rename')
    .description('change what it is called, here or in the system that imports it')
    .argument('<id>', `the ${kind}`)
    .option('--name <name>', 'the name that pages show')
    .option(...EXTERNAL_ID)
    .action((id: string, changes: PlaceChanges) => {
      const changed = Object.keys(changes);
      if (changed.length === 0) throw new WrongUsage('say --name or --external-id');
      return run(async ({ organizations, recordChange }) => {
        const place = await organizations.edit(kind, id, changes, (tx, { name }) =>
          recordChange(`${kind}_changed`, { details: detailsOf(kind, { id, name }, { changed }) })(
            tx,
          ),
        );
        return placeReport(kind, place, 'Changed');
      });
    });

  askedFirst(nouns.command('remove'))
    .description('remove it with all access to it; says first what depends on it')
    .argument('<id>', `the ${kind}`)
    .action((id: string, options: ConfirmationOptions) =>
      run(async ({ organizations, recordChange }) => {
        const { name } = await organizations.find(kind, id);
        const lost = await organizations.dependents(kind, id);
        await confirmed(`Removes the ${kind} ${name} ${inWords(kind, lost)}.`, options, operator);
        const place = await organizations.remove(kind, id, (tx) =>
          recordChange(`${kind}_removed`, {
            details: detailsOf(
              kind,
              { id, name },
              { people: lost.people, machines: lost.machines },
            ),
          })(tx),
        );
        return placeReport(kind, place, 'Removed', { removed: true, ...lost });
      }),
    );
}

function inWords(kind: PlaceKind, { warehouses, people, machines }: Dependents): string {
  const access = `the access of ${people} people and ${machines} machine clients`;
  return kind === 'organization'
    ? `with its ${warehouses} warehouses, and ${access}`
    : `with ${access} that was given for it`;
}

const detailsOf = (
  kind: PlaceKind,
  { id, name }: Place,
  more: Readonly<Record<string, number | readonly string[]>>,
) => ({ [`${kind}_id`]: id, [`${kind}_name`]: name, ...more });

const placeReport = (kind: PlaceKind, place: Place, done: string, more = {}): Report => ({
  value: {
    id: place.id,
    [`${kind}_id`]: place.id,
    name: place.name,
    external_id: place.externalId ?? null,
    ...more,
  },
  text: `${done} ${kind} ${place.id}: ${place.name}.`,
});
