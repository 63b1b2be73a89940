/**
 * The access that a token should have: the user's memberships in organizations that admit the client,
 * within the limit that the user chose.
 */
import type { ConnectionLimit } from '../../src/accounts/access/access-limit.ts';
import type { Right, Role } from '../../src/accounts/access/reach.ts';

/** The organizations of a walk with their warehouses, in the order of introspection. */
export const PLACES = { elsewhere: ['riga'], organization: ['hamburg', 'rotterdam'] } as const;
export type OrganizationKey = keyof typeof PLACES;
export type WarehouseKey = (typeof PLACES)[OrganizationKey][number];
export type PlaceKey = OrganizationKey | WarehouseKey;

export const organizationOf = (warehouse: WarehouseKey): OrganizationKey =>
  warehouse === 'riga' ? 'elsewhere' : 'organization';

const ALL_RIGHTS: readonly Right[] = ['read', 'write', 'manage'];

/** A limit by the keys of places. `until` is in seconds of the model. */
export interface ModelLimit extends Pick<ConnectionLimit, 'isReadOnly'> {
  readonly places: readonly PlaceKey[] | null;
  readonly until: number | null;
}

export interface ReachedPlace {
  readonly organization: OrganizationKey;
  readonly role: Role;
  readonly warehouses: readonly (readonly [WarehouseKey, readonly Right[]])[];
}

export class ReachModel {
  /** By account and organization, separated by a space, as the other keys here. */
  readonly roles = new Map<string, Role>([
    ['person organization', 'member'],
    ['other organization', 'owner'],
    ['other elsewhere', 'owner'],
  ]);
  /** By account and warehouse. */
  readonly rights = new Map<string, readonly Right[]>([['person rotterdam', ['read', 'write']]]);
  /** By account and client. */
  readonly limits = new Map<string, ModelLimit>();
  /** Organization or warehouse, and client. */
  readonly blocks = new Set<string>();
  /** Organizations that ask first: only clients that they approved reach them. */
  readonly askFirst = new Set<string>();
  /** Keys are organization and client; true for an approved client, false for a declined client. */
  readonly approvals = new Map<string, boolean>();

  removeMember(account: string, organization: OrganizationKey): void {
    this.roles.delete(`${account} ${organization}`);
    for (const warehouse of PLACES[organization]) this.rights.delete(`${account} ${warehouse}`);
  }

  /** Returns what a token of this client reaches for this user. */
  of(account: string, client: string): readonly ReachedPlace[] {
    const limit = this.limits.get(`${account} ${client}`);
    const isChosen = (place: PlaceKey): boolean => limit?.places?.includes(place) ?? true;
    return (Object.keys(PLACES) as OrganizationKey[]).flatMap((organization) => {
      const role = this.roles.get(`${account} ${organization}`);
      if (role === undefined || !this.#admits(organization, client)) return [];
      const reached = PLACES[organization]
        .map((one) => [one, this.#rightsOf(account, role, one)] as const)
        .filter(([, rights]) => rights.length > 0);
      // A block in a warehouse is a limit that leaves it out.
      const open = reached.filter(([one]) => !this.blocks.has(`${one} ${client}`));
      if (open.length === 0 && reached.length > 0) return [];
      const chosen = open.filter(([one]) => isChosen(organization) || isChosen(one));
      if (!isChosen(organization) && chosen.length === 0) return [];
      if (!limit?.isReadOnly) return [{ organization, role, warehouses: chosen }];
      const readable = chosen.filter(([, rights]) => rights.includes('read'));
      const warehouses = readable.map(([one]) => [one, ['read']] as const);
      return [{ organization, role: 'viewer', warehouses }];
    });
  }

  #admits(organization: OrganizationKey, client: string): boolean {
    const key = `${organization} ${client}`;
    if (this.blocks.has(key)) return false;
    return !this.askFirst.has(organization) || this.approvals.get(key) === true;
  }

  #rightsOf(account: string, role: Role, warehouse: WarehouseKey): readonly Right[] {
    if (role === 'owner' || role === 'admin') return ALL_RIGHTS;
    const given = this.rights.get(`${account} ${warehouse}`) ?? [];
    return role === 'viewer' ? given.filter((right) => right === 'read') : given;
  }
}
