/**
 * Reads which users, clients and API keys have access to an organization, for its owners and admins. Each statement
 * reads a limited number of rows, so it is fast even for a large organization.
 */
import { type AccessLimit, limitAccess } from '../accounts/access/access-limit.ts';
import { isAdmin, type Right, type Role, rightsBy, type Warehouse } from '../accounts/access/reach.ts';
import { OPEN_POLICY, type OrganizationPolicy } from '../accounts/organizations/organization-policy.ts';
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { createTurns } from '../storage/account-turns.ts';
import type { Database } from '../storage/queries.ts';
import { hasEndedAt } from './consents.ts';
import type {
  ConnectingPerson,
  Reaching,
  ReachingClient,
  ReachingKey,
  ReachingMachine,
  ReachingPerson,
  Step,
} from './reaching.ts';

export type OrganizationReach = ReturnType<typeof createOrganizationReach>;

export type Reach = ReturnType<OrganizationReach['of']>;

/** How many members or machine clients one statement reads. */
const MEMBERS_AT_ONCE = 1_000;
const CLIENTS_AT_ONCE = 100;
/** How many connections of a client are read with their user's name, rights and time of the last use. */
export const MAX_EXAMINED = 50;
export const MAX_COUNTED = 1_000;
/** How many pages may query the database at once in this process. Each page uses one connection of the pool. */
const MAX_READING = 2;

export function createOrganizationReach(parts: { readonly database: Database; readonly clock: Clock }) {
  const { database, clock } = parts;
  const inTurn = createTurns(MAX_READING);
  return {
    /**
     * Runs `work` for a page: one page per account at a time, and two pages in the whole process. Otherwise, users who
     * reload pages could occupy all database connections, which introspection needs.
     *
     * @throws AccountBusy
     */
    forPage: <Result>(accountId: string, work: () => Promise<Result>): Promise<Result> =>
      database.inTurn(accountId, () => inTurn(work)),

    async policyOf(organizationId: string): Promise<OrganizationPolicy> {
      const [policy = OPEN_POLICY] = await database.query<OrganizationPolicy>(
        `SELECT asks_first AS "asksFirst", allows_api_keys AS "allowsApiKeys"
          FROM organizations WHERE id = $1`,
        [organizationId],
      );
      return policy;
    },

    /**
     * @param warehouseId if given, the lists omit all entries of suspended users, and all entries without access to
     * this warehouse, except blocked clients.
     */
    of: (organizationId: string, warehouseId?: string) => createReach({ database, clock, organizationId, warehouseId }),
  };
}

