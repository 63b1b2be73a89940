/** Describes in the words of pages what a user or client can access, and what changed. */
import type { ComparedOrganization } from '../../accounts/access/access-difference.ts';
import type { ClientExclusion } from '../../accounts/access/client-blocks.ts';
import type { Organization, Role } from '../../accounts/access/reach.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { toMoment } from './moment.ts';

/** An organization that the user can access now, as views print it. */
export interface ReachedOrganization {
  readonly name: string;
  readonly role: Message;
  readonly change?: AccessChange;
  readonly warehouses: readonly {
    readonly name: string;
    /** In the operator's words, such as `see stock, change stock`. */
    readonly rights: string;
    readonly change?: AccessChange;
    /** The page that lists who can access the warehouse; absent unless the user may see it. */
    readonly url?: string;
  }[];
}

/** A difference between the current access and the access that the user approved. */
interface AccessChange {
  readonly kind: 'added' | 'removed' | 'changed';
  /** What changed, such as `no longer` or `was member`. */
  readonly words: Message;
}

/**
 * Returns a message for each organization or warehouse that excludes a client, for `partials/bars`.
 *
 * @param all the organizations that the user belongs to
 */
export const describeExclusions = (exclusions: readonly ClientExclusion[], all: readonly Organization[]): Message[] =>
  exclusions.flatMap(({ organizationId, warehouseId, at, why, follows, sentence }) => {
    const kind = follows ? 'follows' : why;
    const organization = all.find(({ id }) => id === organizationId);
    const warehouse = organization?.warehouses.find(({ id }) => id === warehouseId);
    // Leave out warehouses without access, because the user may not know that they exist.
    if (warehouseId !== null && !warehouse) return [];
    return message(`bars.${kind}`, {
      organization: organization?.name ?? '',
      warehouse: warehouse?.name ?? '',
      // Unknown until a member of the organization connects the client.
      since: at ? toMoment(at) : '',
      isKnown: String(at !== null),
      reason: sentence ?? '',
      hasReason: String(sentence !== null),
    });
  });

/**
 * Returns the data for `partials/organizations`.
 *
 * @param inWords see `createRightsInWords`
 * @param urlOf returns the URL of a warehouse's page
 */
export function describeReached(
  { name, role, change, formerRole, warehouses }: ComparedOrganization,
  inWords: (rights: readonly string[]) => string,
  urlOf?: (warehouse: { readonly id: string }) => string,
): ReachedOrganization {
  return {
    name,
    role: roleOf(role),
    ...changeOf(change, formerRole && roleOf(formerRole)),
    warehouses: warehouses.map(({ id, name, rights, change, formerRights }) => ({
      name,
      ...(urlOf && { url: urlOf({ id }) }),
      rights: inWords(rights),
      ...changeOf(change, formerRights && inWords(formerRights)),
    })),
  };
}

const roleOf = (role: Role): Message => message(`roles.${role}`);

const changeOf = (kind: ComparedOrganization['change'], former: Text = ''): { change?: AccessChange } =>
  kind === undefined ? {} : { change: { kind, words: message(`access.${kind}`, { former }) } };

/** Lists what changed since an approval: `Your role in Storm changed from admin to member`. */
export function describeChanges(
  organizations: readonly ComparedOrganization[],
  inWords: (rights: readonly string[]) => string,
): Message[] {
  return organizations.flatMap(({ name, change, role, formerRole, warehouses }) => {
    const own = {
      organization: name,
      role: roleOf(role),
      former: formerRole ? roleOf(formerRole) : '',
    };
    return [
      ...(change ? [message(`since.organization-${change}`, own)] : []),
      ...(change === 'added' || change === 'removed'
        ? []
        : warehouses.flatMap((warehouse) => describeWarehouse(warehouse, name, inWords))),
    ];
  });
}

const describeWarehouse = (
  { name, change, rights, formerRights = [] }: ComparedOrganization['warehouses'][number],
  organization: string,
  inWords: (rights: readonly string[]) => string,
): Message[] =>
  change === undefined
    ? []
    : [
        message(`since.warehouse-${change}`, {
          warehouse: name,
          organization,
          rights: inWords(rights),
          former: inWords(formerRights),
        }),
      ];
