/** Compares nodes and doctor (versions, settings, Redis), and checks the nodes' file limits. */
import packageFile from '../../package.json' with { type: 'json' };
import { comparableSettings } from '../config/node-settings.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import type { ListedNode } from '../storage/nodes.ts';
import { type Findings, ok, problem, type Verdict, warning } from './findings.ts';

/** Open files that a node needs in addition to one per connection: stores, mail, pages, log. */
const OTHER_FILES = 200;
const MAX_LISTED = 8;

const CHECKS = ['node_versions', 'node_settings', 'node_redis', 'node_files'];

/** @param redis the id of the doctor's Redis; `none` without Redis, undefined if unknown */
export function checkNodeDifferences(
  findings: Findings,
  nodes: readonly ListedNode[],
  { settings, redis }: { settings: SettingsWithoutSecrets; redis: string | undefined },
): void {
  const running = nodes.filter(({ state }) => state !== 'silent');
  const where = running.map(({ node }) => node).join(', ');
  if (running.length === 0) {
    findings.notChecked(CHECKS, 'no node is running');
    return;
  }
  findings.add('node_versions', where, versionsVerdict(running));
  findings.add('node_settings', OUR_SETTINGS, ...settingsVerdicts(running, settings));
  findings.add('node_redis', 'REDIS_URL', redisVerdict(running, redis));
  findings.add('node_files', '', ...filesVerdicts(running));
}

const OUR_SETTINGS = 'the settings of the doctor';

function versionsVerdict(nodes: readonly ListedNode[]): Verdict {
  const values = nodes.map(({ node, runsWith }) => ({
    where: node,
    value: runsWith.version,
  }));
  const groups = groupByValue([...values, { where: 'the doctor', value: packageFile.version }]);
  const [first] = groups;
  if (groups.length === 1 && first) {
    return ok(`${nodes.length} node(s), all with version ${first.value}`);
  }
  return warning(
    `the versions differ: ${describe(groups)}`,
    'finish the upgrade: run the same version on every node and for the doctor',
  );
}

/** Reports settings that differ between nodes: a problem, as any node may get any request. */
function settingsVerdicts(nodes: readonly ListedNode[], settings: SettingsWithoutSecrets): Verdict[] {
  const ours = comparableSettings(settings);
  const names = new Set([ours, ...nodes.map(({ runsWith }) => runsWith.settings)].flatMap(Object.keys));
  const among: string[] = [];
  const withUs: string[] = [];
  for (const name of names) {
    const values = nodes.map(({ node, runsWith }) => ({
      where: node,
      value: runsWith.settings[name] ?? 'none',
    }));
    const here = { where: 'the doctor', value: ours[name] ?? 'none' };
    if (groupByValue(values).length > 1) among.push(difference(name, values));
    // Skip mail settings that the doctor lacks: the mail server's URL is a secret of the service.
    else if (name.startsWith('mail.') && ours[name] === undefined) continue;
    else if (groupByValue([...values, here]).length > 1) {
      withUs.push(difference(name, [...values, here]));
    }
  }
  const differing = problem(
    `the settings of the nodes differ: ${listed(among)}`,
    'give every node the same settings file and variables, then reload or restart every node',
    nodes.map(({ node }) => node).join(', '),
  );
  const other = warning(
    `the settings of the nodes differ from those of the doctor: ${listed(withUs)}`,
    "reload or restart the nodes if the doctor's settings are newer; otherwise run the " +
      'doctor with the settings and the environment of the service',
  );
  const found = [...(among.length > 0 ? [differing] : []), ...(withUs.length > 0 ? [other] : [])];
  const same = ok(`${nodes.length} node(s), all with the settings of the doctor`);
  return found.length > 0 ? found : [same];
}

function redisVerdict(nodes: readonly ListedNode[], redis: string | undefined): Verdict {
  const known = [
    ...nodes.map(({ node, runsWith }) => ({ where: node, value: runsWith.redis })),
    { where: 'the doctor', value: redis },
  ].filter((one): one is Located => one.value !== undefined);
  const groups = groupByValue(known);
  if (groups.length <= 1) {
    const [{ value } = { value: 'none' }] = groups;
    return ok(value === 'none' ? 'no node uses Redis' : 'every node uses the same Redis');
  }
  const named = groups.map(({ value, where }) => ({
    where,
    value: value === 'none' ? 'the database' : `Redis database ${value.slice(0, 6)}`,
  }));
  return problem(
    `the nodes store tokens in different places: ${describe(named)}; a token issued by one ` +
      'node is unknown to the others',
    'give every node and the doctor the same REDIS_URL, including the database number',
  );
}

function filesVerdicts(nodes: readonly ListedNode[]): Verdict[] {
  const tight = nodes.filter(
    ({ runsWith: { openFiles = Number.POSITIVE_INFINITY, maxConnections } }) =>
      openFiles < maxConnections + OTHER_FILES,
  );
  if (tight.length === 0) return [ok('the open-files limit of every node allows server.max_connections')];
  return tight.map(({ node, runsWith }) =>
    warning(
      `its limit of ${runsWith.openFiles} open files is too low for the ${runsWith.maxConnections} connections of ` +
        'server.max_connections: at the limit, new connections fail with EMFILE, also those to a store',
      'set LimitNOFILE=65536 in the systemd unit of the node (elsewhere `ulimit -n`), or lower server.max_connections',
      node,
    ),
  );
}

interface Located {
  readonly where: string;
  readonly value: string;
}

function groupByValue(values: readonly Located[]): Located[] {
  const groups = Map.groupBy(values, ({ value }) => value);
  return [...groups].map(([value, members]) => ({
    value,
    where: members.map(({ where }) => where).join(', '),
  }));
}

const describe = (groups: readonly Located[]): string =>
  groups.map(({ value, where }) => `${value} (${where})`).join(', ');

const difference = (name: string, values: readonly Located[]): string => `${name} is ${describe(groupByValue(values))}`;

const listed = (differences: readonly string[]): string => {
  const left = differences.length - MAX_LISTED;
  return [...differences.slice(0, MAX_LISTED), ...(left > 0 ? [`and ${left} more`] : [])].join('; ');
};
