/** A proxy in front of a real Redis that restricts it as managed services do. */
import { connect, createServer, type Socket } from 'node:net';
import { freePort } from '../support/programs.ts';

export interface ManagedRedis {
  readonly url: string;
  /** Reports these fields of INFO no longer. */
  hide(fields: RegExp): void;
  /** Answers these commands, in capitals, as if Redis did not have them. */
  refuse(commands: RegExp): void;
  close(): Promise<void>;
}

export async function startManagedRedis(target: number): Promise<ManagedRedis> {
  const port = await freePort();
  const open = new Set<Socket>();
  let hidden: RegExp | undefined;
  let refused: RegExp | undefined;

  const server = createServer((client) => {
    const redis = connect(target, '127.0.0.1');
    /** One entry for each answer that the client expects, in order. */
    const expected: ((answer: Buffer) => Buffer)[] = [];
    const own = new Map<(answer: Buffer) => Buffer, Buffer>();

    function answerRefused(): void {
      for (;;) {
        const [next] = expected;
        const answer = next && own.get(next);
        if (!answer) return;
        client.write(answer);
        expected.shift();
      }
    }

    client.on(
      'data',
      eachMessage((message) => {
        const [, , command = ''] = message.toString('latin1').split('\r\n');
        const name = command.toUpperCase();
        const pass = name === 'INFO' ? (answer: Buffer) => restrict(answer, hidden) : unchanged();
        expected.push(pass);
        if (refused?.test(name)) {
          own.set(pass, Buffer.from(`-ERR unknown command '${command}'\r\n`));
          answerRefused();
        } else redis.write(message);
      }),
    );
    redis.on(
      'data',
      eachMessage((answer) => {
        client.write(expected.shift()?.(answer) ?? answer);
        answerRefused();
      }),
    );
    for (const [socket, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => {}).on('close', () => other.destroy());
      socket.on('close', () => open.delete(socket));
    }
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));

  return {
    url: `redis://127.0.0.1:${port}`,
    hide(fields) {
      hidden = fields;
    },
    refuse(commands) {
      refused = commands;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** @returns a new function each time, because each one identifies its answer */
const unchanged = () => (answer: Buffer) => answer;

/** Removes lines from the answer to INFO: a string after a line with its kind and length. */
function restrict(answer: Buffer, hidden: RegExp | undefined): Buffer {
  const [head = '', ...lines] = answer.toString().split('\r\n');
  if (!hidden || !/^[$=]/.test(head)) return answer;
  const text = lines.filter((line) => !hidden.test(line.split(':')[0] ?? '')).join('\r\n');
  const length = Buffer.byteLength(text) - '\r\n'.length;
  return Buffer.from(`${head[0]}${length}\r\n${text}`);
}

/** Calls `use` with each complete message of the Redis protocol. */
function eachMessage(use: (message: Buffer) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (let end = endOf(rest, 0); end !== undefined; end = endOf(rest, 0)) {
      use(rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  };
}

/** Returns where the message that starts at `start` ends; undefined if it is not complete. */
function endOf(bytes: Buffer, start: number): number | undefined {
  const line = bytes.indexOf('\r\n', start);
  if (line < 0) return undefined;
  const kind = bytes.toString('latin1', start, start + 1);
  const size = Number(bytes.toString('latin1', start + 1, line));
  let end: number | undefined = line + 2;
  if ('$=!'.includes(kind) && size >= 0) end += size + 2;
  const parts = '*~>'.includes(kind) ? size : kind === '%' ? 2 * size : 0;
  for (let part = 0; part < parts && end !== undefined; part += 1) end = endOf(bytes, end);
  return end !== undefined && end <= bytes.length ? end : undefined;
}
