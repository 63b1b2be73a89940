/** The form fields with which a user limits what a client or an API key can access. */
import type { Context } from 'koa';
import { type AccessLimit, type ConnectionLimit, isLimited, limitAccess } from '../../accounts/access/access-limit.ts';
import type { Organization } from '../../accounts/access/reach.ts';
import { type Message, message } from '../../base/message.ts';
import { sha256 } from '../../base/random-id.ts';

export type LimitFields = ReturnType<typeof limitFields>;

const PLACE_FIELD = 'place';
const PLACES_FIELD = 'limit_places';
const RIGHTS_FIELD = 'limit_rights';
const LAST_DAY_FIELD = 'limit_last_day';
export const LIMIT_FIELDS = [PLACES_FIELD, PLACE_FIELD, RIGHTS_FIELD, LAST_DAY_FIELD];

const DAY_MS = 86_400_000;
const MAX_YEARS = 10;
const SHOWN_NAMES = 3;
export const LIMITED = message('limit.saved');
/** The notice if the stored limit was changed after the user saw it. */
export const NOT_LIMITED = message('limit.not-saved');
const LOST = message('limit.lost');

/** The limit that the user has entered, which may be invalid. */
export interface TypedLimit extends ConnectionLimit {
  readonly problem?: Message;
  readonly lastDay?: string;
  /** The fingerprint of the stored limit that the page showed; undefined if no limit was stored. */
  readonly drawnFrom?: string | undefined;
}

const markOf = ({ places, isReadOnly, until }: AccessLimit & { readonly until?: Date | null }): string =>
  sha256(JSON.stringify([places, isReadOnly, until ?? null]));

/**
 * Returns the data of `partials/limit-fields`.
 *
 * @param how.hasEnd false for API keys, which have an expiry instead of a last day
 * @param how.stored the stored limit, which the form changes
 */
export function limitFields(
  organizations: readonly Organization[],
  limit: TypedLimit,
  { now, hasEnd, stored }: { now: number; hasEnd: boolean; stored?: Parameters<typeof markOf>[0] },
) {
  const chosen = new Set(limit.places);
  return {
    drawnFrom: limit.drawnFrom ?? (stored && markOf(stored)),
    summary:
      limit.problem === undefined
        ? describeLimit(hasEnd ? limit : { ...limit, until: undefined }, organizations)
        : message('limit.incomplete'),
    isOpen: limit.problem !== undefined || isLimited(limit),
    problem: limit.problem,
    /** False if access to all organizations and warehouses is allowed. */
    choosesPlaces: limit.places !== null,
    isReadOnly: limit.isReadOnly,
    organizations: organizations.map(({ id, name, warehouses }) => ({
      id,
      name,
      /**
       * True if the organization has a checkbox. If a user has one organization with warehouses, their checkboxes
       * suffice. But a chosen organization keeps its checkbox, so that the form does not lose the choice.
       */
      isOffered: organizations.length > 1 || warehouses.length === 0 || chosen.has(id),
      isChosen: chosen.has(id),
      warehouses: warehouses.map((warehouse) => ({
        id: warehouse.id,
        name: warehouse.name,
        isChosen: chosen.has(warehouse.id),
      })),
    })),
    /** The dates have the format of `<input type="date">`. */
    lastDay: hasEnd
      ? {
          value: limit.lastDay ?? (limit.until ? lastDayOf(limit.until) : ''),
          // Allow the last day of the stored limit, even if it is today.
          min: dayOf(Math.min(now + DAY_MS, limit.until ? limit.until.getTime() - DAY_MS : Number.POSITIVE_INFINITY)),
        }
      : undefined,
  };
}

/**
 * Reads the limit from a sent form.
 *
 * @param organizations the organizations that the user can choose now; the page may have offered more
 * @param stored the stored limit. Entries that the user cannot choose now stay, unless the form allows everything.
 * @returns undefined for a form without limit fields; an invalid limit has a `problem`
 */
