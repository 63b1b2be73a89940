/** How a setting is declared: its kind and default as a Zod schema, and all other facts beside it. */
import { z } from 'zod';

/** Where a change of a setting is seen: `reload` at once, `restart` at the next start. */
export type Effect = 'reload' | 'restart';

interface Facts {
  /** What a reload changes for existing tokens or sessions. */
  readonly reach?: string;
  /** True if the nodes of one deployment may differ. Default: if it is `fixed`. */
  readonly isPerNode?: boolean;
  /** The environment variable that overrides the file. */
  readonly variable?: string;
  /** No refused value is shown, and a file may hold the value of the variable (`…_FILE`). */
  readonly mayHoldPassword?: boolean;
  /** What it is for, in sentences: for the docs, editors and config/gatehouse.yaml. */
  readonly about: string;
  /** Further sentences for config/gatehouse.yaml. */
  readonly note?: string;
  /** The value that config/gatehouse.yaml shows if there is no default. */
  readonly example?: unknown;
}

export type SettingFacts = Facts & { readonly effect: Effect };

export const settingFacts = z.registry<SettingFacts>();

/** A setting that a reload takes over. */
export const reloadable = <Kind extends z.ZodType>(kind: Kind, facts: Facts): Kind =>
  declared(kind, { ...facts, effect: 'reload' });

/**
 * A setting that waits for the next start: what is opened, bound or filled there. The issuer too:
 * partners, proxies and browsers know the service by it, and a slip would turn all of them away.
 */
export const fixed = <Kind extends z.ZodType>(kind: Kind, facts: Facts): Kind =>
  declared(kind, { ...facts, effect: 'restart' });

function declared<Kind extends z.ZodType>(kind: Kind, facts: SettingFacts): Kind {
  const described = kind.describe(facts.about);
  settingFacts.add(described, facts);
  return described;
}

/** A heading of the file with its settings, all of which may be left out. */
export function section<Shape extends z.core.$ZodShape>(about: string, settings: Shape) {
  return z
    .strictObject(settings)
    .prefault({} as never)
    .describe(about);
}
