/** The settings under `sign_in` and `sessions`: how users sign in, and for how long. */
import { z } from 'zod';
import { beginsNetwork } from '../../base/network-address.ts';
import { upstreamIssuerProblem } from '../issuer.ts';
import { duration, expectations, flag, oneOf, text } from './kinds.ts';
import { reloadable, section } from './setting.ts';

/** Ids of providers appear in URLs, the log and metrics. */
const ID = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
/** Metrics use these names for sign-in methods without a provider. */
const RESERVED = ['password', 'passkey', 'link'];
/** The characters of a scope (RFC 6749 §3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** A value that a provider may return; blanks separate several (OpenID Connect Core §3.1.2.1). */
const isPlain = (value: string): boolean => /^[\x21-\x7e]{1,255}$/.test(value);

const authenticationContexts = () =>
  z.array(text({ accepts: 'an authentication context', example: '`phr`' }, isPlain)).register(expectations, {
    accepts: 'a list of authentication contexts',
    example: "the provider's own names, such as `[phr]`",
  });

const provider = z.strictObject({
  id: text(
    {
      accepts: `an id of lower-case letters, digits and hyphens, other than ${RESERVED.join(', ')}`,
      example: '`platform`',
    },
    (id) => ID.test(id) && !RESERVED.includes(id),
  ).describe('The name of the provider in URLs, log and metrics. The redirect URI is /login/<id>/callback.'),
  label: text(
    { accepts: 'a name of 1 to 60 visible characters', example: '`Warehouse platform`' },
    (label) => !/\p{C}/u.test(label) && [...label].length <= 60,
  ).describe('Label of the button for this provider on the sign-in page.'),
  issuer: text(
    {
      accepts: 'an issuer: an https URL (http on a loopback host) without query and fragment',
      example: 'the `issuer` in its discovery document, such as `https://id.example.com/`',
    },
    (issuer) => upstreamIssuerProblem(issuer) === undefined,
  ).describe('The issuer of the provider, exactly as in its discovery document.'),
  client_id: text(
    { accepts: 'a client ID', example: 'the client ID that the provider issued for this service' },
    (id) => !/\p{C}/u.test(id),
  ).describe('The client ID that the provider issued for this service.'),
  client_secret_file: text({ accepts: 'a path', example: 'the path of a file with the secret' })
    .exactOptional()
    .describe(
      'File with the client secret, relative to the directory of package.json. Default: none, for a public client.',
    ),
  match: oneOf(['external_id', 'verified_email', 'none'])
    .default('none')
    .describe(
      'How a first sign-in finds the account: by its external id, by its email address if ' +
        'the provider says that it is verified, or not at all (the links are then imported).',
    ),
  account_claim: text({ accepts: 'the name of a claim', example: '`sub`' }, (claim) =>
    /^[\x21-\x7e]{1,100}$/.test(claim),
  )
    .default('sub')
    .describe('The claim of the ID token that contains the external id. Used only with match: external_id.'),
  scopes: z
    .array(text({ accepts: 'a scope', example: '`email`' }, (scope) => SCOPE.test(scope)))
    .register(expectations, { accepts: 'a list of scopes', example: '`[openid, email]`' })
    .default(['openid', 'email', 'profile'])
    .describe('Requested scopes; openid is always requested.'),
  endpoint_hosts: z
    .array(
      text(
        { accepts: 'a host name', example: '`keys.example.com`' },
        (host) => URL.canParse(`https://${host}`) && new URL(`https://${host}`).hostname === host,
      ),
    )
    .max(20)
    .register(expectations, { accepts: 'a list of host names', example: '`[keys.example.com]`' })
    .default([])
    .describe(
      'Hosts on which the provider may have endpoints, in addition to the host of its issuer. For Google and Microsoft, these hosts are built in.',
    ),
  acr_values: authenticationContexts()
    .default([])
    .describe('`acr_values` to request with each sign-in there, in order of preference.'),
  strong: flag()
    .default(true)
    .describe(
      'Whether its sign-ins satisfy sign_in.require. Ignored if strong_acr (by default ' +
        'acr_values) or strong_amr has values.',
    ),
  strong_acr: authenticationContexts()
    .exactOptional()
    .describe(
      'One of these must be the `acr` of its ID token for a sign-in to satisfy sign_in.require. Default: acr_values.',
    ),
  strong_amr: z
    .array(text({ accepts: 'an authentication method', example: '`mfa`' }, isPlain))
    .register(expectations, { accepts: 'a list of authentication methods', example: '`[mfa]`' })
    .default([])
    .describe(
      'One of these must be in the `amr` of its ID token for a sign-in to satisfy ' +
        'sign_in.require. If strong_acr has values, it must match, too.',
    ),
});

export const signIn = section('How people sign in.', {
  passwords: reloadable(flag().default(true), {
    about:
      'Allow sign-in with a password. false needs sign_in.providers, and removes all pages and links for passwords.',
  }),
  passkeys: reloadable(flag().default(true), {
    about:
      'Allow people to add passkeys and sign in with them. Passkeys belong to the host name of the issuer: they are ' +
      'unavailable on an IP address, and existing ones stop working if the name changes.',
  }),
  require: reloadable(oneOf(['off', 'passkey-or-upstream']).default('off'), {
    about:
      'What owners and admins of organizations and owners of clients must sign in with. ' +
      'passkey-or-upstream requires a passkey or one of sign_in.providers.',
  }),
  require_grace: reloadable(duration('0s', '365d').prefault('14d'), {
    about:
      'How long people to whom sign_in.require applies may still use a password, counted ' +
      'from their first notification.',
  }),
  providers: reloadable(
    z
      .array(provider)
      .max(20)
      .register(expectations, {
        accepts: 'a list of at most 20 providers',
        example: 'a list whose entries have `id`, `label`, `issuer` and `client_id`',
      })
      .exactOptional(),
    {
      about:
        'OpenID Connect providers where people already have an account. Each provider gets a ' +
        'button on the sign-in page. Default: none.',
      note:
        'Register {issuer}/login/<id>/callback there as the redirect URI. Each entry needs `id`, `label`, `issuer` ' +
        'and `client_id`; docs/operations/sign-in.md has a complete example.',
      example: [],
    },
  ),
});

const OPEN_SESSIONS = 'also for open sessions';
const network = z.union([z.cidrv4(), z.cidrv6()]).refine(beginsNetwork).register(expectations, {
  accepts: 'a network in CIDR notation with its first address',
  example: '`192.0.2.0/24` or `2001:db8::/32`',
});

export const sessions = section('Lifetimes of browser sessions.', {
  idle: reloadable(duration('1m', '365d').prefault('12h'), {
    reach: OPEN_SESSIONS,
    about: 'How long a browser session lasts without a request.',
  }),
  absolute: reloadable(duration('1m', '365d').prefault('7d'), {
    reach: OPEN_SESSIONS,
    about: 'How long a browser session lasts after the sign-in, even if it is used.',
  }),
  shared_terminals: reloadable(
    z
      .array(network)
      .register(expectations, { accepts: 'a list of networks', example: '`[192.0.2.0/24]`' })
      .exactOptional(),
    {
      reach: `${OPEN_SESSIONS}, from their next request on`,
      about:
        'Networks of computers that people share, in CIDR notation. There, a session ends after 15m without a ' +
        'request (or idle, if shorter) and when the browser is closed, and providers ask who signs in. Default: none.',
    },
  ),
});