export function typedLimit(
  form: URLSearchParams,
  organizations: readonly Organization[],
  now: number,
  stored?: Parameters<typeof markOf>[0],
): TypedLimit | undefined {
  const where = form.get(PLACES_FIELD);
  if (where === null) return undefined;
  const offered = new Set(placesIn(organizations));
  const sent = [...new Set(form.getAll(PLACE_FIELD))];
  const ticked = sent.filter((id) => offered.has(id));
  const notOffered = (stored?.places ?? []).filter((id) => !offered.has(id));
  const places = where === 'chosen' ? [...ticked, ...notOffered] : null;
  const lastDay = form.get(LAST_DAY_FIELD) ?? '';
  const until = endOf(lastDay, now, stored?.until);
  const problem =
    (ticked.length < sent.length && LOST) ||
    // Without any organization, the form has nothing to choose.
    (places?.length === 0 && organizations.length > 0 && message('limit.nothing-chosen')) ||
    (places === null && ticked.length > 0 && message('limit.both-chosen')) ||
    (until === undefined && message('limit.no-day', { years: MAX_YEARS }));
  const drawnFrom = form.get('drawn_from') ?? undefined;
  const limit = { places, isReadOnly: form.get(RIGHTS_FIELD) === 'read', until: until ?? null, drawnFrom };
  return problem ? { ...limit, places: places ?? ticked, problem, lastDay } : limit;
}

/** Returns null for an empty field, and undefined for an invalid day. The stored day is valid until it has passed. */
function endOf(lastDay: string, now: number, stored: Date | null = null): Date | null | undefined {
  if (lastDay === '') return null;
  if (stored && stored.getTime() > now && lastDay === lastDayOf(stored)) return stored;
  const start = /^\d{4}-\d\d-\d\d$/.test(lastDay) ? Date.parse(lastDay) : Number.NaN;
  const isAllowed = start > now && start < now + MAX_YEARS * 365 * DAY_MS;
  // Compare the day, because `Date` turns 31 February into a day in March.
  return isAllowed && dayOf(start) === lastDay ? new Date(start + DAY_MS) : undefined;
}

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
const lastDayOf = (until: Date): string => dayOf(until.getTime() - DAY_MS);

/**
 * Returns a function that checks the limit in a form. The function refuses the form if another tab has changed the
 * limit since the form was rendered.
 *
 * @param stored returns the stored limit
 */
export const checkLimit =
  (stored: (ctx: Context) => Parameters<typeof markOf>[0]) =>
  (ctx: Context, { limit }: { readonly limit?: TypedLimit | undefined }) => {
    if (limit === undefined) return { url: ctx.path };
    const isOld = limit.drawnFrom !== undefined && limit.drawnFrom !== markOf(stored(ctx));
    if (isOld) return { status: 409, typed: { limit: undefined }, said: [NOT_LIMITED] };
    return limit.problem === undefined ? undefined : { status: 422 };
  };

/** Returns the ids of the organizations and of their warehouses. */
export const placesIn = (organizations: readonly Organization[]): string[] =>
  organizations.flatMap(({ id, warehouses }) => [id, ...warehouses.map((one) => one.id)]);

/** Returns the organizations to which the limit allows no access. */
export function organizationsOutside(
  organizations: readonly Organization[],
  limit: ConnectionLimit,
): readonly Organization[] {
  const within = new Set(limitAccess(organizations, { ...limit, isReadOnly: false }).map(({ id }) => id));
  return organizations.filter(({ id }) => !within.has(id));
}

/** Returns a text such as `Only Hamburg, Rotterdam, view only, until 31 Dec 2026`. */
export const describeLimit = (
  { places, isReadOnly, until }: AccessLimit & { readonly until?: Date | null | undefined },
  organizations: readonly Organization[],
): Message =>
  message('limit.summary', {
    where: places ? 'some' : 'all',
    places: places ? listed(namesOf(places, organizations)) : '',
    isReadOnly: String(isReadOnly),
    end: until ? 'day' : 'none',
    lastDay: until ? until.getTime() - DAY_MS : 0,
  });

function namesOf(places: readonly string[], organizations: readonly Organization[]): string[] {
  const names = new Map(
    organizations.flatMap(({ id, name, warehouses }) => [
      [id, name] as const,
      ...warehouses.map((one) => [one.id, `${one.name} (${name})`] as const),
    ]),
  );
  return places.flatMap((id) => names.get(id) ?? []);
}

function listed(names: readonly string[]): Message {
  if (names.length === 0) return message('limit.lost-places');
  const more = Math.max(0, names.length - SHOWN_NAMES);
  return message('limit.places', { names: names.slice(0, SHOWN_NAMES).join(', '), more });
}
