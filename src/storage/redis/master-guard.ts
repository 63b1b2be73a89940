/**
 * Prevents this node from using a Redis that may have lost revocations: after a restart, a failover
 * or the restore of a backup, revocations of the last day are repeated before any other command.
 */
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Clock } from '../../base/clock.ts';
import type { ChangeFeed } from '../change-feed.ts';
import type { KnownMasters, MasterPosition } from '../known-masters.ts';
import { StorageUnavailable } from '../storage-unavailable.ts';
import type { TokenStore } from '../token-store.ts';
import type { RedisGuard, RedisInfo } from './guarded-connectors.ts';
import { connectRedis, mastersOf, reply } from './redis.ts';
import { createRedisStore } from './store.ts';

type EndsTarget = Pick<TokenStore, 'endAuthorization' | 'removeKept'>;

/** Repeats recorded revocations; only one node does so at a time. */
export interface EndsRepeater {
  /** @returns false while another node has the turn. */
  takeTurn(): Promise<boolean>;
  /** Repeats the last day's revocations. @returns how many exist, and how many had been undone. */
  repeat(target: EndsTarget): Promise<{ readonly looked: number; readonly ended: number }>;
  endTurn(): Promise<void>;
}

interface MasterGuard extends RedisGuard {
  /**
   * Resolves when the masters that this node currently reaches may be used.
   *
   * @throws StorageUnavailable if Redis or PostgreSQL is unavailable.
   */
  verify(): Promise<void>;
  /** Checks the masters of this client every second: not every replacement breaks a connection. */
  watch(redis: Redis | Cluster): void;
}

const CHECK_INTERVAL_MS = 1_000;
/** The pause between two attempts to get the turn that another node has. */
const TURN_PAUSE_MS = 100;
/** Replication offsets are stored in PostgreSQL after this many checks. */
const CHECKS_PER_OFFSET_WRITE = 10;
/** How long a node does not return to a master that was replaced. */
const REPLACED_PAUSE_MS = 5_000;

interface Master extends MasterPosition {
  readonly redis: Redis;
  /** False if Redis reports no replication id, so that its run id is used. */
  readonly hasReplicationId: boolean;
  /** The replication id that this server had before it was promoted to master. */
  readonly formerId: string | undefined;
}

