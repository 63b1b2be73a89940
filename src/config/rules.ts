/** Rules for values that are valid on their own, but not together. */
import type { Override } from './environment.ts';
import { issuerProblem } from './issuer.ts';
import type { ConfigurationProblem } from './problems.ts';
import { NO_DATA_DIRECTORY } from './schema/connected.ts';
import type { SettingsFile } from './schema/schema.ts';
import type { SettingsWithoutSecrets } from './settings.ts';
import { locationOf, shown, valueAt } from './validate.ts';

/** The validated file, and the settings derived from it. */
interface Facts {
  readonly values: SettingsFile;
  readonly settings: SettingsWithoutSecrets;
}

interface Rule {
  /** The setting that the operator should change. */
  readonly setting: string;
  /** Further settings in the rule. If one of them is unknown, the rule is not checked. */
  readonly dependsOn: readonly string[];
  readonly isBroken: (facts: Facts) => boolean;
  readonly message: string;
  readonly remedy: string;
}

/** @param unknown settings whose value was refused or could not be read */
export function brokenRules({
  unknown,
  overrides,
  ...facts
}: Facts & {
  readonly unknown: ReadonlySet<string>;
  readonly overrides: readonly Override[];
}): ConfigurationProblem[] {
  const wrongIssuer = unknown.has('issuer') ? undefined : issuerProblem(facts.settings.issuer);
  const isKnown = (setting: string) => !unknown.has(setting) && !(setting === 'issuer' && wrongIssuer);
  const broken = rules.filter((rule) => [rule.setting, ...rule.dependsOn].every(isKnown) && rule.isBroken(facts));
  const issuer = wrongIssuer ? [{ setting: 'issuer', ...wrongIssuer }] : [];
  return [...issuer, ...broken].map((found) => problemOf(found, facts, overrides));
}

export const oddSettings = (facts: Facts, overrides: readonly Override[]): ConfigurationProblem[] =>
  oddities.filter((rule) => rule.isBroken(facts)).map((found) => problemOf(found, facts, overrides));

function problemOf(
  { setting, message, remedy }: Pick<Rule, 'setting' | 'message' | 'remedy'>,
  { values }: Facts,
  overrides: readonly Override[],
): ConfigurationProblem {
  const value = valueAt(values, setting.split('.'));
  return {
    path: locationOf(setting, overrides),
    ...(value === undefined ? {} : { value: shown(setting, value) }),
    message,
    remedy,
  };
}

const rules: readonly Rule[] = [
  {
    setting: 'server.proxy_hops',
    dependsOn: ['issuer'],
    // The service only speaks http, so an https issuer means that there is a proxy.
    isBroken: ({ values, settings }) => settings.issuer.startsWith('https:') && values.server.proxy_hops === undefined,
    message: 'is not set, but an https issuer means that a proxy is in front',
    remedy: 'write how many of your proxies append to X-Forwarded-For, usually `1`',
  },
  {
    setting: 'server.operators_port',
    dependsOn: ['server.port'],
    isBroken: ({ values }) => values.server.operators_port === values.server.port,
    message: 'is the same as the port of the public listener',
    remedy: 'choose another port (GATEHOUSE_OPERATORS_PORT), or `0` for any free one',
  },
  {
    setting: 'server.reuse_port',
    dependsOn: ['storage.database_url'],
    isBroken: ({ values: { server, storage } }) => server.reuse_port && storage.database_url === undefined,
    message: 'lets several processes share the port, but only one process can use the embedded database',
    remedy: 'set DATABASE_URL to use PostgreSQL, or write `false`',
  },
  {
    setting: 'storage.database_url',
    dependsOn: ['storage.data_directory'],
    // Without this rule, a service with a forgotten variable would start with an empty database.
    isBroken: ({ values: { storage } }) =>
      storage.data_directory === NO_DATA_DIRECTORY && storage.database_url === undefined,
    message: 'is not set, and storage.data_directory is off: the service has no database',
    remedy: 'set DATABASE_URL, or DATABASE_URL_FILE to a file that holds it',
  },
  {
    setting: 'storage.redis_url',
    dependsOn: ['issuer', 'storage.database_url'],
    // Allow Redis with the embedded database only on a loopback host: nodes would share tokens, but not users.
    isBroken: ({ values: { storage }, settings: { isLoopback } }) =>
      storage.redis_url !== undefined && storage.database_url === undefined && !isLoopback,
    message: 'would store the tokens in Redis but accounts and clients in the embedded database',
    remedy: 'set DATABASE_URL as well, or unset the Redis URL',
  },
  {
    setting: 'sign_in.passwords',
    dependsOn: ['sign_in.providers'],
    isBroken: ({ values: { sign_in: signIn } }) => !signIn.passwords && (signIn.providers ?? []).length === 0,
    message: 'makes every sign-in impossible: there are no passwords and no sign_in.providers',
    remedy: 'configure the providers in sign_in.providers, or write `true`',
  },
  {
    setting: 'sign_in.require',
    dependsOn: ['sign_in.passkeys', 'sign_in.providers', 'issuer'],
    isBroken: ({ settings: { signIn } }) =>
      signIn.require !== 'off' && !signIn.passkeys && signIn.providers.length === 0,
    message: 'requires what is not available: sign_in.passkeys is off and sign_in.providers is empty',
    remedy: 'turn sign_in.passkeys on, configure sign_in.providers, or write `off`',
  },
  {
    setting: 'sign_in.providers',
    dependsOn: ['issuer'],
    isBroken: ({ settings: { issuer, signIn } }) =>
      signIn.providers.some((provider) => new URL(provider.issuer).origin === issuer),
    message: 'is the issuer of this service itself, which is not an OpenID provider',
    remedy: 'write the issuer of the provider at which people have their accounts',
  },
  {
    setting: 'mail.from',
    dependsOn: ['mail.smtp_url'],
    isBroken: ({ values: { mail } }) => mail.smtp_url !== undefined && mail.from === undefined,
    message: 'is not set, but mail needs a sender',
    remedy: 'write the sender address, such as `gatehouse@example.com`',
  },
  {
    setting: 'demo',
    dependsOn: ['issuer', 'storage.database_url'],
    isBroken: ({ values, settings: { isLoopback } }) =>
      values.demo === true && !(isLoopback && values.storage.database_url === undefined),
    message: 'would create an account with a publicly known password on a deployment that others can reach',
    remedy: 'remove it; demo data needs the embedded database and a loopback issuer',
  },
  {
    setting: 'tokens.retry_window',
    dependsOn: ['tokens.refresh_token'],
    isBroken: ({ values }) => values.tokens.retry_window >= values.tokens.refresh_token,
    message: 'is not shorter than the lifetime of a refresh token',
    remedy: 'write a shorter duration, such as `60s`, or `0s` for strict rotation',
  },
  {
    setting: 'tokens.refresh_token',
    dependsOn: ['tokens.absolute_age'],
    isBroken: ({ values: { tokens } }) =>
      tokens.absolute_age !== undefined && tokens.refresh_token > tokens.absolute_age,
    message: 'is longer than tokens.absolute_age, which ends the authorization before the refresh token expires',
    remedy: 'write a duration of at most tokens.absolute_age',
  },
  {
    setting: 'sessions.idle',
    dependsOn: ['sessions.absolute'],
    isBroken: ({ values }) => values.sessions.idle > values.sessions.absolute,
    message: 'is longer than sessions.absolute and therefore has no effect',
    remedy: 'write a duration of at most sessions.absolute',
  },
];

