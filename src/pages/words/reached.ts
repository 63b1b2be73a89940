/** Describes which organizations and warehouses a user or a client can access. */
import type { ClientExclusion } from '../../accounts/access/client-blocks.ts';
import type { Organization, Role } from '../../accounts/access/reach.ts';
import { type Message, message } from '../../base/message.ts';
import { toMoment } from './moment.ts';

/** The view data of an organization that the user can access. */
export interface ReachedOrganization {
  readonly name: string;
  readonly role: Message;
  readonly warehouses: readonly {
    readonly name: string;
    /** A text such as `see stock, change stock`. */
    readonly rights: string;
    /** The page that lists who can access the warehouse; absent if the user may not see this page. */
    readonly url?: string;
  }[];
}

/** Returns a message for each organization or warehouse that excludes a client. @param all the user's organizations */
export const describeExclusions = (exclusions: readonly ClientExclusion[], all: readonly Organization[]): Message[] =>
  exclusions.flatMap(({ organizationId, warehouseId, at, why, follows, sentence }) => {
    const kind = follows ? 'follows' : why;
    const organization = all.find(({ id }) => id === organizationId);
    const warehouse = organization?.warehouses.find(({ id }) => id === warehouseId);
    // Leave out warehouses that the user cannot access, because the user must not learn that they exist.
    if (warehouseId !== null && !warehouse) return [];
    return message(`bars.${kind}`, {
      organization: organization?.name ?? '',
      warehouse: warehouse?.name ?? '',
      // The start of the exclusion is unknown until a member of the organization connects the client.
      since: at ? toMoment(at) : '',
      isKnown: String(at !== null),
      reason: sentence ?? '',
      hasReason: String(sentence !== null),
    });
  });

/** Returns the data for the view `partials/organizations`. @param urlOf returns the URL of the page of a warehouse */
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
