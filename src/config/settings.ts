/** The settings as the code uses them: the values of the settings file, and values derived from the file. */
import path from 'node:path';
import type { Logos } from './brand-files.ts';
import type { Secrets } from './environment.ts';
import { isLoopbackOrigin, mayHavePasskeys } from './issuer.ts';
import type { Seconds } from './schema/kinds.ts';
import { camelCase, isHeading, knownSettings } from './schema/known-settings.ts';
import type { SettingsFile } from './schema/schema.ts';
import type { Senders } from './senders.ts';
import type { SignInProvider } from './sign-in-providers.ts';

/** The setting `retry_window: Seconds` of the file becomes `retryWindowSeconds: number` in the code. */
type InCode<Values> = {
  readonly [Key in keyof Values as NameInCode<Key & string, Values[Key]>]: Values[Key] extends Seconds | undefined
    ? Exclude<Values[Key], Seconds> | number
    : Values[Key];
};

type NameInCode<Key extends string, Value> = [Extract<Value, Seconds>] extends [never]
  ? CamelCase<Key>
  : `${CamelCase<Key>}Seconds`;

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

type Section<Heading extends keyof SettingsFile> = InCode<NonNullable<SettingsFile[Heading]>>;

export interface Settings {
  /** The public origin, without a path and a trailing slash, such as `https://auth.example.com`. */
  readonly issuer: string;
  /** True if the issuer's host is `localhost`, in 127.0.0.0/8 or `[::1]`. Then http and a demo are allowed. */
  readonly isLoopback: boolean;
  readonly server: Required<Section<'server'>>;
  /** `dataDirectory` is an absolute path. */
  readonly storage: Section<'storage'>;
  readonly tokens: Section<'tokens'>;
  readonly sessions: Section<'sessions'>;
  /** `passkeys` is also false if the issuer cannot have passkeys. */
  readonly signIn: Omit<Section<'sign_in'>, 'providers'> & {
    readonly providers: readonly SignInProvider[];
  };
  readonly limits: Section<'limits'>;
  /** Absent if the service sends no mail. */
  readonly mail?: Required<Section<'mail'>>;
  /** Absent if no API is shown to owners of clients. */
  readonly api?: Section<'api'> & { readonly graphqlUrl: string };
  /** The settings of the brand, with the content of the logo files. */
  readonly brand: Omit<Section<'brand'>, keyof Logos> & Logos;
  readonly rights: Section<'rights'>;
  readonly organizations: Section<'organizations'>;
  readonly activity: Section<'activity'>;
  readonly leaks: Section<'leaks'>;
  readonly import: Section<'import'>;
  readonly demo: boolean;
  readonly log: Section<'log'>;
  readonly secrets: Secrets;
  /** The systems that may call `POST /changes` and other paths of the operators' listener. */
  readonly senders: Senders;
}

export type SettingsWithoutSecrets = Omit<Settings, 'secrets' | 'senders'>;

type SectionsInCode = {
  readonly [Heading in keyof SettingsFile as CamelCase<Heading>]: Section<Heading>;
};

function inCode(file: SettingsFile): SectionsInCode {
  const sections = Object.entries(file).filter(([name]) => isHeading(name));
  return Object.fromEntries(
    sections.map(([heading, values]) => [
      camelCase(heading),
      Object.fromEntries(
        Object.entries(values ?? {}).map(([key, value]) => [
          knownSettings.get(`${heading}.${key}`)?.codePath.at(-1),
          value,
        ]),
      ),
    ]),
  ) as unknown as SectionsInCode;
}

/**
 * @param providers the providers of the file, each with its secret
 * @param directory the base of a relative path to the data directory
 * @param logos the logos that the file names
 */
export function settingsFrom(
  file: SettingsFile,
  providers: readonly SignInProvider[],
  directory: string,
  logos: Logos = {},
): SettingsWithoutSecrets {
  const { mail, api, ...sections } = inCode(file);
  const { server, storage, signIn } = sections;
  const { logo: _, logoDark: __, ...brand } = sections.brand;
  const issuer = file.issuer ?? new URL(`http://localhost:${server.port}`).origin;
  const isLoopback = isLoopbackOrigin(issuer);
  return {
    ...sections,
    issuer,
    isLoopback,
    server: { ...server, proxyHops: server.proxyHops ?? 0 },
    storage: { ...storage, dataDirectory: path.resolve(directory, storage.dataDirectory) },
    brand: { ...brand, ...logos },
    signIn: { ...signIn, passkeys: signIn.passkeys && mayHavePasskeys(issuer), providers },
    ...(mail.smtpUrl !== undefined && {
      mail: { smtpUrl: mail.smtpUrl, from: mail.from ?? '' },
    }),
    ...(api.graphqlUrl !== undefined && { api: { ...api, graphqlUrl: api.graphqlUrl } }),
    demo: file.demo ?? (storage.databaseUrl === undefined && isLoopback),
  };
}
