/** The sign-in providers of the settings, each with the secret from its secret file. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type ConfigurationProblem, unreadableFile } from './problems.ts';
import type { SettingsFile } from './schema/schema.ts';
import { projectDirectory } from './settings-file.ts';

type Entry = NonNullable<SettingsFile['sign_in']['providers']>[number];

export type SignInProvider = ReturnType<typeof providerFrom>;

/**
 * Use the same names and the same order in every version, because nodes compare fingerprints of the result.
 * @param clientSecret undefined for a public client, and for commands that need no secret
 */
const providerFrom = (entry: Entry, clientSecret: string | undefined) => ({
  id: entry.id,
  label: entry.label,
  issuer: entry.issuer,
  clientId: entry.client_id,
  ...(clientSecret !== undefined && { clientSecret }),
  match: entry.match,
  accountClaim: entry.account_claim,
  scopes: [...new Set(['openid', ...entry.scopes])],
  endpointHosts: entry.endpoint_hosts,
  acrValues: entry.acr_values,
  /** See `isStrongSignIn` in accounts/sign-in-strength.ts. */
  isStrong: entry.strong,
  strongAcr: entry.strong_acr ?? entry.acr_values,
  strongAmr: entry.strong_amr,
});

/** @param secretsAreNeeded false for a command that sends no requests to providers */
export function signInProviders(
  { sign_in: { providers: entries = [] } }: SettingsFile,
  { secretsAreNeeded }: { readonly secretsAreNeeded: boolean },
): { readonly providers: SignInProvider[]; readonly problems: ConfigurationProblem[] } {
  const problems = [
    ...twice(entries, 'id', 'it is part of its URLs and metrics'),
    ...twice(entries, 'issuer', 'it identifies the linked accounts'),
  ];
  const providers = entries.map((entry, index) => {
    const secret = secretsAreNeeded ? secretOf(entry, index) : undefined;
    if (typeof secret === 'object') problems.push(secret);
    return providerFrom(entry, typeof secret === 'string' ? secret : undefined);
  });
  return { providers, problems };
}

function twice(entries: readonly Entry[], field: 'id' | 'issuer', why: string): ConfigurationProblem[] {
  return entries.flatMap((entry, index) => {
    const value = entry[field];
    const isFirst = entries.findIndex((other) => other[field] === value) === index;
    const path = `sign_in.providers.${index}.${field}`;
    const remedy = `give each provider its own: ${why}`;
    return isFirst ? [] : [{ path, value, message: 'is already used by an earlier provider', remedy }];
  });
}

const fileOf = (name: string): string => path.resolve(projectDirectory, name);

function secretOf({ client_secret_file: name }: Entry, index: number): string | undefined | ConfigurationProblem {
  if (name === undefined) return undefined;
  const file = fileOf(name);
  const about = { path: `sign_in.providers.${index}.client_secret_file`, value: file };
  try {
    const secret = readFileSync(file, 'utf8').trim();
    if (secret !== '') return secret;
    return { ...about, message: 'names an empty file', remedy: 'write the client secret into it' };
  } catch (error) {
    return { ...about, ...unreadableFile(error) };
  }
}

/** Returns the path of each file with a client secret, and the setting that names it. */
export const secretFilesOf = ({
  sign_in: { providers: entries = [] },
}: SettingsFile): { readonly path: string; readonly file: string }[] =>
  entries.flatMap(({ client_secret_file: name }, index) =>
    name === undefined ? [] : [{ path: `sign_in.providers.${index}.client_secret_file`, file: fileOf(name) }],
  );