function createReach(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly organizationId: string;
  readonly warehouseId: string | undefined;
}) {
  const { database, clock, organizationId, warehouseId } = parts;
  const place = [organizationId, warehouseId ?? null];
  const isListed = ({ rights }: Reaching): boolean => warehouseId === undefined || rights.length > 0;

  const memberFrom = <Row extends MemberRow>({ stored, held, readable, ...row }: Row) => ({
    ...row,
    rights: rightsBy(row.role, stored),
    warehouses: isAdmin(row.role) ? null : row.role === 'viewer' ? readable : held,
  });

  /**
   * Returns what a credential can access within its limit; undefined if its limit excludes the organization.
   *
   * @param ofAdmins all warehouses, which owners and admins can access; if absent, `held` has the warehouses
   */
  function warehousesWithin({ role, held, limit }: CredentialRow, ofAdmins?: readonly Warehouse[]) {
    const stored = (held ?? [])
      .map(({ id, rights }) => ({ id, name: '', rights: rightsBy(role, rights) }))
      .filter(({ rights }) => rights.length > 0);
    const all = [{ id: organizationId, name: '', role, warehouses: ofAdmins && isAdmin(role) ? ofAdmins : stored }];
    return limitAccess(all, limit)[0];
  }

  /** Returns the rights of a connection or key by the rules of `Access.through`; undefined without access. */
  function rightsWithin(row: CredentialRow) {
    const within = warehousesWithin(row);
    if (!within || warehouseId === undefined) return within && [];
    const rights = within.warehouses.find(({ id }) => id === warehouseId)?.rights ?? [];
    return rights.length > 0 && !row.isSuspended ? rights : undefined;
  }

  /** Returns some connections of each client, the latest used first. @param held SQL join with the column `held` */
  const connectionsOf = (clients: readonly { readonly id: string }[], held: string): Promise<ConnectionRow[]> =>
    database.query<ConnectionRow>(
      `SELECT n.client_id AS "clientId", n.account_id AS "accountId", n.last_used_at AS "lastUsedAt", a.name AS person,
          a.suspended_at IS NOT NULL AS "isSuspended", m.role, h.held, ${limitOf('n')} AS limit
        FROM unnest($3::text[]) AS c (id)
        CROSS JOIN LATERAL (SELECT account_id FROM member_connections
          WHERE organization_id = $1 AND client_id = c.id
          ORDER BY connected_at DESC LIMIT ${MAX_EXAMINED}) latest
        CROSS JOIN LATERAL (SELECT n.* FROM connections n WHERE n.account_id = latest.account_id
          AND n.client_id = c.id AND NOT ${hasEndedAt('$4')} LIMIT 1) n
        CROSS JOIN LATERAL (SELECT * FROM organization_memberships
          WHERE account_id = n.account_id AND organization_id = $1 LIMIT 1) m
        ${ACCOUNT} ${held}
        ORDER BY n.last_used_at DESC NULLS LAST, a.name, a.id`,
      [...place, clients.map(({ id }) => id), new Date(clock())],
    );

  async function readClients(ids: string, value: unknown): Promise<Step<ReachingClient>> {
    const rows = await database.query<ClientRow>(
      `WITH RECURSIVE ${ids}
        SELECT c.id AS at, c.id, c.name, o.name AS "ownerName",
          c.kind, c.suspended_at IS NOT NULL AS "isSuspended", ${BLOCKS},
          coalesce(there.barred_at, b.barred_at) AS "blockedAt", a.name AS "blockedBy",
          d.decided_at AS "decidedAt", by.name AS "decidedBy", d.sentence,
          CASE WHEN b.client_id IS NOT NULL THEN 'blocked'
            WHEN c.kind = 'machine' OR NOT own.asks_first OR d.is_approved THEN 'admitted'
            WHEN d.client_id IS NOT NULL THEN 'declined' ELSE 'waiting' END AS state,
          (SELECT count(*)::integer FROM (SELECT FROM member_connections
            WHERE organization_id = $1 AND client_id = c.id
            ORDER BY connected_at LIMIT ${MAX_COUNTED + 1}) n) AS count,
          (SELECT min(connected_at) FROM member_connections
            WHERE organization_id = $1 AND client_id = c.id) AS "requestedAt"
        FROM ids JOIN clients c ON c.id = ids.client_id
        JOIN organizations own ON own.id = $1
        ${blocksOf('$3')}
        LEFT JOIN client_decisions d ON d.organization_id = $1 AND d.client_id = c.id
        LEFT JOIN accounts by ON by.id = d.decided_by
        LEFT JOIN accounts o ON o.id = c.owner_account_id
        LEFT JOIN accounts a ON a.id = CASE WHEN there.client_id IS NULL THEN b.barred_by ELSE there.barred_by END
        ORDER BY c.id`,
      [organizationId, value, warehouseId ?? null],
    );
    const examined = await connectionsOf(rows, heldWithin('n'));
    const byClient = Map.groupBy(examined, ({ clientId }) => clientId);
    const clients = rows.flatMap((row): ReachingClient[] => {
      if (row.kind === 'machine') return [{ ...row, people: [], rights: [], lastUsedAt: null }];
      const through = (byClient.get(row.id) ?? []).flatMap((one) => {
        const rights = rightsWithin(one);
        return rights ? [{ ...one, rights }] : [];
      });
      const isWhole = row.count <= MAX_EXAMINED;
      const isConnected = through.length > 0 || !isWhole;
      // Include a blocked client even if it has no access, so that it can be unblocked.
      const isBlocked = row.isBlocked || row.isBlockedThere || (warehouseId === undefined && row.blockedIn.length > 0);
      if (!isConnected && !isBlocked) return [];
      if (warehouseId !== undefined && row.state !== 'admitted' && !isBlocked) return [];
      const used = through.flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
      return [
        {
          ...row,
          count: isWhole ? through.length : row.count,
          people: through.map(({ person }) => person),
          rights: isBlocked ? [] : through.flatMap(({ rights }) => rights),
          lastUsedAt: used[0] ?? null,
        },
      ];
    });
    return stepOf(rows, clients, CLIENTS_AT_ONCE);
  }

  return {
    async people(from = '0'): Promise<Step<ReachingPerson>> {
      const rows = await database.query<Omit<ReachingPerson, 'rights'> & MemberRow>(
        `SELECT m.id AS at, a.id, a.name, a.email, m.role, m.created_at AS since,
            a.suspended_at IS NOT NULL AS "isSuspended", s.at AS "lastSignedInAt", r.*
          FROM ${membersAfter('account_id')} ${ACCOUNT}
          LEFT JOIN LATERAL (SELECT at FROM activity
            WHERE account_id = a.id AND action = 'signed_in' AND NOT details ? 'confirmation'
            ORDER BY id DESC LIMIT 1) s ON true
          ${rightsOf('account_id')} ORDER BY m.id`,
        [...place, numberFrom(from)],
      );
      return stepOf(rows, rows.map(memberFrom).filter(isListed), MEMBERS_AT_ONCE);
    },

    async machines(from = '0'): Promise<Step<ReachingMachine>> {
      const rows = await database.query<Omit<ReachingMachine, 'rights'> & MemberRow>(
        `SELECT m.id AS at, c.id, c.name, m.role, c.suspended_at IS NOT NULL AS "isSuspended",
            m.created_at AS since, c.last_used_at AS "lastUsedAt", ${BLOCKS}, r.*
          FROM ${membersAfter('client_id')} JOIN clients c ON c.id = m.client_id
          ${blocksOf('$2')} ${rightsOf('client_id')} ORDER BY m.id`,
        [...place, numberFrom(from)],
      );
      const listed = rows.map(memberFrom).filter(isListed);
      const shown = listed.map((row) => (row.isBlocked || row.isBlockedThere ? { ...row, rights: [] } : row));
      return stepOf(rows, shown, MEMBERS_AT_ONCE);
    },

    /** Lists the unexpired API keys of members, in the order of the members. */
    async apiKeys(from = '0'): Promise<Step<ReachingKey>> {
      const rows = await database.query<KeyRow>(
        `SELECT m.id AS at, k.id, k.name, k.last_four AS "lastFour", a.name AS person,
            k.created_at AS "createdAt", k.last_used_at AS "lastUsedAt",
            a.suspended_at IS NOT NULL AS "isSuspended", m.role, h.held, ${limitOf('k')} AS limit
          FROM ${membersAfter('account_id')} ${ACCOUNT}
          LEFT JOIN api_keys k ON k.account_id = a.id
            AND (k.expires_at IS NULL OR k.expires_at > $4)
          ${heldWithin('k')} ORDER BY m.id, k.id`,
        [...place, numberFrom(from), new Date(clock())],
      );
      const keys = rows.flatMap((row): ReachingKey[] => {
        const { id } = row;
        const rights = id === null ? undefined : rightsWithin(row);
        return id !== null && rights ? [{ ...row, id, rights }] : [];
      });
      return stepOf(rows, keys, MEMBERS_AT_ONCE);
    },

    /** Lists blocked clients and those connected by members, even clients without access. Omits machine clients. */
    async clients(from = ''): Promise<Step<ReachingClient>> {
      const { rows, next } = await readClients(CLIENTS_AFTER, isClientId(from) ? from : '');
      return { rows: rows.filter(({ kind }) => kind !== 'machine'), next };
    },

    async clientsNamed(ids: readonly string[]): Promise<readonly ReachingClient[]> {
      const named = ids.filter(isClientId);
      const clients: ReachingClient[] = [];
      for (let at = 0; at < named.length; at += CLIENTS_AT_ONCE) {
        clients.push(...(await readClients(CLIENTS_NAMED, named.slice(at, at + CLIENTS_AT_ONCE))).rows);
      }
      return clients;
    },

    /**
     * Returns the members who connected the client last, sorted by the client's last use. Also returns the rights that
     * the client has through them, or would have without a policy or block.
     *
     * @param ofAdmins all warehouses of the organization, with the rights of an owner or admin
     */
    async through(clientId: string, ofAdmins: readonly Warehouse[]): Promise<readonly ConnectingPerson[]> {
      const rows = await connectionsOf([{ id: clientId }], STORED);
      return rows.map((row) => ({
        id: row.accountId,
        name: row.person,
        isSuspended: row.isSuspended,
        lastUsedAt: row.lastUsedAt,
        reaches: row.isSuspended ? [] : (warehousesWithin(row, ofAdmins)?.warehouses ?? []),
      }));
    },

    async person(id: string) {
      const [person] = await database.query<Pick<ReachingPerson, 'id' | 'name'>>(
        `SELECT a.id, a.name FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
          WHERE m.organization_id = $1 AND m.account_id = $2`,
        [organizationId, id],
      );
      return person;
    },

    /** Returns at most two active owners. Reads accounts one by one, because a join may read all of them. */
    async owners(): Promise<readonly string[]> {
      const owners = await database.query<{ id: string }>(
        `SELECT account_id AS id FROM organization_memberships m
          WHERE organization_id = $1 AND role = 'owner'
            AND (SELECT suspended_at IS NULL FROM accounts a WHERE a.id = m.account_id)
          ORDER BY m.id LIMIT 2`,
        [organizationId],
      );
      return owners.map(({ id }) => id);
    },
  };
}

