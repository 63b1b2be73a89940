/** The state of each key: which one signs, since when, and when an older one can be removed. */
import { systemClock } from '../base/clock.ts';
import { Refusal } from '../base/refusal.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { type KeyKind, type KeySighting, type Keys, keyFingerprint, keySightings } from '../storage/key-sightings.ts';
import { type NodeKeys, runningNodes } from '../storage/nodes.ts';
import type { Queries } from '../storage/queries.ts';

export const KEY_VARIABLE: Readonly<Record<KeyKind, string>> = {
  cookie: 'GATEHOUSE_COOKIE_KEYS',
  token: 'GATEHOUSE_TOKEN_KEYS',
};

export interface KeyState {
  readonly kind: KeyKind;
  readonly fingerprint: string;
  /** `next`: accepted already, but no node has ever signed with it. */
  readonly use: 'current' | 'next' | 'older';
  /** When a node first signed with the key; absent if none did. */
  readonly currentSince?: Date;
  /** When the last node stopped signing with the key; absent while one signs, or if unknown. */
  readonly replacedAt?: Date;
  /** When everything signed with it has expired. Absent for `current`, `next`, and while in use. */
  readonly removableFrom?: Date;
}

export interface KeyFacts {
  /** The keys of this configuration. */
  readonly keys: Keys;
  readonly sightings: readonly KeySighting[];
  readonly nodes: readonly NodeKeys[];
  readonly settings: Pick<SettingsWithoutSecrets, 'tokens' | 'sessions'>;
}

export interface KeySources {
  readonly database: Queries;
  readonly settings: SettingsWithoutSecrets;
  readonly keys: () => Keys | undefined;
}

/**
 * @throws Refusal `keys_missing` if this environment has no keys, ConfigurationProblems if the
 *   keys cannot be trusted
 */
export async function keyFacts({ database, settings, ...given }: KeySources): Promise<KeyFacts> {
  const keys = given.keys();
  if (!keys) {
    throw new Refusal(
      'keys_missing',
      'This environment has no keys.',
      settings.storage.databaseUrl === undefined
        ? 'The service creates them at its first start: start it once.'
        : 'Set GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS to the values of the nodes.',
    );
  }
  const [sightings, nodes] = await Promise.all([keySightings(database), runningNodes(database, systemClock)]);
  return { settings, keys, sightings, nodes };
}

/** A problem with the keys that an operator should correct. */
export interface KeyWarning {
  readonly kind: KeyKind;
  readonly message: string;
  readonly remedy: string;
  /** True if nodes refuse valid sessions or tokens now because of the keys. */
  readonly isProblem?: true;
}

const MS_PER_SECOND = 1_000;
const OLD_AFTER_MS = 365 * 86_400 * MS_PER_SECOND;

/** Returns the states of this configuration's keys, in its order. */
export function keyStates(facts: KeyFacts): KeyState[] {
  return [...statesOf('cookie', facts), ...statesOf('token', facts)];
}

function statesOf(kind: KeyKind, { keys, sightings, nodes, settings }: KeyFacts): KeyState[] {
  const lifetime = lifetimeOf(kind, settings);
  const fingerprints = [...new Set(fingerprintsOf(kind, keys))];
  const seen = (fingerprint: string | undefined): KeySighting | undefined =>
    sightings.find((known) => known.kind === kind && known.fingerprint === fingerprint);
  const current = seen(fingerprints[0]);

  return fingerprints.map((fingerprint, place): KeyState => {
    const { firstSeenAt, firstCurrentAt, lastCurrentAt } = seen(fingerprint) ?? {};
    const since = firstCurrentAt && { currentSince: firstCurrentAt };
    if (place === 0) return { kind, fingerprint, use: 'current', ...since };
    // A key older than these records may have signed before; a key that was added later did not.
    const isNewer = !firstSeenAt || !current || firstSeenAt > current.firstSeenAt;
    if (!firstCurrentAt && isNewer) return { kind, fingerprint, use: 'next' };
    const isInUse = nodes.some((node) => listOf(kind, node)[0] === fingerprint);
    const last = lastCurrentAt ?? firstSeenAt;
    return {
      kind,
      fingerprint,
      use: 'older',
      ...since,
      ...(!isInUse && lastCurrentAt && { replacedAt: lastCurrentAt }),
      ...(!isInUse && last && { removableFrom: later(last, lifetime) }),
    };
  });
}

/** Maximum number of seconds for which a value signed with such a key is valid. */
const lifetimeOf = (kind: KeyKind, { tokens, sessions }: KeyFacts['settings']): number =>
  kind === 'token' ? tokens.refreshTokenSeconds : sessions.absoluteSeconds;

const listOf = (kind: KeyKind, { cookieKeys, tokenKeys }: Keys): readonly string[] =>
  kind === 'cookie' ? cookieKeys : tokenKeys;

const fingerprintsOf = (kind: KeyKind, keys: Keys): string[] => listOf(kind, keys).map(keyFingerprint);

const later = (time: Date, seconds: number): Date => new Date(time.getTime() + seconds * MS_PER_SECOND);

/** Finds keys that are old, left over or not on every node. @param now in ms */
export function keyWarnings(facts: KeyFacts, now: number): KeyWarning[] {
  const kinds: readonly KeyKind[] = ['cookie', 'token'];
  return [
    ...keyStates(facts).flatMap((state) => ownWarnings(state, now)),
    ...kinds.flatMap((kind) => differences(kind, facts)),
  ];
}

/** Finds nodes that refuse values signed by another node: any request may reach any node. */
function differences(kind: KeyKind, { keys, nodes }: KeyFacts): KeyWarning[] {
  const here = { name: 'this configuration', accepts: fingerprintsOf(kind, keys) };
  const all = nodes.map((node) => ({ name: `node ${node.node}`, accepts: listOf(kind, node) }));
  const parties = [here, ...all];
  const remedy = `compare ${KEY_VARIABLE[kind]} of both: every node must accept a key before a node signs with it`;
  return parties.flatMap(({ name, accepts: [signs = ''] }) =>
    parties
      .filter(({ accepts }) => !accepts.includes(signs))
      .map((other) => ({
        kind,
        remedy,
        isProblem: true as const,
        message: `${name} signs with the ${kind} key ${signs}, which ${other.name} does not accept`,
      })),
  );
}

function ownWarnings(state: KeyState, now: number): KeyWarning[] {
  const { kind, fingerprint, use, currentSince, removableFrom } = state;
  if (use === 'current' && currentSince && now - currentSince.getTime() > OLD_AFTER_MS) {
    const days = Math.floor((now - currentSince.getTime()) / (86_400 * MS_PER_SECOND));
    return [
      {
        kind,
        message: `the current ${kind} key ${fingerprint} has been in use for ${days} days`,
        remedy: `replace it: \`gatehouse keys generate --kind ${kind}\` prints the steps`,
      },
    ];
  }
  if (removableFrom && removableFrom.getTime() <= now) {
    return [
      {
        kind,
        message: `the ${kind} key ${fingerprint} is still accepted, but no value signed with it is valid any more`,
        remedy: `remove it from ${KEY_VARIABLE[kind]} and reload the nodes (keys in a variable: restart)`,
      },
    ];
  }
  return [];
}
