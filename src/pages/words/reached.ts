/** Describes in the words of pages what a user or client can access. */
import type { ClientExclusion } from '../../accounts/access/client-blocks.ts';
import type { Organization, Role } from '../../accounts/access/reach.ts';
import { type Message, message } from '../../base/message.ts';
import { toMoment } from './moment.ts';

/** An organization that the user can access now, as views print it. */
export interface ReachedOrganization {
  readonly name: string;
  readonly role: Message;
  readonly warehouses: readonly {
    readonly name: string;
    /** In the operator's words, such as `see stock, change stock`. */
    readonly rights: string;
    /** The page that lists who can access the warehouse; absent unless the user may see it. */
    readonly url?: string;
  }[];
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
  { name, role, warehouses }: Organization,
  inWords: (rights: readonly string[]) => string,
  urlOf?: (warehouse: { readonly id: string }) => string,
): ReachedOrganization {
  return {
    name,
    role: roleOf(role),
    warehouses: warehouses.map(({ id, name, rights }) => ({
      name,
      ...(urlOf && { url: urlOf({ id }) }),
      rights: inWords(rights),
    })),
  };
}

const roleOf = (role: Role): Message => message(`roles.${role}`);
