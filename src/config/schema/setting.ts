/** Declares settings: kind and default as a Zod schema, all other facts in a registry. */
import { z } from 'zod';

/** When a change of a setting takes effect: at a reload, or only at the next start. */
export type Effect = 'reload' | 'restart';

interface Facts {
  /** How a reload with a new value affects existing tokens or sessions. */
  readonly reach?: string;
  /** True if nodes of one deployment may differ in this setting. Default: true if `fixed`. */
  readonly isPerNode?: boolean;
  /** The environment variable that overrides the file. */
  readonly variable?: string;
  /** True to hide refused values, and to allow the value of the variable to be in a file (`…_FILE`). */
  readonly mayHoldPassword?: boolean;
  /** Sentences about the setting's purpose, for the docs, editors and config/gatehouse.yaml. */
  readonly about: string;
  /** Further sentences for config/gatehouse.yaml. */
  readonly note?: string;
  /** The value that config/gatehouse.yaml shows if there is no default. */
  readonly example?: unknown;
}

export type SettingFacts = Facts & { readonly effect: Effect };

export const settingFacts = z.registry<SettingFacts>();

/** Declares a setting that a reload applies. */
export const reloadable = <Kind extends z.ZodType>(kind: Kind, facts: Facts): Kind =>
  declared(kind, { ...facts, effect: 'reload' });

/**
 * Declares a setting that takes effect at the next start, because it is used to open, bind or fill
 * something at the start. The issuer is `fixed`, too: partners, proxies and browsers know the
 * service by it, and a mistake would lock all of them out.
 */
export const fixed = <Kind extends z.ZodType>(kind: Kind, facts: Facts): Kind =>
  declared(kind, { ...facts, effect: 'restart' });

function declared<Kind extends z.ZodType>(kind: Kind, facts: SettingFacts): Kind {
  const described = kind.describe(facts.about);
  settingFacts.add(described, facts);
  return described;
}

/** Declares a heading of the file with its settings, all of which are optional. */
export function section<Shape extends z.core.$ZodShape>(about: string, settings: Shape) {
  return z
    .strictObject(settings)
    .prefault({} as never)
    .describe(about);
}
