/** Limits that users set on the access of a client or API key: only some organizations and warehouses, or read-only. */
import type { Organization } from './reach.ts';

export interface AccessLimit {
  /** Ids of organizations (with all their warehouses) and of warehouses. Null if the access is not limited to them. */
  readonly places: readonly string[] | null;
  /** True if the client or key has only the role `viewer` and the right `read`. */
  readonly isReadOnly: boolean;
}

/** The limit of a connection. An API key has its own expiry instead of `until`. */
export interface ConnectionLimit extends AccessLimit {
  /** When the connection ends; null for never. */
  readonly until: Date | null;
}

export const NO_LIMIT: ConnectionLimit = Object.freeze({
  places: null,
  isReadOnly: false,
  until: null,
});

export const isLimited = ({ places, isReadOnly, until }: Partial<ConnectionLimit>): boolean =>
  (places ?? null) !== null || isReadOnly === true || (until ?? null) !== null;

/** SQL expression for the limit of the connection `n`, as JSON for `limitFrom`. */
export const LIMIT_COLUMN = `json_build_object('places', n.limit_places,
    'isReadOnly', n.limit_read_only, 'until', n.limit_until)`;

export const IS_LIMITED = '(n.limit_places IS NOT NULL OR n.limit_read_only OR n.limit_until IS NOT NULL)';

export type LimitJson = AccessLimit & { readonly until: string | null };

export const limitJson = ({ places, isReadOnly, until }: ConnectionLimit): LimitJson => ({
  places,
  isReadOnly,
  until: until === null ? null : until.toISOString(),
});

export const limitFrom = ({ places, isReadOnly, until }: LimitJson): ConnectionLimit => ({
  places,
  isReadOnly,
  until: until === null ? null : new Date(until),
});

/** Returns the part of a user's access that is within the limit. Omits organizations that are outside of it. */
export function limitAccess(
  organizations: readonly Organization[],
  { places, isReadOnly }: AccessLimit,
): readonly Organization[] {
  const within = places === null ? organizations : organizationsWithin(organizations, places);
  return isReadOnly ? within.map(readOnly) : within;
}

function organizationsWithin(
  organizations: readonly Organization[],
  places: readonly string[],
): readonly Organization[] {
  const ids = new Set(places);
  return organizations.flatMap((organization) => {
    if (ids.has(organization.id)) return [organization];
    const warehouses = organization.warehouses.filter(({ id }) => ids.has(id));
    return warehouses.length > 0 ? [{ ...organization, warehouses }] : [];
  });
}

/** Removes the warehouses with ids in `left`. An organization that loses all its warehouses is omitted. */
export function withoutWarehouses(
  organizations: readonly Organization[],
  left: ReadonlySet<string>,
): readonly Organization[] {
  if (left.size === 0) return organizations;
  return organizations.flatMap((organization) => {
    const warehouses = organization.warehouses.filter(({ id }) => !left.has(id));
    if (warehouses.length === organization.warehouses.length) return [organization];
    return warehouses.length > 0 ? [{ ...organization, warehouses }] : [];
  });
}

/** Describes a limit in a sentence for operators. Returns an empty text if there is no limit. */
export function limitSentence(limit: Partial<ConnectionLimit>): string {
  const { places, isReadOnly, until } = limit;
  const parts = [
    ...(places ? [`${places.length} chosen places`] : []),
    ...(isReadOnly ? ['only to read'] : []),
    ...(until ? [`until ${until.toISOString()}`] : []),
  ];
  return parts.length === 0 ? '' : `The person limited this access: ${parts.join(', ')}.`;
}

export const limitDetails = ({ places, isReadOnly, until }: Partial<ConnectionLimit>) => ({
  ...(places && { places: places.length }),
  ...(isReadOnly && { read_only: 'yes' }),
  ...(until && { until: until.toISOString().slice(0, 10) }),
});

const readOnly = (organization: Organization): Organization => ({
  ...organization,
  role: 'viewer',
  warehouses: organization.warehouses
    .filter(({ rights }) => rights.includes('read'))
    .map((warehouse) => ({ ...warehouse, rights: READ })),
});

const READ = Object.freeze(['read'] as const);
