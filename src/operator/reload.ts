/** `operator reload`: the service on this machine reads its settings again. */
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

/** Milliseconds. Each process of the node builds itself anew, one after the other. */
const PATIENCE = 60_000;

/** What the operators' listener says of a reload (host/reload.ts). */
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
      const isProved = isReachedFromElsewhere(server.operatorsHost);
      const keys = isProved ? findKeys({ environment }) : undefined;
      print(await reload(server, keys ? reloadCredentials(keys) : []));
    });
}

/** @throws ConfigurationProblems or Refusal, and then the service runs on as it did. */
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
  const { data: told } = OUTCOME.safeParse(await answer.json().catch(() => undefined));
  if (told === undefined) {
    throw new Refusal(
      'not_gatehouse',
      `What answers at ${url} is not the operators' listener of Gatehouse (${answer.status}).`,
      'See that server.operators_port is that of the running service, or send SIGHUP to it.',
    );
  }
  if ('problems' in told) throw new ConfigurationProblems(told.problems);
  if ('code' in told) {
    throw new Refusal(
      told.code,
      'The service could not be built from these settings, and runs on as it was.',
      'Its log says why.',
    );
  }
  const { changed, needs_restart: needsRestart } = told;
  return { value: told, text: reloadInWords({ changed, needsRestart }) };
}

/** With each credential in turn, until one is taken. */
async function ask(url: string, [credential, ...others]: readonly string[]): Promise<Response> {
  const headers = credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  try {
    const signal = AbortSignal.timeout(PATIENCE);
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
