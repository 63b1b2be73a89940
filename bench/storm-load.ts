/** Many live APIs in this process, called at a constant rate while memberships change. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { Role } from '../modules/node/src/caller.ts';
import { createIntrospectionEndpoint } from '../modules/node/src/introspection-endpoint.ts';
import { type Identified, type Introspector, introspectorOver } from '../modules/node/src/introspector.ts';
import { bearer } from '../modules/node/test/stand-in.ts';
import { processorTime, waitedForCore } from './processor.ts';
import type { StormSetup } from './storm-setup.ts';

/** Number of users that each API serves. */
export const PEOPLE_PER_API = 100;
/** Number of APIs that serve each user. */
export const APIS_PER_PERSON = 4;
export const CHANGES_PER_SECOND = 10;

/** Pause between two looks for calls that are due. */
const TICK_MS = 1;
/** The module caches no answers in the first seconds of a stream. */
const AHEAD_MS = 6_000;
/** How often the caches are filled before the run is given up. */
const MAX_ROUNDS = 10;
/** Number of parallel calls while the caches are filled. */
const AT_ONCE = 32;

/** What happened in one part of the run. The latency of a call belongs to the phase in which it was due. */
export interface Phase {
  readonly name: string;
  readonly startedAt: number;
  endedAt: number;
  /** Microseconds from the due moment of each call to its answer. */
  readonly latencies: RecordableHistogram;
  /** Introspection requests, in each second since `startedAt`. */
  readonly questions: number[];
  /** Calls that were answered 503. */
  unavailable: number;
  firstUnavailableAt: number | undefined;
  lastUnavailableAt: number;
  /** Calls that were answered 401. */
  refused: number;
  readonly changes: Change[];
  /** Failures of introspections, streams and changes, by their message. */
  readonly failures: Map<string, number>;
  /** The longest turn of this process's event loop, in which no call is sent and no answer read. */
  longestTurnMs: number;
  /** Microseconds of processor time of this process, and for which it waited for a core. */
  used: { readonly cpu: number; readonly waited: number };
}

export interface Change {
  readonly role: Role;
  /** When the transaction was begun, which is before the change is in force. */
  readonly begunAt: number;
  /** When PostgreSQL's answer to the commit was read, which is after the change is in force. */
  committedAt: number | undefined;
  /** When the last answer with another role was given. */
  lastOldAt: number | undefined;
  hasFailed?: true;
}

interface Person {
  readonly accountId: string;
  readonly organizationId: string;
  readonly request: ReturnType<typeof bearer>;
  change: Change;
}

interface Pair {
  readonly api: Introspector;
  readonly person: Person;
}

export type StormLoad = Awaited<ReturnType<typeof startStormLoad>>;

