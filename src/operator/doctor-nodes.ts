/** The doctor's look at the nodes: who runs, and whether the one on this machine is ready. */
import { systemClock } from '../clock.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { runningNodes } from '../storage/key-sightings.ts';
import type { Queries } from '../storage/queries.ts';
import type { Findings } from './doctor-findings.ts';

/** Milliseconds. The service answers within two seconds also while a store is away. */
const LIMIT = 5_000;

export async function checkNodes(
  findings: Findings,
  { server }: Pick<SettingsWithoutSecrets, 'server'>,
  database: Queries | undefined,
): Promise<void> {
  const check = 'nodes';
  const nodes = database ? await runningNodes(database, systemClock) : [];
  const running =
    nodes.length > 0
      ? `running: ${nodes.map(({ node }) => node).join(', ')}`
      : 'no node noted itself in the database within three minutes';
  const url = `http://${server.operatorsHost}:${server.operatorsPort}/readyz`;
  const ready = server.operatorsPort === 0 ? undefined : await askReady(url);
  if (ready && !ready.ok) {
    findings.problem({
      ...{ check, where: url },
      message: `the node of this machine is not ready: ${ready.text}; ${running}`,
      remedy: 'see the store that it names',
    });
  } else if (ready || nodes.length > 0) {
    findings.ok(check, `${running}; ${ready ? `${url} is ready` : `none answers at ${url}`}`);
  } else {
    findings.warning({
      ...{ check, where: url, message: `none answers here, and ${running}` },
      remedy: 'start the service (`npm start`), or correct server.operators_port',
    });
  }
}

async function askReady(url: string): Promise<{ ok: boolean; text: string } | undefined> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(LIMIT) });
    return { ok: answer.ok, text: (await answer.text()).slice(0, 200) };
  } catch {
    return undefined;
  }
}
