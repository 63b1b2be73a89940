/** Describes in the words of pages what a user or client reaches, and what changed. */
import type { ComparedOrganization } from '../../accounts/access/access-difference.ts';
import type { Organization } from '../../accounts/access/reach.ts';
import type { ClientExclusion } from '../../accounts/organizations/client-blocks.ts';
import type { AccessChange, ReachedOrganization } from '../view-data.ts';
import { type Moment, momentOrNothing } from './moment.ts';

/** An organization that a client does not reach, for `partials/bars`. */
export interface ExcludedThere extends Pick<ClientExclusion, 'why' | 'follows'> {
  readonly organization: string;
  /** Undefined if no member of the organization has connected the client yet. */
  readonly since: Moment | undefined;
  /** Why the organization declined the client. */
  readonly sentence: string | undefined;
}

/** @param all the organizations that the user belongs to. */
export const describeExclusions = (
  exclusions: readonly ClientExclusion[],
  all: readonly Organization[],
): ExcludedThere[] =>
  exclusions.map(({ organizationId, at, why, follows, sentence }) => ({
    organization: all.find(({ id }) => id === organizationId)?.name ?? '',
    since: momentOrNothing(at),
    why,
    follows,
    sentence: sentence ?? undefined,
  }));

/** Returns the data for `partials/organizations`. @param inWords see `createRightsInWords` */
export function describeReached(
  { name, role, change, formerRole, warehouses }: ComparedOrganization,
  inWords: (rights: readonly string[]) => string,
): ReachedOrganization {
  return {
    name,
    role,
    ...changeOf(change, formerRole),
    warehouses: warehouses.map(({ name, rights, change, formerRights }) => ({
      name,
      rights: inWords(rights),
      ...changeOf(change, formerRights && inWords(formerRights)),
    })),
  };
}

function changeOf(
  kind: ComparedOrganization['change'],
  former: string | undefined,
): { change?: AccessChange } {
  if (kind === undefined) return {};
  const words = { added: 'added', removed: 'no longer', changed: `was ${former}` };
  return { change: { kind, words: words[kind] } };
}

/** Lists what changed since an approval, as clauses: `Your role in Storm was admin, now member`. */
export function describeChanges(
  organizations: readonly ComparedOrganization[],
  inWords: (rights: readonly string[]) => string,
): string[] {
  return organizations.flatMap((organization) => {
    const { name, change, role, formerRole, warehouses } = organization;
    if (change === 'added') return [`You reach ${name} now, as ${role}`];
    if (change === 'removed') return [`It no longer reaches ${name}`];
    const own = change ? [`Your role in ${name} was ${formerRole}, now ${role}`] : [];
    return [
      ...own,
      ...warehouses.flatMap((warehouse) => describeWarehouse(warehouse, name, inWords)),
    ];
  });
}

function describeWarehouse(
  { name, change, rights, formerRights = [] }: ComparedOrganization['warehouses'][number],
  organization: string,
  inWords: (rights: readonly string[]) => string,
): string[] {
  if (change === undefined) return [];
  const what = `${name} in ${organization}`;
  if (change === 'added') return [`You reach ${what} now`];
  if (change === 'removed') return [`It no longer reaches ${what}`];
  return [`Your rights in ${what} were ${inWords(formerRights)}, now ${inWords(rights)}`];
}

/** Returns the words after "Also disconnect"; undefined if no client acts for the user. */
export function describeConnections(connections: number): string | undefined {
  if (connections === 0) return undefined;
  return connections === 1
    ? 'the client that acts for you'
    : `all ${connections} clients that act for you`;
}
