/** Revokes tokens during each fault, and measures whether and how soon an answered revocation is in force. */
import { cpSync, rmSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { ask, askSentinel, untilMaster } from '../test/support/redis-groups.ts';
import type { RedisServer } from '../test/support/redis-server.ts';
import { groupOf, type RedisKind, type Setup, startSetup } from './ends-setup.ts';
import { table } from './table.ts';

/** Tokens that are revoked at the same time in one round. */
const TOKENS_PER_ROUND = 4;
/** How long a fault lasts during which revocations may be answered 503. */
const FAULT_MS = 3_000;
/** The duration of other faults: long enough for the timeouts of the service to pass several times. */
const SLOW_MS = 6_000;
/** The client repeats a revocation this long after a 503. */
const RETRY_MS = 250;
const MAX_RETRIES = 200;
/** Pause between two calls of the API. */
const POLL_MS = 2;
/** An API that accepts a revoked token for longer than this is not watched further. */
const MAX_WATCHED_MS = 5_000;
/** A round is repeated if this process, which runs the nodes and the API, was stalled for longer than this. */
const MAX_STALL_MS = 1_000;
const MAX_REPEATS = 5;

export interface FaultResult {
  readonly fault: string;
  /** Number of revocations that were answered 200. */
  readonly answered: number;
  /** Tokens that are active when the fault has ended, although their revocation was answered 200. */
  readonly activeAgain: number;
  /** For each token, the time from the answer until an API that remembers its callers refuses it. */
  readonly acceptanceMs: number[];
  /** The longest time for which this process was stalled, at most 1,000 unless a token was active again. */
  readonly stalledMs: number;
  /** Number of answers with 503. The client repeats each of these requests. */
  readonly unavailable: number;
}

export interface Fault {
  readonly name: string;
  readonly redis: RedisKind;
  /** True if Redis may lose records, or get back earlier ones. */
  readonly isLossy?: true;
  /** Called before the revocations are sent. @returns a function that ends the fault. */
  begin?(setup: Setup): Promise<() => Promise<unknown>>;
  /** If undefined, the fault lasts until every revocation is answered. */
  readonly durationMs?: number;
  /** Called as soon as the first revocation is answered. @returns a function that ends the fault. */
  afterAnswer?(setup: Setup): Promise<() => Promise<unknown>>;
}

export const FAULTS: readonly Fault[] = [
  { name: 'no fault', redis: 'single' },
  {
    name: 'node killed after its answer',
    redis: 'single',
    async afterAnswer({ lifeline, restartNode }) {
      lifeline.cut();
      return restartNode;
    },
  },
  {
    name: 'table locked',
    redis: 'single',
    durationMs: FAULT_MS,
    async begin({ postgres }) {
      const client = new pg.Client({ connectionString: postgres.url });
      await client.connect();
      await client.query('BEGIN; LOCK TABLE ended_authorizations IN ACCESS EXCLUSIVE MODE');
      return () => client.end();
    },
  },
  {
    name: 'PostgreSQL stopped',
    redis: 'single',
    durationMs: FAULT_MS,
    async begin({ postgres }) {
      postgres.pause();
      return async () => postgres.resume();
    },
  },
  {
    name: 'LISTEN half-open',
    redis: 'single',
    async begin({ links }) {
      links[1]?.silence();
      return async () => {};
    },
  },
  {
    name: 'stream stalled',
    redis: 'single',
    async begin({ stream }) {
      stream.silence();
      return async () => {};
    },
  },
  {
    name: 'PostgreSQL away',
    redis: 'single',
    durationMs: FAULT_MS,
    async begin({ postgres }) {
      await postgres.kill();
      return postgres.restart;
    },
  },
  {
    name: 'Redis restored from a backup',
    redis: 'single',
    isLossy: true,
    async begin({ redis: { master } }) {
      const [, directory] = (await ask(master, 'CONFIG', 'GET', 'dir')) as [string, string];
      const backup = `${directory}-backup`;
      await master.kill();
      cpSync(directory, backup, { recursive: true });
      await master.restart();
      return async () => {
        await master.kill();
        rmSync(directory, { recursive: true });
        cpSync(backup, directory, { recursive: true });
        rmSync(backup, { recursive: true });
        await master.restart();
      };
    },
  },
  {
    name: 'records put back by hand',
    redis: 'single',
    isLossy: true,
    async begin({ redis: { master } }) {
      const records = await recordsOf(master);
      return async () => {
        for (const { key, value } of records) await ask(master, 'SET', key, value, 'EX', '3600');
      };
    },
  },
  {
    name: 'older dump, same replication id',
    redis: 'single',
    isLossy: true,
    async begin({ redis: { master } }) {
      const replicationId = await replicationIdOf(master);
      await ask(master, 'SAVE');
      return async () => {
        // Replaces the data with the file. The process continues, so its replication id stays the same.
        await ask(master, 'DEBUG', 'RELOAD', 'NOSAVE');
        if ((await replicationIdOf(master)) !== replicationId) throw new Error('another replication id');
      };
    },
  },
  {
    name: 'Redis flushed',
    redis: 'single',
    isLossy: true,
    async begin({ redis: { master } }) {
      await ask(master, 'FLUSHALL');
      return async () => {};
    },
  },
  {
    name: 'Redis restarted, no persistence',
    redis: 'volatile',
    isLossy: true,
    async begin({ redis: { master } }) {
      await master.kill();
      await master.restart();
      return async () => {};
    },
  },
  {
    name: 'PostgreSQL slow (2 s)',
    redis: 'single',
    durationMs: SLOW_MS,
    async begin({ links }) {
      for (const link of links) link.delay(2_000);
      return async () => {
        for (const link of links) link.delay(0);
      };
    },
  },
  {
    name: 'planned failover without a pause',
    redis: 'sentinel',
    isLossy: true,
    async begin({ redis }) {
      const { sentinel, replica } = groupOf(redis);
      // Sentinel answers before the failover is done, so the revocations are sent during it.
      await askSentinel(sentinel, 'failover', 'warehouse');
      return async () => {
        await untilMaster(sentinel, replica);
        redis.swap();
        await redis.follow();
        await redis.untilReplicated();
      };
    },
  },
  {
    name: 'master killed with its node',
    redis: 'sentinel',
    isLossy: true,
    async afterAnswer({ lifeline, redis, restartNode }) {
      const { sentinel, replica } = groupOf(redis);
      const { master } = redis;
      lifeline.cut();
      await master.kill();
      return async () => {
        await untilMaster(sentinel, replica);
        redis.swap();
        await master.restart();
        await redis.follow();
        await redis.untilReplicated();
        await restartNode();
      };
    },
  },
];

/** Runs this many rounds of each fault, or only of the faults whose name contains `name`. */
export async function measureEnds(rounds: number, name = ''): Promise<readonly FaultResult[]> {
  const results: FaultResult[] = [];
  for (const kind of ['single', 'volatile', 'sentinel'] as const) {
    const faults = FAULTS.filter((fault) => fault.redis === kind && fault.name.includes(name));
    if (faults.length === 0) continue;
    const setup = await startSetup(kind);
    try {
      for (const fault of faults) {
        const done: FaultResult[] = [];
        for (let round = 0; round < rounds; round += 1) {
          done.push(await untilSteady(fault, () => runRound(setup, fault)));
        }
        results.push(sumOf(done));
      }
    } finally {
      await setup.close();
    }
  }
  return results;
}

export const endsTable = (results: readonly FaultResult[]): string =>
  table(
    ['', 'answered', 'active again', 'accepted for ms: p99', 'longest', 'stalled for ms', '503'],
    results.map(({ fault, answered, activeAgain, acceptanceMs, stalledMs, unavailable }) => {
      const times = acceptanceMs.map(Math.ceil).sort((a, b) => a - b);
      const [p99 = 0, longest = 0] = [times[Math.ceil(times.length * 0.99) - 1], times.at(-1)];
      return [fault, ...[answered, activeAgain, p99, longest, Math.ceil(stalledMs), unavailable].map(String)];
    }),
  );

/** Returns the records of all authorizations and tokens of machines. */
async function recordsOf(server: RedisServer): Promise<readonly { key: string; value: string }[]> {
  const keys = (await ask(server, 'KEYS', 'gh:[mz]:*')) as string[];
  return Promise.all(keys.map(async (key) => ({ key, value: String(await ask(server, 'GET', key)) })));
}

const replicationIdOf = async (server: RedisServer): Promise<string | undefined> =>
  /^master_replid:(\w+)/m.exec(String(await ask(server, 'INFO', 'replication')))?.[1];

const sumOf = (rounds: readonly FaultResult[]): FaultResult =>
  rounds.reduce((sum, round) => ({
    fault: round.fault,
    answered: sum.answered + round.answered,
    activeAgain: sum.activeAgain + round.activeAgain,
    acceptanceMs: [...sum.acceptanceMs, ...round.acceptanceMs],
    stalledMs: Math.max(sum.stalledMs, round.stalledMs),
    unavailable: sum.unavailable + round.unavailable,
  }));

/**
 * Repeats a round in which the process was stalled, because it could neither refuse a token nor measure the time. A
 * round in which a token was active again counts even then.
 */
async function untilSteady(fault: Pick<Fault, 'name'>, run: () => Promise<FaultResult>): Promise<FaultResult> {
  for (let tries = 0; tries <= MAX_REPEATS; tries += 1) {
    const result = await run();
    if (result.stalledMs <= MAX_STALL_MS || result.activeAgain > 0) return result;
  }
  throw new Error(`${fault.name}: the process was stalled for more than ${MAX_STALL_MS} ms in each round`);
}

async function runRound(setup: Setup, fault: Fault): Promise<FaultResult> {
  const result = { fault: fault.name, answered: 0, activeAgain: 0, stalledMs: 0, unavailable: 0 };
  const acceptanceMs: number[] = [];
  const tokens = await setup.rememberedTokens(TOKENS_PER_ROUND);
  const stalls = monitorEventLoopDelay({ resolution: 10 });
  stalls.enable();
  let end = await fault.begin?.(setup);
  const ending = fault.durationMs === undefined ? undefined : delay(fault.durationMs).then(end);
  const answered: string[] = [];
  const watching: Promise<void>[] = [];

  async function watch(token: string): Promise<void> {
    const since = performance.now();
    let accepted = 0;
    while ((await setup.isAccepted(token)) && accepted < MAX_WATCHED_MS) {
      accepted = performance.now() - since;
      await delay(POLL_MS);
    }
    acceptanceMs.push(accepted);
  }

  async function revoke(token: string): Promise<void> {
    for (let tries = 0; tries <= MAX_RETRIES; tries += 1) {
      const status = await setup.revoke(token);
      if (status === 200) {
        answered.push(token);
        watching.push(watch(token));
        return;
      }
      // There was no answer, because the node was killed.
      if (status === undefined) return;
      if (status !== 503) throw new Error(`a revocation was answered ${status}`);
      result.unavailable += 1;
      await delay(RETRY_MS);
    }
  }

  const revoking = tokens.map(revoke);
  if (fault.afterAnswer) {
    // The last token, of a machine, is often answered first: wait for one of a person.
    await Promise.any(revoking.slice(0, -1));
    end = await fault.afterAnswer(setup);
  }
  await Promise.all(revoking);
  await Promise.all(watching);
  stalls.disable();
  result.stalledMs = stalls.max / 1e6;
  await (ending ?? end?.());
  result.answered = answered.length;
  result.activeAgain = await setup.countActive(answered);
  return { ...result, acceptanceMs };
}
