/** Tells systemd when the service is ready and that its event loop still turns (sd_notify(3)). */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from 'pino';

/** Node has no datagram sockets of the Unix kind, so systemd's own program sends the messages. */
const PROGRAM = 'systemd-notify';
/** Messages in each watchdog interval: one may be late without a restart. */
const PER_INTERVAL = 3;

export interface SystemdVariables {
  /** Set for a unit with Type=notify. */
  readonly NOTIFY_SOCKET?: string | undefined;
  /** WatchdogSec= of the unit, in microseconds. */
  readonly WATCHDOG_USEC?: string | undefined;
}

/**
 * Reports readiness, then keeps the watchdog from restarting the service. Does nothing without
 * systemd; a message that cannot be sent is logged.
 */
export async function notifySystemd(
  { NOTIFY_SOCKET: socket, WATCHDOG_USEC: interval }: SystemdVariables,
  log: Pick<Logger, 'warn'>,
): Promise<void> {
  if (!socket) return;
  const send = (message: string): Promise<unknown> =>
    promisify(execFile)(PROGRAM, [message]).catch((err: unknown) =>
      log.warn({ err, message }, 'systemd could not be notified'),
    );
  await send('READY=1');
  const milliseconds = Number(interval ?? 0) / 1_000 / PER_INTERVAL;
  // A blocked event loop does not get here, and systemd starts the service again.
  if (milliseconds > 0) setInterval(() => void send('WATCHDOG=1'), milliseconds).unref();
}