/**
 * True for an IPv4 network of more than 2^24 addresses (also in IPv6 notation), and for an IPv6 network that contains
 * whole providers.
 */
function isHuge(network: string): boolean {
  const [start = '', bits] = network.split('/');
  const prefix = Number(bits);
  if (!start.includes(':')) return prefix < 8;
  return /^(::|[0:]+:)ffff:/i.test(start) ? prefix < 104 : prefix < 16;
}

/** These rules have no `dependsOn`, because they are checked only if all settings have valid values. */
const oddities: readonly Omit<Rule, 'dependsOn'>[] = [
  {
    setting: 'tokens.refresh_token',
    isBroken: ({ values: { tokens } }) => tokens.refresh_token < tokens.access_token,
    message: 'is shorter than tokens.access_token: a refresh token would expire before it is needed',
    remedy: 'write a longer duration, such as `30d`',
  },
  {
    setting: 'limits.client_failures_per_address',
    isBroken: ({ values: { limits } }) => limits.client_failures_per_address < limits.client_failures,
    message: 'is lower than limits.client_failures, which then has no effect',
    remedy: 'write a number that is at least limits.client_failures',
  },
  {
    setting: 'limits.sign_in_failures_per_address',
    isBroken: ({ values: { limits } }) => limits.sign_in_failures_per_address < limits.sign_in_failures,
    message: 'is lower than limits.sign_in_failures, which then has no effect',
    remedy: 'write a number that is at least limits.sign_in_failures',
  },
  {
    setting: 'mail.from',
    isBroken: ({ values: { mail } }) => mail.from !== undefined && mail.smtp_url === undefined,
    message: 'has no effect: mail.smtp_url is not set, so no mail is sent',
    remedy: 'set SMTP_URL, or remove it',
  },
  {
    setting: 'mail.smtp_url',
    isBroken: ({ values: { mail } }) => /^smtp:.*:465\/?$|^smtps:.*:587\/?$/.test(mail.smtp_url ?? ''),
    message: 'has a port that mostly speaks the other kind of TLS: 465 from the first byte, 587 with STARTTLS',
    remedy: 'write smtps:// with port 465, or smtp:// with port 587',
  },
  {
    setting: 'sessions.shared_terminals',
    isBroken: ({ values: { sessions } }) => (sessions.shared_terminals ?? []).some(isHuge),
    message: 'contains millions of addresses: all sessions there end after 15m without a request and with the browser',
    remedy: 'write the networks of the shared computers only',
  },
  {
    setting: 'sign_in.providers',
    isBroken: ({ values: { sign_in: signIn } }) =>
      (signIn.providers ?? []).some(({ match, scopes }) => match === 'verified_email' && !scopes.includes('email')),
    message: 'has a provider without the scope `email`, but accounts are found by email address',
    remedy: 'add `email` to its `scopes`',
  },
];
