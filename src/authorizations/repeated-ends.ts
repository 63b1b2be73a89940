/** Repeats recorded revocations on a token store that may have lost them. */
import type { Clock } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { EndsRepeater } from '../storage/redis/master-guard.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { RecordedEnd, RecordedTokenEnd, Revocations } from './revocations.ts';

type Recorded = Pick<Revocations, 'latest' | 'machineTokensSince' | 'announceEnds' | 'announceMachineTokens'>;

/** Records per batch: Redis takes a batch in one pipeline, the database its records one by one. */
const BATCH_IN_REDIS = 1_000;
const BATCH_IN_DATABASE = 100;
/** How far the automatic repeat goes back. For an older backup, the operator repeats more. */
const DAY_MS = 86_400_000;

/**
 * Repeats the revocations recorded from `since` on, and notifies every node of still valid tokens.
 *
 * @param onProgress called after each batch with the number of records processed so far
 * @returns the number of records, and how many had a token or authorization that still existed
 */
export async function repeatRecorded(
  {
    store,
    revocations,
  }: {
    readonly store: Pick<TokenStore, 'endAuthorization' | 'removeKept' | 'isInDatabase'>;
    readonly revocations: Recorded;
  },
  since?: Date,
  onProgress?: (looked: number) => unknown,
): Promise<{ readonly looked: number; readonly ended: number }> {
  const limit = store.isInDatabase ? BATCH_IN_DATABASE : BATCH_IN_REDIS;
  let looked = 0;
  let ended = 0;

  async function endEach<Record>(
    pageAfter: (last: Record | undefined) => Promise<readonly Record[]>,
    endIt: (record: Record) => Promise<boolean>,
    announceEnd: (revived: readonly Record[]) => Promise<void>,
  ): Promise<void> {
    let page: readonly Record[];
    let last: Record | undefined;
    do {
      page = await pageAfter(last);
      const existed = await Promise.all(page.map(endIt));
      const revived = page.filter((_, index) => existed[index]);
      if (revived.length > 0) await announceEnd(revived);
      ended += revived.length;
      looked += page.length;
      last = page.at(-1);
      if (page.length > 0) await onProgress?.(looked);
    } while (page.length === limit);
  }

  await endEach<RecordedEnd>(
    (before) => revocations.latest({ limit, since, before }),
    ({ id }) => store.endAuthorization(id),
    (revived) => revocations.announceEnds(revived.map(({ id }) => id)),
  );
  await endEach<RecordedTokenEnd>(
    (last) => revocations.machineTokensSince(since, { limit, after: last?.key }),
    ({ key }) => store.removeKept('machine_token', key),
    (revived) => revocations.announceMachineTokens([...new Set(revived.map((end) => end.clientId))]),
  );
  return { looked, ended };
}

/** Repeats the last day's revocations on a Redis that may have lost some; one node at a time. */
export function createEndsRepeater({
  revocations,
  clock,
}: {
  readonly revocations: Recorded & Pick<Revocations, 'takeTurn' | 'endTurn'>;
  readonly clock: Clock;
}): EndsRepeater {
  const node = randomId('', 16);
  const takeTurn = async (): Promise<boolean> => (await revocations.takeTurn(node)) !== undefined;
  return {
    takeTurn,
    repeat: (target) =>
      repeatRecorded(
        { store: { ...target, isInDatabase: false }, revocations },
        new Date(clock() - DAY_MS),
        async () => {
          // Each batch extends the turn of this node. An expired turn may be another node's now.
          if (!(await takeTurn())) throw new Error('another node has taken over repeating the revocations');
        },
      ),
    endTurn: () => revocations.endTurn(node),
  };
}
