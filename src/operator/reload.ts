/** `operator reload`: makes the local service read its settings again. */
import type { Command } from 'commander';
import { z } from 'zod';
import { Refusal } from '../base/refusal.ts';
import { findKeys, loadSettingsWithoutSecrets } from '../config/load.ts';
import {
  isReachedFromElsewhere,
  operatorsUrl,
  reloadCredentials,
} from '../config/operators-listener.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import { describeReload } from '../config/reload.ts';
import type { Settings } from '../config/settings.ts';
import type { Operator, Report } from './command/operator.ts';

/** Long, because the service runs concurrent reloads one after the other. */
const RELOAD_TIMEOUT_MS = 60_000;

/** The answer of the operators' listener to a reload (host/operators-host.ts). */
const OUTCOME = z.union([
  z.object({ changed: z.array(z.string()), needs_restart: z.array(z.string()) }),
  z.object({
    problems: z.array(
      z.object({
        path: z.string(),
        file: z.string().exactOptional(),
        line: z.number().exactOptional(),
        value: z.string().exactOptional(),
        message: z.string(),
        remedy: z.string(),
      }),
    ),
  }),
  z.object({ code: z.literal('not_reloaded') }),
]);

export function addReloadCommand(
  program: Command,
  { announce, print, environment }: Operator,
): void {
  program
    .command('reload')
    .description('make the running service read its settings and secrets again, without a restart')
    .addHelpText(
      'after',
      '\nReloads the node on this machine only: repeat it for each node. Requests in ' +
        'progress finish and\nsessions stay open. If a setting has a problem, nothing ' +
        'changes. Settings that need a restart are\nlisted. If server.operators_host is not ' +
        'loopback, the command needs the keys of the service.\nSending SIGHUP to the service ' +
        'does the same; its log shows the result.',
    )
    .action(async () => {
      const settings = loadSettingsWithoutSecrets({ environment });
      const { server } = settings;
      announce(settings);
      const needsProof = isReachedFromElsewhere(server.operatorsHost);
      const keys = needsProof ? findKeys({ environment }) : undefined;
      print(await reload(server, keys ? reloadCredentials(keys) : []));
    });
}

/** @throws ConfigurationProblems or Refusal; the service then continues unchanged */
async function reload(server: Settings['server'], credentials: string[]): Promise<Report> {
  if (server.operatorsPort === 0) {
    throw new Refusal(
      'unknown_port',
      'server.operators_port is 0: the service chose its port itself, and this command ' +
        'cannot find it.',
      'Send SIGHUP to the process instead, or set a fixed port.',
    );
  }
  const url = operatorsUrl(server, '/reload');
  const answer = await ask(url, credentials);
  if (answer.status === 401 && answer.headers.get('www-authenticate') === 'Bearer') {
    throw new Refusal(
      'keys_differ',
      "The service refused the reload: if its operators' listener is not loopback, the " +
        'command must prove that it has the keys of the service.',
      'Run the command with the GATEHOUSE_COOKIE_KEYS or the data directory of the ' +
        'service, or send SIGHUP to the process.',
    );
  }
  const { data: outcome } = OUTCOME.safeParse(await answer.json().catch(() => undefined));
  if (outcome === undefined) {
    throw new Refusal(
      'not_gatehouse',
      `The server at ${url} is not the operators' listener of Gatehouse: it answered ` +
        `${answer.status}.`,
      'Check that server.operators_port is that of the running service, or send SIGHUP to ' +
        'the process.',
    );
  }
  if ('problems' in outcome) throw new ConfigurationProblems(outcome.problems);
  if ('code' in outcome) {
    throw new Refusal(
      outcome.code,
      'The service could not be built from these settings, and keeps running with the ' +
        'previous ones.',
      'See the log of the service for the cause.',
    );
  }
  const { changed, needs_restart: needsRestart } = outcome;
  return { value: outcome, text: describeReload({ changed, needsRestart }) };
}

/** Sends the request with each credential in turn, until the service accepts one. */
async function ask(url: string, [credential, ...others]: readonly string[]): Promise<Response> {
  const headers = credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  try {
    const signal = AbortSignal.timeout(RELOAD_TIMEOUT_MS);
    const answer = await fetch(url, { method: 'POST', headers, signal });
    return answer.status === 401 && others.length > 0 ? await ask(url, others) : answer;
  } catch (cause) {
    throw new Refusal(
      'not_running',
      `No server answers at ${url}.`,
      'Start the service on this machine. If it is running, send SIGHUP to its process: ' +
        'server.operators_host or operators_port may have changed since it started.',
      { cause },
    );
  }
}
