/** Kills a node after each store call of an operation, and checks that it is never partly done. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { repeated } from '../support/repetitions.ts';
import type { TestService } from '../support/service.ts';
import type { CrashWorld } from './crash-world.ts';

/** One try of an operation. */
export interface Attempt {
  /** Sends the request to the node. Rejects unless the answer says that the operation is done. */
  act(): Promise<unknown>;
  /** True if this node sees the operation as done. Rejects if only a part of it is done. */
  isDone(node: TestService): Promise<boolean>;
  /** True if the API that caches its callers sees the operation as done. */
  isDoneAtApi?(): Promise<boolean>;
  /** Retries as a client, user or operator would without an answer. Rejects unless this succeeds. */
  retry(): Promise<unknown>;
  /** Checks further effects of the completed operation. */
  expectDone?(): Promise<unknown>;
}

/** Prepares an attempt at the node that is killed next. */
export type Operation = (world: CrashWorld) => Promise<Attempt>;

/**
 * After how many changes of an operation a node is killed. If an operation makes more, each run draws other ones,
 * evenly spread; `REPEAT=1000` tries each of them.
 */
const KILLS = repeated(1);

/**
 * Repeats the operation, and kills the node after its answer and after calls that may have changed a store: a kill after
 * another call leaves the stores as they were after the change before it.
 *
 * @returns how often the node was killed.
 */
export async function crashAtCalls(world: CrashWorld, operation: Operation): Promise<number> {
  const changes = await crashAt(Number.POSITIVE_INFINITY, world, operation);
  const step = Math.max(1, changes.length / KILLS);
  const chosen = new Set<number>();
  for (let at = Math.random() * (step - 1); at < changes.length; at += step) chosen.add(changes[Math.floor(at)] ?? 1);
  for (const call of chosen) await crashAt(call, world, operation);
  return 1 + chosen.size;
}

async function crashAt(call: number, world: CrashWorld, operation: Operation): Promise<readonly number[]> {
  try {
    return await crashAfter(call, world, operation);
  } catch (error) {
    // Restart, because the next test needs a running node.
    await world.restart();
    const found = error instanceof Error ? error : new Error(String(error));
    found.message = `the node was killed after call ${call}: ${found.message}`;
    throw found;
  }
}

/** @returns which calls of the operation may have changed a store. */
async function crashAfter(call: number, world: CrashWorld, operation: Operation): Promise<readonly number[]> {
  const { lifeline, survivor } = world;
  const { act, isDone, isDoneAtApi, retry, expectDone } = await operation(world);
  // Other nodes and the API receive a change some milliseconds later.
  const expectAgreement = async (nodes: readonly TestService[], wanted: readonly boolean[]): Promise<void> => {
    await eventually(async () => {
      const seen = await Promise.all(nodes.map(isDone));
      if (isDoneAtApi) seen.push(await isDoneAtApi());
      expect(new Set(seen), 'all nodes and the API agree').to.have.property('size', 1);
      expect(seen[0], 'done').to.be.oneOf(wanted);
    });
  };

  lifeline.dieAfter(call);
  const isAnswered = await Promise.race([act().then(() => true), lifeline.death.then(() => false)]);
  const { changes } = lifeline;
  lifeline.cut();
  const allowed = isAnswered ? [true] : [true, false];
  await expectAgreement([survivor], allowed);

  await world.restart();
  for (const node of world.nodes) await node.clean();
  await expectAgreement(world.nodes, allowed);

  if (!isAnswered) await retry();
  await expectAgreement(world.nodes, [true]);
  await expectDone?.();
  return changes;
}