/** True for a client that members connect, if it is not blocked and was neither approved nor declined. */
export const isUndecided = ({ kind, state, decidedAt }: ReachingClient): boolean =>
  kind !== 'machine' && state !== 'blocked' && decidedAt === null;

/** Reads a list to its end, one `Step` after another. For short lists only. */
export async function allOf<Row>(read: (from?: string) => Promise<Step<Row>>): Promise<Row[]> {
  const rows: Row[] = [];
  let from: string | undefined;
  do {
    const step: Step<Row> = await read(from);
    rows.push(...step.rows);
    from = step.next;
  } while (from !== undefined);
  return rows;
}

type ClientRow = Omit<ReachingClient, 'people' | 'rights' | 'lastUsedAt'>;

/** `held` counts warehouses with rights. `stored` has the rights in the chosen warehouse. */
interface MemberRow {
  readonly at: string;
  readonly role: Role;
  readonly stored: readonly Right[] | null;
  readonly held: number;
  readonly readable: number;
}

interface CredentialRow {
  readonly role: Role;
  readonly isSuspended: boolean;
  readonly limit: AccessLimit;
  readonly held: readonly { readonly id: string; readonly rights: readonly Right[] | null }[] | null;
}

type ConnectionRow = CredentialRow & Pick<KeyRow, 'person' | 'lastUsedAt'> & { clientId: string; accountId: string };

