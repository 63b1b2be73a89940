/** Start: settings, then the service in one process or several; reload on SIGHUP, close on SIGTERM. */
import cluster from 'node:cluster';
import { closeSync, openSync } from 'node:fs';
import type { Logger } from 'pino';
import { DEMO } from './accounts/demo.ts';
import { systemClock } from './clock.ts';
import { loadSettings } from './config/load.ts';
import { reloadInWords } from './config/reload.ts';
import { explained } from './explained.ts';
import { createProcessLog } from './host/process-log.ts';
import { type Node, startProcesses } from './processes/supervisor.ts';
import { runWorker } from './processes/worker.ts';
import { startService } from './service.ts';

/** Milliseconds from SIGTERM, beside the shutdown delay, after which nobody is waited for. */
const CLOSE_LIMIT = 9_500;

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

function giveUp(error: unknown): never {
  say(explained(error));
  process.exit(1);
}

async function main(): Promise<void> {
  const settings = loadSettings();
  const log = createProcessLog(settings.log.level);
  const parts = { settings, loadSettings, log };
  const { processes } = settings.server;
  const node =
    processes === 1
      ? await startService({ ...parts, clock: systemClock })
      : await startProcesses({ ...parts, onGivenUp: giveUp });

  listenToSignals(node, log);
  const several = processes === 1 ? '' : `, ${processes} processes`;
  say(`Gatehouse answers at ${settings.issuer} (operators: ${node.operatorsUrl}${several})`);
  if (node.isSeeded) say(`Demo account: ${DEMO.email}, password ${DEMO.password}`);
  log.info({ issuer: settings.issuer, processes }, 'started');
}

function listenToSignals(node: Node, log: Logger): void {
  let isClosing = false;

  async function close(signal: NodeJS.Signals): Promise<void> {
    if (isClosing) return;
    isClosing = true;
    log.info({ signal }, 'closing');
    setTimeout(() => {
      log.error('not closed in time');
      process.exit(1);
    }, CLOSE_LIMIT + node.shutdownDelayMs());
    try {
      await node.leave();
      await node.close();
      process.exit(0);
    } catch (err) {
      log.error({ err }, 'not closed cleanly');
      process.exit(1);
    }
  }

  const { isTTY: readsTerminal } = process.stdin;
  const { isTTY: logsToTerminal } = process.stdout;

  async function hangUp(): Promise<void> {
    if (readsTerminal && !isTerminalThere()) {
      // What is written there now fails, and would end the process half-way.
      if (logsToTerminal) log.level = 'silent';
      return close('SIGHUP');
    }
    await node.reload().then(
      (reload) => say(reloadInWords(reload)),
      (error: unknown) => say(`Nothing was reloaded.\n${explained(error)}`),
    );
  }

  process.on('SIGTERM', close);
  process.on('SIGINT', close);
  process.on('SIGHUP', () => void hangUp());
}

/** A terminal that is closed sends SIGHUP, too: then nobody asks for a reload. */
function isTerminalThere(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

if (cluster.isWorker) runWorker(createProcessLog);
else await main().catch(giveUp);
