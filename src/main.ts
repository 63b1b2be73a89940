/** Starts the service, reloads the settings on SIGHUP, and closes the service on SIGTERM. */
import { closeSync, openSync } from 'node:fs';
import type { Logger } from 'pino';
import { DEMO } from './accounts/demo.ts';
import { systemClock } from './base/clock.ts';
import { environmentOfProcess } from './config/environment.ts';
import { loadSettings } from './config/load.ts';
import { ConfigurationProblems } from './config/problems.ts';
import { describeReload } from './config/reload.ts';
import { createProcessLog } from './host/process-log.ts';
import { notifySystemd } from './host/systemd.ts';
import { type Service, startService } from './service/service.ts';
import { startWithRetry } from './service/start-with-retry.ts';
import { explained, troubleOf } from './service/startup-errors.ts';

/** Maximum time between SIGTERM and the end of the process, in addition to the configured shutdown delay. */
const CLOSE_TIMEOUT_MS = 9_500;

/** EX_CONFIG of sysexits.h: restarting is useless until the settings are corrected. */
const WRONG_SETTINGS = 78;

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

/** Undefined until the settings are loaded. An earlier failure is logged in the default format. */
let log: Logger | undefined;

async function main(): Promise<void> {
  const settings = loadSettings();
  const processLog = createProcessLog(settings.log);
  log = processLog;
  const parts = { settings, loadSettings, clock: systemClock, log };
  const service = await startWithRetry(
    () => startService(parts),
    ({ code, message, remedy }, left) =>
      processLog.warn({ code, left, remedy }, `not started yet, retrying for ${left} s: ${message}`),
  );
  listenToSignals(service, log);
  continueAfterUnexpectedErrors(service, log);
  say(`Gatehouse answers at ${settings.issuer} (operators: ${service.operatorsUrl})`);
  if (service.isSeeded) say(`Demo account: ${DEMO.email}, password ${DEMO.password}`);
  log.info({ issuer: settings.issuer }, 'started');
  await notifySystemd(environmentOfProcess, log);
}

function listenToSignals(service: Service, log: Logger): void {
  let isClosing = false;

  async function close(signal: NodeJS.Signals): Promise<void> {
    if (isClosing) return;
    isClosing = true;
    log.info({ signal }, 'closing');
    setTimeout(() => {
      log.error('not closed in time');
      process.exit(1);
    }, CLOSE_TIMEOUT_MS + service.shutdownDelayMs());
    try {
      await service.leave();
      await service.close();
      process.exit(0);
    } catch (err) {
      log.error({ err }, 'not closed cleanly');
      process.exit(1);
    }
  }

  const { isTTY: readsTerminal } = process.stdin;
  const { isTTY: logsToTerminal } = process.stdout;

  async function hangUp(): Promise<void> {
    if (readsTerminal && !isTerminalOpen()) {
      // Stop logging, because a failed write to the closed terminal would end the process during the shutdown.
      if (logsToTerminal) log.level = 'silent';
      return close('SIGHUP');
    }
    await service.reload().then(
      (reload) => say(describeReload(reload)),
      (error: unknown) => say(`Nothing was reloaded.\n${explained(error)}`),
    );
  }

  process.on('SIGTERM', close).off('SIGTERM', endAtOnce);
  process.on('SIGINT', close).off('SIGINT', endAtOnce);
  process.on('SIGHUP', () => void hangUp()).off('SIGHUP', rememberHangUp);
  if (isHungUp) void hangUp();
}

let isHungUp = false;

/** Postpones a reload that is requested during the start. Without a handler, the signal would end the process. */
function rememberHangUp(): void {
  isHungUp = true;
}

/**
 * Keeps the process running after an error that no code has caught. This is safe, because decisions come from the
 * stores and from caches of at most a minute. An exit would abort all running requests, and a caller who can cause the
 * error could end every node.
 */
function continueAfterUnexpectedErrors(service: Service, log: Logger): void {
  process.on('uncaughtException', (err, origin) => {
    service.metrics.outcomes.failedUnexpectedly();
    log.error({ err, origin }, 'unexpected error outside of requests and jobs');
  });
}

/** Handles a signal during the start, which would have no effect on PID 1 of a container without a handler. */
function endAtOnce(signal: NodeJS.Signals): void {
  process.exit(signal === 'SIGINT' ? 130 : 143);
}

/** False if the terminal was closed, which also sends SIGHUP, but must not cause a reload. */
function isTerminalOpen(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

process.on('SIGTERM', endAtOnce);
process.on('SIGINT', endAtOnce);
process.on('SIGHUP', rememberHangUp);
// If no process reads standard error any more, drop what is written there.
process.stderr.on('error', () => {});
await main().catch((error: unknown) => {
  const why = explained(error);
  say(why);
  log ??= createProcessLog({ level: 'info' });
  const { code } = troubleOf(error) ?? (error as { code?: string });
  log.fatal({ code, problems: (error as { problems?: unknown }).problems }, `not started: ${why}`);
  process.exit(error instanceof ConfigurationProblems ? WRONG_SETTINGS : 1);
});