/** Resolves when every API has a stream, and the answers about all of its users in its cache. */
export async function startStormLoad(
  { issuer, resourceServer, people, memberships }: StormSetup,
  { processes, callsPerSecond }: { readonly processes: number; readonly callsPerSecond: number },
) {
  let ahead = 0;
  let phase = newPhase('warm-up');

  const counted: typeof createIntrospectionEndpoint = (options) => {
    const endpoint = createIntrospectionEndpoint(options);
    return {
      ...endpoint,
      ask(token, deadline) {
        const second = Math.floor((performance.now() - phase.startedAt) / 1_000);
        phase.questions[second] = (phase.questions[second] ?? 0) + 1;
        return endpoint.ask(token, deadline);
      },
    };
  };
  const apis = Array.from({ length: processes }, () =>
    introspectorOver(counted, {
      issuer,
      clientId: resourceServer.id,
      clientSecret: resourceServer.secret ?? '',
      live: true,
      clock: () => Date.now() + ahead,
      onFailure({ message }) {
        fail(phase, message);
      },
    }),
  );

  const organizationOf = new Map(
    (
      await people.database.query<{ account_id: string; organization_id: string }>(
        'SELECT account_id, organization_id FROM organization_memberships WHERE account_id = ANY($1)',
        [people.accountIds],
      )
    ).map((row) => [row.account_id, row.organization_id]),
  );
  const all = people.accountIds.map((accountId, index): Person => {
    const request = bearer(people.tokens[index] ?? '');
    const organizationId = organizationOf.get(accountId) ?? '';
    return {
      accountId,
      organizationId,
      request,
      change: newChange('member'),
    };
  });
  const stride = all.length / processes;
  const pairs: Pair[] = apis.flatMap((api, index) =>
    Array.from({ length: PEOPLE_PER_API }, (_, offset) => {
      const person = all[(index * stride + offset) % all.length];
      if (!person) throw new Error('no users');
      return { api, person };
    }),
  );

  /** Calls each API once for each of its users. @returns how many calls were introspected */
  async function callAll(): Promise<number> {
    let asked = 0;
    let next = 0;
    async function callSome(): Promise<void> {
      for (;;) {
        const pair = pairs[next++];
        if (!pair) return;
        const { decidedBy, caller } = await pair.api.identify(pair.person.request);
        if (decidedBy !== 'memory' || !caller) asked += 1;
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, callSome));
    return asked;
  }
  for (const api of apis) {
    const request = all[0]?.request ?? bearer('');
    while ((await api.identify(request)).caller?.signal?.aborted !== false) await delay(50);
  }
  for (let round = 1; (await callAll()) > 0; round += 1) {
    if (round === MAX_ROUNDS) throw new Error('this machine is too busy: streams are lost');
    ahead += AHEAD_MS;
  }

  function answered({ person, due }: { person: Person; due: number }, of: Phase, by: Identified) {
    const now = performance.now();
    of.latencies.record(Math.max(1, Math.round((now - due) * 1_000)));
    const { caller, refusal } = by;
    if (caller) {
      const role = caller.organizations[0]?.role;
      const { change } = person;
      if (role !== change.role && !change.hasFailed) change.lastOldAt = now;
    } else if (refusal?.status === 401) phase.refused += 1;
    else {
      // In the phase of the answer: a fault also fails calls that began before it.
      phase.unavailable += 1;
      phase.firstUnavailableAt ??= now;
      phase.lastUnavailableAt = now;
    }
  }

  const startedAt = performance.now();
  let calls = 0;
  let lastTurn = startedAt;
  function callDue(): void {
    const now = performance.now();
    phase.longestTurnMs = Math.max(phase.longestTurnMs, now - lastTurn);
    lastTurn = now;
    for (;;) {
      const due = startedAt + (calls * 1_000) / callsPerSecond;
      if (due > now) return;
      calls += 1;
      const pair = pairs[Math.floor(Math.random() * pairs.length)];
      if (!pair) return;
      const of = phase;
      void pair.api.identify(pair.person.request).then((by) => answered({ person: pair.person, due }, of, by));
    }
  }

  let changed = 0;
  async function changeNext(): Promise<void> {
    // Users of different APIs in turn. Each user changes rarely, so there is one replaced role.
    const person = all[(changed * (PEOPLE_PER_API + 1)) % all.length];
    changed += 1;
    if (!person) return;
    const { accountId, organizationId } = person;
    const role = person.change.role === 'member' ? 'viewer' : 'member';
    const change = newChange(role);
    person.change = change;
    const of = phase;
    of.changes.push(change);
    try {
      await memberships.setRole({ accountId }, organizationId, role);
      change.committedAt = performance.now();
    } catch (error) {
      // It may be in force or not.
      change.hasFailed = true;
      fail(of, `a change failed: ${error}`);
    }
  }
  const timer = setInterval(() => {
    callDue();
    const dueChanges = ((performance.now() - startedAt) * CHANGES_PER_SECOND) / 1_000;
    while (changed < dueChanges) {
      void changeNext();
    }
  }, TICK_MS);

  return {
    /** Starts the next phase. @returns the phase, which lasts until the next call or the end */
    begin(name: string): Phase {
      end(phase);
      phase = newPhase(name);
      return phase;
    },

    async stop(): Promise<void> {
      end(phase);
      clearInterval(timer);
      // The last calls and changes are still in progress.
      await delay(2_000);
      for (const api of apis) api.close();
    },
  };
}

function fail({ failures }: Phase, message: string): void {
  failures.set(message, (failures.get(message) ?? 0) + 1);
}

const usedSoFar = () => ({ cpu: processorTime(process.pid), waited: waitedForCore() });

function end(phase: Phase): void {
  const { cpu, waited } = usedSoFar();
  phase.endedAt = performance.now();
  phase.used = { cpu: cpu - phase.used.cpu, waited: waited - phase.used.waited };
}

const newChange = (role: Role): Change => ({
  role,
  begunAt: performance.now(),
  committedAt: undefined,
  lastOldAt: undefined,
});

const newPhase = (name: string): Phase => ({
  name,
  startedAt: performance.now(),
  endedAt: Number.NaN,
  latencies: createHistogram(),
  questions: [],
  unavailable: 0,
  firstUnavailableAt: undefined,
  lastUnavailableAt: 0,
  refused: 0,
  changes: [],
  failures: new Map(),
  longestTurnMs: 0,
  used: usedSoFar(),
});
