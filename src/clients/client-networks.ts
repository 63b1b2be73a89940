/** The networks from which secrets of a client are used, for its owner to see. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { siteOf } from '../base/network-address.ts';
import { expiryJob } from '../storage/cleaning.ts';
import { createLastUsed, type Use } from '../storage/last-used.ts';
import type { Queries } from '../storage/queries.ts';
import type { Client } from './client.ts';
import { hasNetworks, isAllForeignTo } from './client-network-rules.ts';

export interface SeenNetwork {
  /** An IPv4 network of 24 bits, or an IPv6 network of 48 bits. */
  readonly network: string;
  readonly firstSeenAt: Date;
  /** Accurate to a few minutes. */
  readonly lastSeenAt: Date;
  /** True for 30 days, unless the network was first seen in the first week after the client's registration. */
  readonly isNew: boolean;
  /** True if the client is restricted to networks that have no address in common with this network. */
  readonly isRefused: boolean;
}

export type ClientNetworks = ReturnType<typeof createClientNetworks>;

const DAY_MS = 86_400_000;
const FIRST_MS = 7 * DAY_MS;
const NEW_MS = 30 * DAY_MS;
const LIFETIME_MS = 90 * DAY_MS;
/** Maximum number of networks that are stored per client, and that a node records per client in `RECORDED_MS`. */
const MAX_KEPT = 50;
const RECORDED_MS = 300_000;
/** Maximum number of new networks per client in one write, so that a thief cannot displace the old networks at once. */
const MAX_ADDED = 10;

export function createClientNetworks(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
}) {
  const { database, clock, log } = parts;
  /** The networks that this node has recorded, by client. Limited because a thief of a secret may use many networks. */
  let recorded = { since: 0, networks: new Map<string, Set<string>>() };

  async function write(uses: readonly Use[]): Promise<void> {
    const columns = (of: readonly Use[]) => {
      const rows = of.map(({ id, at }) => [...id.split(' '), at] as const);
      return [0, 1, 2].map((column) => rows.map((row) => row[column]));
    };
    const known = await database.query<{ readonly id: string }>(SEE_AGAIN, columns(uses));
    const ids = new Set(known.map(({ id }) => id));
    const fresh = uses.filter(({ id }) => !ids.has(id));
    if (fresh.length > 0) await database.query(ADD, columns(fresh));
  }

  const lastSeen = createLastUsed({ clock, log, writers: { client_network: write } });

  return {
    /** Stores the network only in memory, for a write in the background at most once in five minutes. */
    record(client: Client, address: string): void {
      const network = hasNetworks(client) ? siteOf(address) : undefined;
      if (network === undefined) return;
      const age = clock() - recorded.since;
      // A negative age means that the clock was set back. Start a new period then, too.
      if (age < 0 || age >= RECORDED_MS) recorded = { since: clock(), networks: new Map() };
      const ofClient = recorded.networks.get(client.id) ?? new Set();
      if (!ofClient.has(network) && ofClient.size >= MAX_KEPT) return;
      recorded.networks.set(client.id, ofClient.add(network));
      lastSeen.record('client_network', `${client.id} ${network}`);
    },

    /** Returns the networks that have been written, the latest first use first. */
    async list(client: Client): Promise<SeenNetwork[]> {
      const rows = await database.query<Omit<SeenNetwork, 'isNew' | 'isRefused'>>(LIST, [client.id, MAX_KEPT]);
      return rows.map((row) => {
        const first = row.firstSeenAt.getTime();
        const isNew = first - client.createdAt.getTime() >= FIRST_MS && clock() - first < NEW_MS;
        return { ...row, isNew, isRefused: isAllForeignTo(client, row.network) };
      });
    },

    removeExpired: expiryJob(parts, [{ table: 'client_networks', column: 'last_seen_at' }], LIFETIME_MS),
    flush: lastSeen.flush,
    close: lastSeen.close,
  };
}

/** Locks the rows in the same order on every node, so that two nodes that see the same networks do not deadlock. */
const SEE_AGAIN = `WITH seen AS MATERIALIZED (
    SELECT n.client_id, n.network, seen.at FROM client_networks n
      JOIN unnest($1::text[], $2::text[], $3::timestamptz[]) AS seen (client_id, network, at)
        ON (n.client_id, n.network) = (seen.client_id, seen.network)
      ORDER BY n.client_id, n.network FOR UPDATE OF n
  )
  UPDATE client_networks n SET last_seen_at = greatest(n.last_seen_at, seen.at) FROM seen
  WHERE (n.client_id, n.network) = (seen.client_id, seen.network)
  RETURNING n.client_id || ' ' || n.network AS id`;

/** If there are too many networks, removes those first seen last: the oldest networks are probably the client's own. */
const ADD = `WITH client AS MATERIALIZED (
    SELECT id FROM clients WHERE id = ANY ($1::text[]) ORDER BY id FOR KEY SHARE
  ), fresh AS (
    SELECT seen.*, row_number() OVER (PARTITION BY client_id ORDER BY at DESC, network) AS place
      FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS seen (client_id, network, at)
      JOIN client ON id = client_id
  ), kept AS (
    SELECT n.client_id, n.network, row_number() OVER (PARTITION BY n.client_id ORDER BY n.first_seen_at, n.network) AS place
      FROM client_networks n WHERE n.client_id = ANY (ARRAY(SELECT client_id FROM fresh))
  ), removed AS (
    DELETE FROM client_networks n USING kept
      WHERE (n.client_id, n.network) = (kept.client_id, kept.network) AND kept.place > ${MAX_KEPT} - (
        SELECT least(count(*), ${MAX_ADDED}) FROM fresh WHERE fresh.client_id = kept.client_id)
  )
  INSERT INTO client_networks (client_id, network, first_seen_at, last_seen_at)
    SELECT client_id, network, at, at FROM fresh WHERE place <= ${MAX_ADDED} ORDER BY client_id, network
    ON CONFLICT DO NOTHING`;

const LIST = `SELECT network, first_seen_at AS "firstSeenAt", last_seen_at AS "lastSeenAt" FROM client_networks
  WHERE client_id = $1 ORDER BY first_seen_at DESC, network LIMIT $2`;
