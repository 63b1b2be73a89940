/** Start: settings, service, listen; close on SIGTERM. */
import { pino } from 'pino';
import { DEMO } from './accounts/demo.ts';
import { systemClock } from './clock.ts';
import { loadSettings } from './config/load.ts';
import { ConfigurationProblems } from './config/problems.ts';
import { startService } from './service.ts';

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

async function main(): Promise<void> {
  const settings = loadSettings();
  const log = pino({ level: settings.log.level }, pino.destination({ fd: 1, sync: false }));
  const service = await startService({ settings, loadSettings, clock: systemClock, log });

  say(`Gatehouse answers at ${settings.issuer} (operators: ${service.operatorsUrl})`);
  if (service.isSeeded) say(`Demo account: ${DEMO.email}, password ${DEMO.password}`);
  log.info({ issuer: settings.issuer }, 'started');

  let isClosing = false;
  const close = (signal: NodeJS.Signals): void => {
    if (isClosing) return;
    isClosing = true;
    log.info({ signal }, 'closing');
    service.close().then(
      () => process.exit(0),
      (err: unknown) => {
        log.error({ err }, 'not closed cleanly');
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', close);
  process.on('SIGINT', close);
}

try {
  await main();
} catch (error) {
  say(explain(error));
  process.exit(1);
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // What clients are told of a store that is away names neither the store nor the cause.
  if ('error_detail' in error) {
    return `a store does not answer (${error.error_detail}): see that it runs and that its URL is right`;
  }
  // Each of these says by itself what is wrong and what to do; a trace would bury it.
  const isExplained = error instanceof ConfigurationProblems || 'code' in error;
  return isExplained ? error.message : String(error.stack);
}