export function createMasterGuard(parts: {
  /** Creates a client whose connections are not guarded. */
  readonly connect: () => Redis | Cluster;
  readonly known: KnownMasters;
  readonly repeater: EndsRepeater;
  readonly changes: Pick<ChangeFeed, 'isLive' | 'onChange'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** @param revived the number of recorded revocations that were undone in Redis */
  readonly onRepeat: (revived: number) => void;
}): MasterGuard {
  const { connect, known, repeater, changes, clock, log, onRepeat } = parts;
  /** The highest offset of each master that may be used, by replication id. */
  const ready = new Map<string, number>();
  /** The replication id of the master behind each open connection. */
  const connected = new Map<Socket, string>();
  /** When each master was replaced, by replication id and the clock of `performance.now()`. */
  const replaced = new Map<string, number>();
  const closing = new AbortController();
  let reason: string | undefined = 'Redis has not been checked yet';
  let inProgress: Promise<void> | undefined;
  let isInUse = false;
  let isRunIdReported = false;
  // The requested lists are numbered, because an older list may arrive later than a newer one.
  let lastRequested = 0;
  let lastAdopted = 0;

  /** Loads the usable masters from PostgreSQL, and removes the masters that were replaced. */
  async function refresh(): Promise<readonly MasterPosition[]> {
    lastRequested += 1;
    const number = lastRequested;
    const list = await known.listReady();
    if (number < lastAdopted) return list;
    lastAdopted = number;
    const ids = new Set(list.map(({ id }) => id));
    for (const id of [...ready.keys()]) {
      if (ids.has(id)) continue;
      ready.delete(id);
      replaced.set(id, performance.now());
    }
    for (const { id, offset } of list) ready.set(id, Math.max(offset, ready.get(id) ?? 0));
    return list;
  }

  const isReady = ({ id, offset }: MasterPosition, floor: ReadonlyMap<string, number>): boolean =>
    offset >= (floor.get(id) ?? Number.POSITIVE_INFINITY);

  async function verifyNow(): Promise<void> {
    const probe = connect();
    let hasTurn = false;
    try {
      await connectRedis(probe);
      while (!closing.signal.aborted) {
        await refresh();
        // Copy the offsets before asking the masters, because they grow while the masters answer.
        const floor = new Map(ready);
        const { masters, isComplete } = await findMasters(probe);
        if (masters.length === 0) throw new Error('no master answers');
        if (!isRunIdReported && masters.some((master) => !master.hasReplicationId)) {
          isRunIdReported = true;
          log.warn(
            'Redis reports no replication id (master_replid of INFO): a restart is recognized by ' +
              'the run id; after a failover without a new run id, run `revoke --recorded`',
          );
        }
        const unknown = masters.filter((master) => !isReady(master, floor));
        if (unknown.length === 0) return;
        requireNotReplaced(unknown);
        if (hasTurn) {
          await repeatOn(unknown, { probe, masters, isComplete });
        } else {
          hasTurn = await repeater.takeTurn();
          if (hasTurn) continue;
          reason =
            'another node is repeating the revocations of the last 24 hours on a Redis that may ' + 'have lost some';
          await delay(TURN_PAUSE_MS, undefined, { signal: closing.signal });
        }
      }
    } finally {
      probe.disconnect();
      if (hasTurn) await repeater.endTurn().catch(() => {});
    }
  }

  /** If two masters answer, use only the newer one: nodes would otherwise switch back and forth. */
  function requireNotReplaced(masters: readonly Master[]): void {
    for (const { id } of masters) {
      const since = replaced.get(id);
      if (since === undefined) continue;
      if (performance.now() - since < REPLACED_PAUSE_MS) {
        throw new Error('this Redis has just been replaced by another one');
      }
      replaced.delete(id);
    }
  }

  async function repeatOn(
    unknown: readonly Master[],
    { probe, masters, isComplete }: { probe: Redis | Cluster; masters: readonly Master[]; isComplete: boolean },
  ): Promise<void> {
    reason = 'the revocations of the last 24 hours are being repeated on a Redis that may have lost some';
    const isFirst = ready.size === 0 && replaced.size === 0;
    await known.startRepeat(unknown, {
      former: unknown.flatMap(({ formerId }) => formerId ?? []),
      // If a master of the Cluster did not answer, it may or may not have been replaced.
      current: isComplete ? masters.map(({ id }) => id) : null,
    });
    const began = performance.now();
    const { looked, ended } = await repeater.repeat(targetOn(unknown, clock));
    const after = (await findMasters(probe)).masters;
    const same = unknown.filter(({ id, offset }) =>
      after.some((master) => master.id === id && master.offset >= offset),
    );
    await known.finishRepeat(same.map(({ id }) => id));
    lastRequested += 1;
    lastAdopted = lastRequested;
    for (const { id, offset } of same) ready.set(id, offset);
    onRepeat(ended);
    const seconds = (performance.now() - began) / 1_000;
    const details = { recorded: looked, revived: ended, seconds, masters: same.length };
    if (isFirst) log.info(details, 'repeated the revocations of the last 24 hours on a newly found Redis');
    else log.warn(details, 'another Redis answers: repeated the revocations of the last 24 hours on it');
  }

  const verify = (): Promise<void> => {
    inProgress ??= verifyNow()
      .then(() => {
        reason = undefined;
      })
      .catch((error: unknown) => {
        const failure = error instanceof StorageUnavailable ? error : new StorageUnavailable('redis', error);
        reason = `it is unknown whether this Redis has lost revocations: ${failure.reason}`;
        throw failure;
      })
      .finally(() => {
        inProgress = undefined;
      });
    return inProgress;
  };

  /** Disconnects from each master that is no longer ready. */
  async function check(redis: Redis | Cluster): Promise<void> {
    const floor = new Map(ready);
    const inUse = mastersOf(redis).filter(({ status }) => status === 'ready');
    await Promise.all(
      inUse.map(async (master) => {
        const position = await readInfo(master).then(positionFrom, () => undefined);
        // If the master does not answer, its commands fail and ioredis replaces the connection.
        if (position === undefined) return;
        if (typeof position === 'object' && ready.has(position.id) && isReady(position, floor)) {
          ready.set(position.id, Math.max(position.offset, ready.get(position.id) ?? 0));
        } else {
          master.disconnect(true);
        }
      }),
    );
  }

  function watch(redis: Redis | Cluster): void {
    isInUse = true;
    let isChecking = false;
    let checks = 0;

    async function checkOnce(): Promise<void> {
      checks += 1;
      if (!changes.isLive) await refresh();
      await check(redis);
      if (checks % CHECKS_PER_OFFSET_WRITE !== 0) return;
      await known.keepOffsets([...ready].map(([id, offset]) => ({ id, offset })));
    }

    const timer = setInterval(() => {
      // A Cluster connects to a master only for a command, and `ping` sends none for this reason.
      if (reason !== undefined) verify().catch(() => {});
      if (isChecking) return;
      isChecking = true;
      // Ignore failures: while PostgreSQL is unavailable, the last list of masters stays in force.
      checkOnce()
        .catch(() => {})
        .finally(() => {
          isChecking = false;
        });
    }, CHECK_INTERVAL_MS).unref();
    closing.signal.addEventListener('abort', () => clearInterval(timer));
    changes.onChange((topic) => {
      if (closing.signal.aborted || (topic !== 'redis-masters' && topic !== 'everything')) return;
      refresh()
        .then(() => check(redis))
        .catch(() => {});
    });
  }

  return {
    accepts(info, connection) {
      const position = positionFrom(info);
      if (typeof position === 'object' && isReady(position, ready)) {
        ready.set(position.id, position.offset);
        connected.set(connection, position.id);
        connection.once('close', () => connected.delete(connection));
        reason = undefined;
        return true;
      }
      if (isInUse && !closing.signal.aborted) verify().catch(() => {});
      return false;
    },
    get reason() {
      return reason;
    },
    usesOnly: (ids) => [...connected.values()].every((id) => ids.includes(id)),
    verify,
    watch,
    close: () => closing.abort(),
  };
}

