/** `operator reload`: makes the service on this machine read its settings again. */
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
import { reloadInWords } from '../config/reload.ts';
import type { Settings } from '../config/settings.ts';
import type { Operator, Report } from './command/operator.ts';

/** Long, because the processes of the node rebuild themselves one after the other. */
const RELOAD_TIMEOUT_MS = 60_000;

/** What the operators' listener answers to a reload (host/reload.ts). */
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
    .description('let the running service read its settings and secrets again, without a restart')
    .addHelpText(
      'after',
      `
It is for the node on this machine; of several nodes each is told on its own. Requests under way
finish, nobody is signed out, and settings with a problem change nothing. What needs a restart is
listed by name. Where server.operators_host is not loopback, the command needs the keys of the
service. SIGHUP to the service does the same, and its log says what came of it.`,
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

/** @throws ConfigurationProblems or Refusal; the service then runs on unchanged */
async function reload(server: Settings['server'], credentials: string[]): Promise<Report> {
  if (server.operatorsPort === 0) {
    throw new Refusal(
      'unknown_port',
      'server.operators_port is 0: the service chose a port that this command cannot know.',
      'Send SIGHUP to its process instead, or give the port a number.',
    );
  }
  const url = operatorsUrl(server, '/reload');
  const answer = await ask(url, credentials);
  if (answer.status === 401 && answer.headers.get('www-authenticate') === 'Bearer') {
    throw new Refusal(
      'keys_differ',
      "The service did not take the order: it is proved with its keys where the operators' listener is not loopback.",
      'Run the command with the GATEHOUSE_COOKIE_KEYS or the data directory of the service, or send SIGHUP to it.',
    );
  }
  const { data: outcome } = OUTCOME.safeParse(await answer.json().catch(() => undefined));
  if (outcome === undefined) {
    throw new Refusal(
      'not_gatehouse',
      `What answers at ${url} is not the operators' listener of Gatehouse (${answer.status}).`,
      'See that server.operators_port is that of the running service, or send SIGHUP to it.',
    );
  }
  if ('problems' in outcome) throw new ConfigurationProblems(outcome.problems);
  if ('code' in outcome) {
    throw new Refusal(
      outcome.code,
      'The service could not be built from these settings, and runs on as it was.',
      'Its log says why.',
    );
  }
  const { changed, needs_restart: needsRestart } = outcome;
  return { value: outcome, text: reloadInWords({ changed, needsRestart }) };
}

/** Sends the request with one credential after the other, until one is accepted. */
async function ask(url: string, [credential, ...others]: readonly string[]): Promise<Response> {
  const headers = credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  try {
    const signal = AbortSignal.timeout(RELOAD_TIMEOUT_MS);
    const answer = await fetch(url, { method: 'POST', headers, signal });
    return answer.status === 401 && others.length > 0 ? await ask(url, others) : answer;
  } catch (cause) {
    throw new Refusal(
      'not_running',
      `Nothing answers at ${url}.`,
      'Start the service on this machine. If it runs, send SIGHUP to its process: ' +
        'server.operators_host or operators_port may have changed since its start.',
      { cause },
    );
  }
}
