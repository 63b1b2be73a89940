/** The settings under `sign_in`: how users sign in. */
import { z } from 'zod';
import { upstreamIssuerProblem } from '../issuer.ts';
import { isHost, mailDomain } from '../urls.ts';
import { duration, expectations, flag, oneOf, text } from './kinds.ts';
import { reloadable, section } from './setting.ts';

/** The id of a provider is part of URLs, of the log and of metrics. */
const ID = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
/** Metrics use these names for sign-in methods without a provider. */
const RESERVED = ['password', 'passkey', 'link'];
/** RFC 6749 §3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** What a provider may return. Blanks separate `acr_values` (OpenID Connect Core §3.1.2.1). */
const isPlain = (value: string): boolean => /^[\x21-\x7e]{1,255}$/.test(value);

const authenticationContexts = () =>
  z
    .array(text({ accepts: 'an authentication context', example: '`phr`' }, isPlain))
    .register(expectations, {
      accepts: 'a list of authentication contexts',
      example: '`[phr]`, as the provider calls them',
    });

const provider = z.strictObject({
  id: text(
    {
      accepts: `an id of lower-case letters, digits and hyphens, other than ${RESERVED.join(', ')}`,
      example: '`platform`',
    },
    (id) => ID.test(id) && !RESERVED.includes(id),
  ).describe('Its name in addresses, log and metrics; the redirect URI is /login/<id>/callback.'),
  label: text(
    { accepts: 'a name of 1 to 60 visible characters', example: '`Warehouse platform`' },
    (label) => !/\p{C}/u.test(label) && [...label].length <= 60,
  ).describe('What it is called on the button of the sign-in page.'),
  issuer: text(
    {
      accepts: 'an issuer: an https URL (http on a loopback host) without query and fragment',
      example: 'what its discovery document calls `issuer`, such as `https://id.example.com/`',
    },
    (issuer) => upstreamIssuerProblem(issuer) === undefined,
  ).describe('Its issuer, character by character as its discovery document says it.'),
  client_id: text(
    { accepts: 'a client ID', example: 'the client ID that it has given this service' },
    (id) => !/\p{C}/u.test(id),
  ).describe('The client ID that it has given this service.'),
  client_secret_file: text({ accepts: 'a path', example: 'the path of a file with the secret' })
    .exactOptional()
    .describe(
      'File with the client secret, relative to the directory of package.json. Default: none, ' +
        'for a public client.',
    ),
  match: oneOf(['external_id', 'verified_email', 'none'])
    .default('none')
    .describe(
      'How an account is found at the first sign-in: by its external id, by its email address if ' +
        'the provider says that it is verified, or not at all (links are then imported).',
    ),
  account_claim: text({ accepts: 'the name of a claim', example: '`sub`' }, (claim) =>
    /^[\x21-\x7e]{1,100}$/.test(claim),
  )
    .default('sub')
    .describe('With match: external_id, the claim of its ID token that is the external id.'),
  scopes: z
    .array(text({ accepts: 'a scope', example: '`email`' }, (scope) => SCOPE.test(scope)))
    .register(expectations, { accepts: 'a list of scopes', example: '`[openid, email]`' })
    .default(['openid', 'email', 'profile'])
    .describe('What is asked for; openid always is.'),
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
      'Other hosts than that of its issuer on which its endpoints may be. Those of Google and ' +
        'Microsoft are known.',
    ),
  acr_values: authenticationContexts()
    .default([])
    .describe('What is asked for with each sign-in there (`acr_values`), the most wanted first.'),
  strong: flag()
    .default(true)
    .describe(
      'Its sign-ins satisfy sign_in.require, where neither strong_acr nor strong_amr says which do.',
    ),
  strong_acr: authenticationContexts()
    .exactOptional()
    .describe(
      'One of these must be the `acr` of its ID token for a sign-in to satisfy sign_in.require. ' +
        'Default: acr_values.',
    ),
  strong_amr: z
    .array(text({ accepts: 'an authentication method', example: '`mfa`' }, isPlain))
    .register(expectations, { accepts: 'a list of authentication methods', example: '`[mfa]`' })
    .default([])
    .describe(
      'One of these must be in the `amr` of its ID token for a sign-in to satisfy sign_in.require.',
    ),
  prompt_hint_domains: z
    .array(
      text(
        { accepts: 'the domain of email addresses', example: '`example.com`' },
        (domain) =>
          // Refuse colons, slashes and @: the domain would be only a part of the text.
          /^[^\s@:/?#%\\[\]][^\s@:/?#%\\[\].]*\.[^\s@:/?#%\\[\]]+$/.test(domain) &&
          isHost(mailDomain(domain)),
      ),
    )
    .max(1000)
    .register(expectations, { accepts: 'a list of domains', example: '`[example.com]`' })
    .default([])
    .describe(
      'Domains of email addresses whose people come from it: who types such an address and no ' +
        'password is led there. Subdomains are domains of their own.',
    ),
  create: flag()
    .default(false)
    .describe(
      'Open an account, without any access, for somebody with a verified address and none.',
    ),
  end_connections: flag()
    .default(false)
    .describe(
      'A sign-out there that it tells us of also ends everything that acts for the person.',
    ),
});

export const signIn = section('How people come in.', {
  passwords: reloadable(flag().default(true), {
    about:
      'People may sign in with a password; false needs sign_in.providers, and takes all pages ' +
      'and links for passwords away.',
  }),
  passkeys: reloadable(flag().default(true), {
    about:
      'People may add passkeys and sign in with them. They belong to the host of the issuer: on ' +
      'an IP address there are none, and under another name those that there are do not work.',
  }),
  require: reloadable(oneOf(['off', 'passkey-or-upstream']).default('off'), {
    about:
      'What owners and admins of organizations and people who own clients must sign in with: ' +
      'passkey-or-upstream lets them in with a passkey or from one of sign_in.providers only.',
  }),
  require_grace: reloadable(duration('0s', '365d').prefault('14d'), {
    about:
      'How long a password still lets such a person in, from the first time that they were told.',
  }),
  recovery_wait: reloadable(duration('1h', '30d').prefault('72h'), {
    about:
      'How long such a person waits who lost what they sign in with: from using a mailed link, of ' +
      'which they are mailed with a link to stop it, until another link lets them choose a ' +
      'password and remove what they lost. An invitation by an operator needs no wait.',
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
        'OpenID Connect providers where people have an account already, each with a button on the ' +
        'sign-in page. Default: none.',
      note:
        'Register {issuer}/login/<id>/callback there as the redirect URI, and {issuer}/login/<id>/backchannel-logout ' +
        'if it tells of sign-outs. Each entry needs `id`, `label`, `issuer` and `client_id`; docs/operations/sign-in.md has an example with the rest.',
      example: [],
    },
  ),
});
