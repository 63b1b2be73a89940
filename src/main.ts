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
  const service = await startService({ settings, clock: systemClock, log });

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
  // Each of these says by itself what is wrong and what to do; a trace would bury it.
  const isExplained = error instanceof ConfigurationProblems || hasCode(error);
  say(isExplained && error instanceof Error ? error.message : String((error as Error).stack));
  process.exit(1);
}

function hasCode(error: unknown): boolean {
  return error instanceof Error && 'code' in error;
}
