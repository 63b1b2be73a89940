/** The state of each key: whether it signs, and on which nodes it is missing. */
import { systemClock } from '../base/clock.ts';
import { Refusal } from '../base/refusal.ts';
import { variableOf } from '../config/environment.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { type KeyKind, type Keys, keyFingerprint } from '../storage/heartbeat.ts';
import { type NodeKeys, runningNodes } from '../storage/nodes.ts';
import type { Queries } from '../storage/queries.ts';

export interface KeyState {
  readonly kind: KeyKind;
  readonly fingerprint: string;
  /** `other`: the key is accepted, but this configuration does not sign with it. */
  readonly use: 'current' | 'other';
}

export interface KeyFacts {
  readonly keys: Keys;
  readonly nodes: readonly NodeKeys[];
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
  return { keys, nodes: await runningNodes(database, systemClock) };
}

/** A difference between the keys of nodes. Some nodes therefore refuse valid sessions or tokens. */
export interface KeyProblem {
  readonly kind: KeyKind;
  readonly message: string;
  readonly remedy: string;
}

const KINDS: readonly KeyKind[] = ['cookie', 'token'];

export const keyStates = ({ keys }: Pick<KeyFacts, 'keys'>): KeyState[] =>
  KINDS.flatMap((kind) =>
    [...new Set(fingerprintsOf(kind, keys))].map(
      (fingerprint, place): KeyState => ({ kind, fingerprint, use: place === 0 ? 'current' : 'other' }),
    ),
  );

const fingerprintsOf = (kind: KeyKind, keys: Keys): string[] => keys[`${kind}Keys`].map(keyFingerprint);

/** Finds keys with which one node signs, but which another node lacks. */
export const keyProblems = (facts: KeyFacts): KeyProblem[] => KINDS.flatMap((kind) => differences(kind, facts));

function differences(kind: KeyKind, { keys, nodes }: KeyFacts): KeyProblem[] {
  const here = { name: 'this configuration', accepts: fingerprintsOf(kind, keys) };
  const all = nodes.map((node) => ({ name: `node ${node.node}`, accepts: node[`${kind}Keys`] }));
  const parties = [here, ...all];
  const remedy = `compare ${variableOf[`${kind}Keys`]} of both: every node must accept a key before a node signs with it`;
  return parties.flatMap(({ name, accepts: [signs = ''] }) =>
    parties
      .filter(({ accepts }) => !accepts.includes(signs))
      .map((other) => ({
        kind,
        remedy,
        message: `${name} signs with the ${kind} key ${signs}, which ${other.name} does not accept`,
      })),
  );
}
