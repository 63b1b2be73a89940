/** The commands that Redis servers receive, as they report them themselves. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';

interface ReceivedCommand {
  /** In lower case. */
  readonly name: string;
  readonly values: readonly string[];
}

/** The service also sends these when no request needs them, so they are not counted. */
const BACKGROUND = /^(cluster|info|ping)$/;

/**
 * Returns the commands that the servers receive while `work` runs, except those inside scripts, which
 * cost no round trip, and those of background work.
 *
 * Reads MONITOR from a socket of its own: a client of ioredis fails if the first command arrives together with
 * the answer to MONITOR.
 */
export async function redisCommands(
  urls: readonly string[],
  work: () => Promise<unknown>,
): Promise<readonly ReceivedCommand[]> {
  const commands: ReceivedCommand[] = [];
  const markers = urls.map((url) => new Redis(url));
  const monitors = urls.map((url) => {
    const { hostname, port } = new URL(url);
    return connect(Number(port), hostname);
  });
  const ended = monitors.map(
    (socket) =>
      new Promise<void>((resolve, reject) => {
        socket.on('error', reject).on('close', () => reject(new Error('Redis closed the connection of MONITOR.')));
        createInterface(socket).on('line', (line) => {
          const [, source, text = ''] = /^\+[\d.]+ \[\d+ (\S+)\] (.*)$/.exec(line) ?? [];
          const [name = '', ...values] = Array.from(text.matchAll(/"((?:[^"\\]|\\.)*)"/g), ([, value = '']) => value);
          const command = { name: name.toLowerCase(), values };
          if (values[0] === END) resolve();
          else if (source !== undefined && source !== 'lua' && !BACKGROUND.test(command.name)) commands.push(command);
        });
      }),
  );
  try {
    await Promise.all(markers.map((marker) => marker.ping()));
    await Promise.all(
      monitors.map((socket) => {
        socket.write('MONITOR\r\n');
        return once(socket, 'data');
      }),
    );
    await work();
    for (const marker of markers) await marker.echo(END);
    await Promise.all(ended);
  } finally {
    for (const socket of monitors) socket.removeAllListeners('close').destroy();
    for (const marker of markers) marker.disconnect();
  }
  return commands;
}

const END = 'the end of what is observed';
