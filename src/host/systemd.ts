/** Notifies systemd that the service is ready and that its event loop still runs (sd_notify(3)). */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from 'pino';

/** Node has no Unix datagram sockets, so systemd's own program sends the messages. */
const PROGRAM = 'systemd-notify';
/** Send several messages per watchdog interval, so that a late message causes no restart. */
const MESSAGES_PER_INTERVAL = 3;

/**
 * Reports readiness, then keeps the watchdog from restarting the service. Does nothing without
 * systemd; a message that cannot be sent is logged.
 *
 * @param variables NOTIFY_SOCKET is set for a unit with Type=notify; WATCHDOG_USEC is its WatchdogSec= in microseconds
 */
export async function notifySystemd(
  { NOTIFY_SOCKET: socket, WATCHDOG_USEC: interval }: NodeJS.ProcessEnv,
  log: Pick<Logger, 'warn'>,
): Promise<void> {
  if (!socket) return;
  const send = (message: string): Promise<unknown> =>
    promisify(execFile)(PROGRAM, [message]).catch((err: unknown) =>
      log.warn({ err, message }, 'systemd could not be notified'),
    );
  await send('READY=1');
  const milliseconds = Number(interval ?? 0) / 1_000 / MESSAGES_PER_INTERVAL;
  // A blocked event loop sends no messages, so systemd restarts the service.
  if (milliseconds > 0) setInterval(() => void send('WATCHDOG=1'), milliseconds).unref();
}
