/** How an operator ends connections: as the person would, many of them, and honest about a failure. */
import { systemClock } from '../clock.ts';
import { createDisconnections } from '../provider/disconnections.ts';
import { createGrants } from '../provider/grants.ts';
import { Refusal } from '../refusal.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { Registries } from './registries.ts';

export interface EndedConnection {
  readonly accountId: string;
  readonly clientId: string;
  /** Of the client, as the log names it. */
  readonly name: string;
}

/** Connections that are ended at the same time. */
const BATCH = 8;
const PAGE = 1_000;

/** The grants of the token store, to be ended. @throws StorageUnavailable */
export const grantsOf = async (registries: Registries) =>
  createGrants({
    store: await registries.tokenStore(),
    // A command looks at a value by itself and asks for the grant.
    refreshTokens: { nameOf: () => undefined },
    clock: systemClock,
  });

/**
 * @returns how many grants ended with them.
 * @throws Refusal `revocation_unfinished` where a store fails in between: what it counts is ended.
 */
export async function endConnections(
  registries: Registries,
  connections: readonly EndedConnection[],
): Promise<number> {
  const { end } = createDisconnections({ ...registries, grants: await grantsOf(registries) });
  let grants = 0;
  let ended = 0;
  for (let start = 0; start < connections.length; start += BATCH) {
    const batch = connections.slice(start, start + BATCH);
    const results = await Promise.allSettled(
      batch.map((connection) => end(connection.accountId, connection)),
    );
    for (const result of results) {
      if (result.status === 'fulfilled') {
        ended += 1;
        grants += result.value;
      }
    }
    const failed = results.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw unfinished(ended, connections.length, failed.reason);
  }
  return grants;
}

/** Everybody who has the client connected. */
export async function peopleOf({ connections }: Registries, clientId: string): Promise<string[]> {
  const people: string[] = [];
  for (;;) {
    const after = people.at(-1);
    const page = await connections.accountsOf(clientId, {
      ...(after !== undefined && { after }),
      limit: PAGE,
    });
    people.push(...page);
    if (page.length < PAGE) return people;
  }
}

function unfinished(ended: number, all: number, cause: unknown): unknown {
  if (!(cause instanceof StorageUnavailable)) return cause;
  return new Refusal(
    'revocation_unfinished',
    `Only ${ended} of ${all} connections are ended for certain: a store does not answer ` +
      `(${cause.reason}).`,
    'Run the command again once it answers.',
    { cause },
  );
}
