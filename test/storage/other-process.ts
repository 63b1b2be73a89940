/** A second process that opens an embedded database and takes commands from a test. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { openDatabase } from '../../src/storage/database.ts';
import type { Sharing } from '../../src/storage/embedded/postgres.ts';
import { hurryTime } from '../support/clock.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

export interface OtherProcess {
  /** `opened`, or the code of the error if opening was refused. */
  readonly outcome: string;
  /** Returns the rows of a statement, or the code of its error. */
  query(text: string): Promise<unknown>;
  /** Inserts rows one after another. @returns the acknowledged ones, once there are `count`. */
  write(count: number): Promise<readonly string[]>;
  /** Begins a transaction, inserts a row, and leaves the transaction open. */
  beginTransaction(): Promise<unknown>;
  /** Returns the most resident memory that the process has had so far. */
  peakMemoryMiB(): Promise<number>;
  close(): Promise<void>;
  /** Sends SIGKILL, whatever the process is doing. */
  kill(): Promise<void>;
}

type Order = { readonly do: 'query'; readonly text: string } | { readonly do: 'write' | 'begin' | 'memory' | 'close' };

const INSERT = "INSERT INTO organizations (id, name, created_at) VALUES ($1, '', '2030-01-01')";

/** Resolves when the process has opened the database or was refused. */
export async function startOtherProcess(dataDirectory: string, sharing: Sharing): Promise<OtherProcess> {
  const child = fork(import.meta.filename, [dataDirectory, sharing], { execArgv: [] });
  const exited = once(child, 'exit');
  const answer = async (): Promise<unknown> => {
    const ended = exited.then(() => Promise.reject(new Error('the other process ended')));
    const [message] = await Promise.race([once(child, 'message'), ended]);
    return message;
  };
  const ask = (order: Order): Promise<unknown> => {
    const answered = answer();
    child.send(order);
    return answered;
  };
  const outcome = String(await answer());
  return {
    outcome,
    query: (text) => ask({ do: 'query', text }),
    beginTransaction: () => ask({ do: 'begin' }),
    peakMemoryMiB: async () => Number(await ask({ do: 'memory' })),
    async write(count) {
      const acknowledged: string[] = [String(await ask({ do: 'write' }))];
      await new Promise<void>((resolve) => {
        child.on('message', (id) => {
          acknowledged.push(String(id));
          if (acknowledged.length === count) resolve();
        });
      });
      return acknowledged;
    },
    async close() {
      if (child.connected) child.send({ do: 'close' } satisfies Order);
      await exited;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** `resourceUsage` would also count the memory of the process that forked this one. */
function peakMemoryMiB(): number {
  const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

async function main(dataDirectory: string, sharing: Sharing): Promise<void> {
  const say = (message: unknown): void => void process.send?.(message);
  const failed = (error: unknown): string =>
    error instanceof Error && 'code' in error ? String(error.code) : String(error);
  // Let the time run faster, because a second process waits long before it is refused.
  const restoreTime = hurryTime();
  try {
    const database = await openDatabase({ dataDirectory, sharing, timeoutFactor: TIMEOUT_FACTOR });
    restoreTime();
    process.on('message', async (order: Order) => {
      if (order.do === 'query') say(await database.query(order.text).catch(failed));
      if (order.do === 'memory') say(peakMemoryMiB());
      if (order.do === 'begin') {
        const held = database.transaction(async (tx) => {
          await tx.query(INSERT, [`unfinished ${process.pid}`]);
          say('begun');
          await new Promise(() => {});
        });
        await held;
      }
      for (let number = 0; order.do === 'write'; number += 1) {
        const id = `${process.pid} ${number}`;
        await database.query(INSERT, [id]);
        say(id);
      }
      if (order.do === 'close') await database.close().then(() => process.exit());
    });
    say('opened');
  } catch (error) {
    say(failed(error));
    process.disconnect();
  }
}

if (import.meta.main) {
  const [, , dataDirectory = '', sharing] = process.argv;
  await main(dataDirectory, sharing === 'own' ? 'own' : 'share');
}
