/** Warnings about a configuration that is allowed but probably not intended. */
import { statSync } from 'node:fs';
import { MAKE_A_KEY, mayBeInAFile, type Variables, variableOf } from './environment.ts';
import { mayHavePasskeys } from './issuer.ts';
import type { ConfigurationProblem } from './problems.ts';
import type { Settings } from './settings.ts';

/** The permission of users other than the owner and the group to read a file. */
const WORLD_READABLE = 0o004;
/**
 * @param secrets the keys from the environment or the data directory; empty before the first start.
 * @param secretFiles the files that settings name.
 * @param asked values of settings: the issuer, and `sign_in.passkeys`, even if the issuer cannot have passkeys.
 */
export function configurationWarnings(
  variables: Variables,
  secrets: Partial<Settings['secrets']>,
  secretFiles: readonly { readonly path: string; readonly file: string }[],
  asked: { readonly issuer: string; readonly hasPasskeys: boolean },
): readonly ConfigurationProblem[] {
  return [
    ...keyWarnings(secrets),
    ...mayBeInAFile.flatMap((name) => fileWarnings(name, variables)),
    ...secretFiles.flatMap(({ path, file }) => openFileWarnings(path, file)),
    ...(asked.hasPasskeys && !mayHavePasskeys(asked.issuer) ? [NO_DOMAIN] : []),
  ];
}

const NO_DOMAIN: ConfigurationProblem = {
  path: 'sign_in.passkeys',
  message: 'has no effect: passkeys need a domain name, and the issuer has an IP address',
  remedy: 'use a host name in the issuer, or write `false`',
};

function keyWarnings({ cookieKeys, tokenKeys }: Partial<Settings['secrets']>): ConfigurationProblem[] {
  if (!cookieKeys?.some((key) => tokenKeys?.includes(key))) return [];
  return [
    {
      path: `${variableOf.cookieKeys}, ${variableOf.tokenKeys}`,
      message: 'share a key: an attacker who learns one can forge what the other signs',
      remedy: `${MAKE_A_KEY} for each`,
    },
  ];
}

function fileWarnings(name: string, variables: Variables): ConfigurationProblem[] {
  const path = `${name}_FILE`;
  const file = variables[path];
  if (file === undefined) return [];
  if (file.trim() === '') {
    const remedy = 'unset it, or name a file';
    return [{ path, message: 'is set to an empty value, which counts as unset', remedy }];
  }
  return openFileWarnings(path, file);
}

function openFileWarnings(path: string, file: string): ConfigurationProblem[] {
  const mode = statSync(file.trim(), { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & WORLD_READABLE) === 0) return [];
  return [
    {
      path,
      value: file,
      remedy: `\`chmod o-r ${file}\``,
      message: `is readable by every user of this machine (mode ${(mode & 0o777).toString(8)})`,
    },
  ];
}
