/** `operator reload`: makes all nodes of the service read their settings again. */
import type { Command } from 'commander';
import { z } from 'zod';
import type { OperatedBy } from '../base/operated-by.ts';
import { AnswerRefused, fetchAnswer } from '../base/outgoing-requests.ts';
import { Refusal } from '../base/refusal.ts';
import { findKeys, loadSettingsWithoutSecrets } from '../config/load.ts';
import { isReachedFromElsewhere, operatorsUrl, reloadCredentials } from '../config/operators-listener.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import { describeReload } from '../config/reload.ts';
import type { Operator, Report } from './command/operator.ts';
import { printable, REFUSED } from './command/report.ts';

/** The timeout is long, because the service runs concurrent reloads one after the other. */
const LIMITS = { timeoutMs: 60_000, maxBytes: 4 * 1024 * 1024 };

/** The answer to a reload, which host/operators-host.ts writes. */
const OUTCOME = z.union([
  z.object({
    changed: z.array(z.string()),
    needs_restart: z.array(z.string()),
    /** Only in a dry run: the old and the new value of each changed setting that contains no secret. */
    values: z.record(z.string(), z.tuple([z.string(), z.string()])).exactOptional(),
    nodes: z.array(z.object({ node: z.string(), taken: z.boolean(), text: z.string() })).exactOptional(),
  }),
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

export function addReloadCommand(program: Command, { announce, print, environment, by }: Operator): void {
  program
    .command('reload')
    .description('make the running service read its settings and secrets again, without a restart')
    .addHelpText(
      'after',
      '\nReloads every node, each from its own file, and waits for their answers. Requests in progress finish\nand ' +
        'sessions stay open. If the settings of this machine have a problem, nothing changes; a node\nthat does not ' +
        'take its settings is named (exit code 1). Settings that need a restart are listed.\nIf server.operators_host ' +
        'is not loopback, the command needs the keys of the service. SIGHUP\nreloads one process; its log shows the ' +
        'result.',
    )
    .option('--dry-run', 'only print which settings a reload would change on this machine, with old and new values')
    .action(async ({ dryRun }: { readonly dryRun?: true }) => {
      const settings = loadSettingsWithoutSecrets({ environment });
      const { server } = settings;
      announce(settings);
      const needsProof = isReachedFromElsewhere(server.operatorsHost);
      const keys = needsProof ? findKeys({ environment }) : undefined;
      const url = operatorsUrl(server, '/reload');
      const method = dryRun ? 'GET' : 'POST';
      const outcome = await reload(url, method, keys ? reloadCredentials(keys) : [], by());
      print(dryRun ? reportPreview(outcome) : reportReload(outcome));
    });
}

type Outcome = Extract<z.infer<typeof OUTCOME>, { changed: unknown }>;

/** @throws ConfigurationProblems or Refusal if the service keeps its old settings */
async function reload(url: string, method: string, credentials: string[], by: OperatedBy): Promise<Outcome> {
  const answer = await ask(url, method, by, credentials);
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
      `The server at ${url} is not the operators' listener of Gatehouse: it answered ${answer.status}.`,
      'Check that server.operators_port is that of the running service, or send SIGHUP to the process.',
    );
  }
  if ('problems' in outcome) throw new ConfigurationProblems(outcome.problems);
  if ('code' in outcome) {
    throw new Refusal(
      outcome.code,
      'The service cannot run with these settings, and keeps the previous ones.',
      'See the log of the service for the cause.',
    );
  }
  return outcome;
}

function reportReload(outcome: Outcome): Report {
  const { nodes, changed, needs_restart: needsRestart } = outcome;
  const isDone = nodes?.every(({ taken }) => taken) ?? false;
  const isOnly = nodes?.length === 1 && isDone;
  const lines = nodes?.map(({ node, text }) => `${node} ${text}`) ?? [ONLY_HERE];
  return {
    value: outcome,
    text: [describeReload({ changed, needsRestart }), ...(isOnly ? [] : lines)].join('\n'),
    exitCode: isDone ? 0 : REFUSED,
  };
}

const ONLY_HERE =
  'No other node has answered, because nodes ask each other through the database, which does not answer. Send SIGHUP to the other processes.';

function reportPreview(outcome: Outcome): Report {
  const { changed, needs_restart: needsRestart, values = {} } = outcome;
  return {
    value: outcome,
    text: [
      describeReload({ changed, needsRestart }).replace(
        /^Settings reloaded[:.]/,
        'Dry run, nothing was reloaded. After a reload:',
      ),
      ...Object.entries(values).map(([name, [from, to]]) =>
        printable(`${name}: ${from === to ? `${to} (password changed)` : `${from} → ${to}`}`),
      ),
    ].join('\n'),
  };
}

/** Tries one credential after the other until the service accepts one. */
async function ask(
  url: string,
  method: string,
  by: OperatedBy,
  [credential, ...others]: readonly string[],
): Promise<Response> {
  const headers = {
    'gatehouse-operator': encodeURIComponent(by.operator),
    ...(by.reason !== undefined && { 'gatehouse-reason': encodeURIComponent(by.reason) }),
    ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
  };
  try {
    // With port 0, Node would send the request, with the credential, to port 80.
    if (new URL(url).port === '0') throw new Error('The URL has port 0, so the port of the service is unknown.');
    const answer = await fetchAnswer(url, { method, headers }, LIMITS);
    return answer.status === 401 && others.length > 0 ? await ask(url, method, by, others) : answer;
  } catch (cause) {
    const instead = cause instanceof AnswerRefused ? `, but there is ${cause.message}` : '';
    throw new Refusal(
      'not_running',
      `No server of Gatehouse answers at ${url}${instead}.`,
      'Start the service on this machine. If it is running, send SIGHUP to its process: ' +
        'server.operators_host or operators_port may have changed since it started, or be 0. If it ' +
        'ended during the reload, `gatehouse nodes` lists which other nodes have reloaded.',
      { cause },
    );
  }
}
