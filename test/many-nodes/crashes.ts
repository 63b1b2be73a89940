/** Kills a node after each store call of an operation, and checks that it is never partly done. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
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

/** More store calls than any operation makes. */
const MAX_CALLS = 200;

/**
 * Repeats the operation, and kills the node after its first call, its second and so on, and last
 * after its answer.
 *
 * @param every kills only after every nth call, for deployments on which a restart takes long.
 * @returns how often the node was killed.
 */
export async function crashAtEachCall(world: CrashWorld, operation: Operation, every = 1): Promise<number> {
  for (let calls = 1, times = 1; calls <= MAX_CALLS; calls += every, times += 1) {
    try {
      if (await crashAfter(calls, world, operation)) return times;
    } catch (error) {
      // Restart, because the next test needs a running node.
      await world.restart();
      const found = error instanceof Error ? error : new Error(String(error));
      found.message = `the node was killed after call ${calls}: ${found.message}`;
      throw found;
    }
  }
  throw new Error(`not answered within ${MAX_CALLS} calls`);
}

/** @returns whether the operation was answered before the node was killed. */
async function crashAfter(calls: number, world: CrashWorld, operation: Operation): Promise<boolean> {
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

  lifeline.dieAfter(calls);
  const isAnswered = await Promise.race([act().then(() => true), lifeline.death.then(() => false)]);
  lifeline.cut();
  const allowed = isAnswered ? [true] : [true, false];
  if (survivor) await expectAgreement([survivor], allowed);

  await world.restart();
  for (const node of world.nodes) await node.clean();
  await expectAgreement(world.nodes, allowed);

  if (!isAnswered) await retry();
  await expectAgreement(world.nodes, [true]);
  await expectDone?.();
  return isAnswered;
}
