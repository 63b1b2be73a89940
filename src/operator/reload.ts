/** `operator reload`: the service on this machine reads its settings again. */
import type { Command } from 'commander';
import { z } from 'zod';
import { findKeys, loadSettingsWithoutSecrets } from '../config/load.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import { reloadInWords } from '../config/reload.ts';
import { isReachedFromElsewhere, reloadCredentials } from '../config/reload-credential.ts';
import type { Settings } from '../config/settings.ts';
import { Refusal } from '../refusal.ts';
import type { Operator } from './program/operator.ts';
import type { Report } from './program/report.ts';

/** Milliseconds. Each process of the node builds itself anew, one after the other. */
const PATIENCE = 60_000;

const done = z.object({ changed: z.array(z.string()), needs_restart: z.array(z.string()) });
const refused = z.object({
  problems: z.array(
    z.object({
      path: z.string(),
      value: z.string().optional(),
      message: z.string(),
      remedy: z.string(),
    }),
  ),
});

export function addReloadCommand(program: Command, { print, environment }: Operator): void {
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
      const { server } = loadSettingsWithoutSecrets({ environment });
      const isProved = isReachedFromElsewhere(server.operatorsHost);
      const keys = isProved ? findKeys({ environment }) : undefined;
      print(await reload(server, keys ? reloadCredentials(keys) : []));
    });
}

/** @throws ConfigurationProblems or Refusal, and then the service runs on as it did. */
async function reload(server: Settings['server'], credentials: string[]): Promise<Report> {
  const url = reloadUrl(server);
  const answer = await ask(url, credentials);
  if (answer.status === 401) {
    throw new Refusal(
      'keys_differ',
      "The service did not take the order: it is proved with its keys where the operators' listener is not loopback.",
      'Run the command with the GATEHOUSE_COOKIE_KEYS or the data directory of the service, or send SIGHUP to it.',
    );
  }
  if (answer.status === 422) {
    const { problems } = refused.parse(await answer.json());
    // Members that are undefined are members nevertheless.
    throw new ConfigurationProblems(
      problems.map(({ value, ...problem }) => ({
        ...problem,
        ...(value !== undefined && { value }),
      })),
    );
  }
  if (answer.status === 500) {
    throw new Refusal(
      'not_reloaded',
      'The service could not be built from these settings, and runs on as it was.',
      'Its log says why.',
    );
  }
  const parsed = done.safeParse(answer.ok ? await answer.json().catch(() => undefined) : undefined);
  if (!parsed.success) {
    throw new Refusal(
      'not_gatehouse',
      `What answers at ${url} is not the operators' listener of Gatehouse (${answer.status}).`,
      'See that server.operators_port is that of the running service, or send SIGHUP to it.',
    );
  }
  const { changed, needs_restart: needsRestart } = parsed.data;
  return { value: parsed.data, text: reloadInWords({ changed, needsRestart }) };
}

function reloadUrl({ operatorsHost, operatorsPort }: Settings['server']): URL {
  if (operatorsPort === 0) {
    throw new Refusal(
      'unknown_port',
      'server.operators_port is 0: the service chose a port that this command cannot know.',
      'Send SIGHUP to its process instead, or give the port a number.',
    );
  }
  // Where it listens on every interface, it is reached on this one.
  const everywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };
  const isAddress6 = operatorsHost.includes(':');
  const host = everywhere[operatorsHost] ?? (isAddress6 ? `[${operatorsHost}]` : operatorsHost);
  return new URL(`http://${host}:${operatorsPort}/reload`);
}

/** With each credential in turn, until one is taken. */
async function ask(url: URL, [credential, ...others]: readonly string[]): Promise<Response> {
  const headers = credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(url, { method: 'POST', headers, signal });
    return answer.status === 401 && others.length > 0 ? await ask(url, others) : answer;
  } catch (cause) {
    throw new Refusal(
      'not_running',
      `Nothing answers at ${url.origin}.`,
      'Start the service on this machine. If it runs, send SIGHUP to its process: ' +
        'server.operators_host or operators_port may have changed since its start.',
      { cause },
    );
  }
}