/** Parses the INFO of one section into its fields. */
const infoFrom = (text: string): RedisInfo =>
  Object.fromEntries(
    text.split('\r\n').map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );

/**
 * A managed service may hide fields of INFO. Without a replication id, the run id identifies the
 * server: it is a new one after each start, but a proxy of the service may always show the same one.
 */
function positionFrom(info: RedisInfo): MasterPosition | 'replica' | 'unidentified' {
  if ((info.role ?? 'master') !== 'master') return 'replica';
  const id = info.master_replid || info.run_id;
  if (!id) return 'unidentified';
  return { id, offset: Number(info.master_repl_offset ?? 0) };
}

async function readInfo(master: Redis): Promise<RedisInfo> {
  const info = infoFrom(await reply(master.info('replication')));
  if (info.master_replid) return info;
  return { ...infoFrom(await reply(master.info('server'))), ...info };
}

/** @returns `isComplete` is false if a master did not answer or has become a replica. */
async function findMasters(
  probe: Redis | Cluster,
): Promise<{ readonly masters: readonly Master[]; readonly isComplete: boolean }> {
  const asked = mastersOf(probe).map(async (redis): Promise<Master> => {
    const info = await readInfo(redis);
    const position = positionFrom(info);
    if (position === 'replica') throw new Error('this Redis is a replica, not a master');
    if (position === 'unidentified') throw new Error('INFO shows neither master_replid nor run_id');
    const hasReplicationId = Boolean(info.master_replid);
    return { ...position, redis, formerId: info.master_replid2, hasReplicationId };
  });
  const answers = await Promise.allSettled(asked);
  const masters = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  const failed = answers.find((answer) => answer.status === 'rejected');
  if (failed && !(probe instanceof Cluster)) throw failed.reason;
  return { masters, isComplete: failed === undefined };
}

/** Revokes on each of these masters, because in a Cluster only one of them has the key. */
function targetOn(masters: readonly Master[], clock: Clock): EndsTarget {
  const stores = masters.map(({ redis }) => createRedisStore({ redis, clock }));
  const onEach = async (end: (store: EndsTarget) => Promise<boolean>): Promise<boolean> => {
    const ended = await Promise.all(stores.map((store) => end(store).catch(keptElsewhere)));
    return ended.includes(true);
  };
  return {
    endAuthorization: (id) => onEach((store) => store.endAuthorization(id)),
    removeKept: (kind, key) => onEach((store) => store.removeKept(kind, key)),
  };
}

/** Ignores that another master of the Cluster has the key: revocations are repeated there, too. */
function keptElsewhere(error: unknown): false {
  if (error instanceof Error && /^(MOVED|ASK) /.test(error.message)) return false;
  throw error;
}