/** `id` is null for a member without API keys. */
type KeyRow = Omit<ReachingKey, 'id' | 'rights'> & CredentialRow & { readonly id: string | null };

const numberFrom = (from: string): string => (/^\d{1,18}$/.test(from) ? from : '0');

const stepOf = <Row>(read: readonly { at: string }[], rows: readonly Row[], size: number) => ({
  rows,
  next: read.length >= size ? read.at(-1)?.at : undefined,
});

const BLOCKS = `b.client_id IS NOT NULL AS "isBlocked", there.client_id IS NOT NULL AS "isBlockedThere",
  (SELECT coalesce(json_agg(json_build_object('id', w.id, 'name', w.name, 'at', n.barred_at, 'by', a.name)
      ORDER BY w.name, w.id), '[]')
    FROM barred_in_warehouses n JOIN warehouses w ON w.id = n.warehouse_id
    LEFT JOIN accounts a ON a.id = n.barred_by
    WHERE n.client_id = c.id AND w.organization_id = $1 AND w.ended_at IS NULL) AS "blockedIn"`;

const blocksOf = (warehouse: '$2' | '$3'): string =>
  `LEFT JOIN barred_clients b ON b.organization_id = $1 AND b.client_id = c.id
  LEFT JOIN barred_in_warehouses there ON there.warehouse_id = ${warehouse} AND there.client_id = c.id`;

// SQL fragments: $1 is the organization, $2 the chosen warehouse or null, $3 the last id of the previous step.
const membersAfter = (subject: 'account_id' | 'client_id'): string =>
  `(SELECT * FROM organization_memberships
    WHERE organization_id = $1 AND ${subject} IS NOT NULL AND id > $3
    ORDER BY id LIMIT ${MEMBERS_AT_ONCE}) m`;

/** The account `a` of the membership `m`. LIMIT 1 keeps PostgreSQL from reading all accounts. */
const ACCOUNT = `CROSS JOIN LATERAL (SELECT * FROM accounts WHERE id = m.account_id LIMIT 1) a`;

/** The columns `stored`, `held` and `readable` of the membership `m`. */
const rightsOf = (subject: 'account_id' | 'client_id'): string =>
  `CROSS JOIN LATERAL (SELECT min(rights) AS stored, count(*)::integer AS held,
      count(*) FILTER (WHERE 'read' = ANY(rights))::integer AS readable FROM warehouse_rights
    WHERE ${subject} = m.${subject} AND organization_id = $1
      AND ($2::text IS NULL OR warehouse_id = $2)) r`;

/** `held` lists the chosen warehouse or, if none is chosen, the warehouses in the connection's or API key's limit. */
const heldWithin = (limited: 'n' | 'k'): string =>
  `CROSS JOIN LATERAL (SELECT json_agg(json_build_object('id', w.id, 'rights', r.rights)) AS held
    FROM warehouses w
    LEFT JOIN warehouse_rights r ON r.warehouse_id = w.id AND r.account_id = m.account_id
    WHERE w.organization_id = $1 AND w.ended_at IS NULL
      AND w.id = ANY(CASE WHEN $2::text IS NULL THEN ${limited}.limit_places ELSE ARRAY[$2::text] END)) h`;

/** The column `held`: all warehouses with stored rights; none for owners and admins, who need no stored rights. */
const STORED = `CROSS JOIN LATERAL (SELECT json_agg(json_build_object('id', w.id, 'rights', r.rights)) AS held
    FROM warehouse_rights r JOIN warehouses w ON w.id = r.warehouse_id AND w.ended_at IS NULL
    WHERE r.account_id = m.account_id AND r.organization_id = $1 AND m.role NOT IN ('owner', 'admin')
      AND $2::text IS NULL) h`;

const limitOf = (limited: 'n' | 'k'): string =>
  `json_build_object('places', ${limited}.limit_places, 'isReadOnly', ${limited}.limit_read_only)`;

const nextClient = (after: string): string =>
  `(SELECT client_id FROM member_connections WHERE organization_id = $1 AND client_id > ${after}
    ORDER BY client_id LIMIT 1)`;

/** The ids of the clients after `$2`. Jumps in the index from client to client instead of reading all connections. */
const CLIENTS_AFTER = `connected AS (
    SELECT ${nextClient('$2')} AS client_id
    UNION ALL SELECT ${nextClient('connected.client_id')} FROM connected WHERE client_id IS NOT NULL
  ), ids AS (
    SELECT client_id FROM (
      (SELECT client_id FROM connected WHERE client_id IS NOT NULL LIMIT ${CLIENTS_AT_ONCE})
      UNION (SELECT client_id FROM barred_clients WHERE organization_id = $1 AND client_id > $2
        ORDER BY client_id LIMIT ${CLIENTS_AT_ONCE})
      UNION (SELECT client_id FROM barred_in_warehouses n JOIN warehouses w ON w.id = n.warehouse_id
        WHERE w.organization_id = $1 AND client_id > $2 ORDER BY client_id LIMIT ${CLIENTS_AT_ONCE})
    ) all_kinds ORDER BY client_id LIMIT ${CLIENTS_AT_ONCE}
  )`;

const CLIENTS_NAMED = `ids AS (
    SELECT asked.id AS client_id FROM unnest($2::text[]) AS asked (id)
    WHERE EXISTS (SELECT FROM member_connections WHERE organization_id = $1 AND client_id = asked.id)
      OR EXISTS (SELECT FROM barred_clients WHERE organization_id = $1 AND client_id = asked.id)
      OR EXISTS (SELECT FROM organization_memberships WHERE organization_id = $1 AND client_id = asked.id)
      OR EXISTS (SELECT FROM barred_in_warehouses n JOIN warehouses w ON w.id = n.warehouse_id
        WHERE w.organization_id = $1 AND n.client_id = asked.id)
  )`;
