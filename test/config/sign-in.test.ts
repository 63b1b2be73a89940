/** The settings for the upstream providers with which users sign in. */
import { chmodSync } from 'node:fs';
import { expect } from 'chai';
import { inspectSettings, loadSettingsWithoutSecrets } from '../../src/config/load.ts';
import { fileWith, pathsOf, problemsOf, settingsOf } from './configuration.ts';

const ENTRY = {
  id: 'platform',
  label: 'Platform',
  issuer: 'https://id.example.com/realms/a',
  client_id: 'gatehouse',
};
const yamlOf = (...entries: object[]): string => `sign_in: ${JSON.stringify({ providers: entries })}`;

describe('the settings of sign-in providers', () => {
  it('the optional settings of a provider have defaults, and its client secret is read from a separate file', () => {
    const client_secret_file = fileWith('the secret\n', 'secret');
    const file = yamlOf({ ...ENTRY, client_secret_file });
    expect(settingsOf(file).signIn.providers).to.deep.equal([
      {
        id: 'platform',
        label: 'Platform',
        issuer: ENTRY.issuer,
        clientId: 'gatehouse',
        clientSecret: 'the secret',
        match: 'none',
        accountClaim: 'sub',
        scopes: ['openid', 'email', 'profile'],
        endpointHosts: [],
        acrValues: [],
        isStrong: true,
        strongAcr: [],
        strongAmr: [],
      },
    ]);
    expect(settingsOf('{}').signIn).to.deep.equal({
      passwords: true,
      passkeys: true,
      providers: [],
      require: 'off',
      requireGraceSeconds: 14 * 86_400,
    });
    chmodSync(client_secret_file, 0o644);
    const inspection = inspectSettings({ environment: {}, file: fileWith(file) });
    expect(inspection.warnings.map(({ path }) => path)).to.deep.equal(['sign_in.providers.0.client_secret_file']);
    expect(JSON.stringify(inspection.effectiveSettings)).not.to.include('the secret');
    // A command that signs no users in works even if it cannot read the secret of the provider.
    const unreadable = fileWith(yamlOf({ ...ENTRY, client_secret_file: '/nonexistent/secret' }));
    const { signIn } = loadSettingsWithoutSecrets({ environment: {}, file: unreadable });
    expect(signIn.providers[0]).not.to.have.property('clientSecret');
  });

  it('passkeys are enabled only if the issuer has a host name; otherwise check-config warns', () => {
    const inspected = (issuer: string, yaml = '{}') =>
      inspectSettings({ environment: { GATEHOUSE_ISSUER: issuer }, file: fileWith(yaml) });
    const warned = ({ warnings }: ReturnType<typeof inspected>): boolean =>
      warnings.some(({ path }) => path === 'sign_in.passkeys');
    for (const [issuer, has] of [
      ['http://localhost:3000', true],
      ['http://127.0.0.1:3000', false],
      ['http://[::1]:3000', false],
    ] as const) {
      const inspection = inspected(issuer);
      expect(inspection.settings.signIn.passkeys, issuer).to.equal(has);
      expect(warned(inspection), issuer).to.equal(!has);
      const off = inspected(issuer, 'sign_in: { passkeys: false }');
      expect([off.settings.signIn.passkeys, warned(off)], issuer).to.deep.equal([false, false]);
    }
  });

  it('only the requested acr_values make a sign-in strong, unless the settings list other strong values', () => {
    const [first, second] = settingsOf(
      yamlOf(
        { ...ENTRY, acr_values: ['phr', 'phrh'] },
        {
          ...ENTRY,
          id: 'b',
          issuer: 'https://b.example',
          acr_values: ['gold'],
          strong_acr: ['gold', 'silver'],
          strong_amr: ['mfa'],
          strong: false,
          endpoint_hosts: ['keys.example.com', '[2001:db8::1]'],
        },
      ),
    ).signIn.providers;
    expect(first).to.deep.include({ acrValues: ['phr', 'phrh'], strongAcr: ['phr', 'phrh'] });
    expect(second).to.deep.include({
      acrValues: ['gold'],
      strongAcr: ['gold', 'silver'],
      strongAmr: ['mfa'],
      isStrong: false,
      endpointHosts: ['keys.example.com', '[2001:db8::1]'],
    });
  });

  /** What is wrong, in which members of an entry, the place of the problem, and what its error says. */
  const WRONG: readonly (readonly [what: string, wrong: object, path: string, text: RegExp])[] = [
    ['an http issuer', { issuer: 'http://id.example.com' }, '0.issuer', /https/],
    ['a URL query', { issuer: 'https://id.example.com/?a' }, '0.issuer', /query/],
    ['userinfo', { issuer: 'https://a:b@id.example.com' }, '0.issuer', /https/],
    ['no issuer', { issuer: undefined }, '0.issuer', /no value/],
    ['an ID with a slash', { id: 'a/b' }, '0.id', /id of lower-case/],
    ['a secret', { client_secret: 'x y z' }, '0.client_secret', /secret_file/],
    ['a misspelled setting', { lable: 'x' }, '0.lable', /allowed here: id, label,/],
    ['an unknown match', { match: 'email' }, '0.match', /verified_email/],
    ['a missing secret file', { client_secret_file: '/nonexistent' }, '0.client_secret_file', /cannot be read/],
    ['a URL as an endpoint host', { endpoint_hosts: ['https://keys.example.com'] }, '0.endpoint_hosts.0', /host name/],
    ['a space in an ACR', { acr_values: ['a b'] }, '0.acr_values.0', /context/],
    ['the ID of a built-in method', { id: 'password' }, '0.id', /other than/],
    ['a repeated ID', { issuer: 'https://b.example' }, '1.id', /earlier/],
    ['a repeated issuer', { id: 'b' }, '1.issuer', /earlier/],
  ];
  it('a wrong or repeated setting of a sign-in provider is refused, without showing a secret', () => {
    for (const [what, wrong, path, text] of WRONG) {
      const earlier = path.startsWith('1.') ? [ENTRY] : [];
      const [problem, ...others] = problemsOf(yamlOf(...earlier, { ...ENTRY, ...wrong }));
      expect(others, what).to.deep.equal([]);
      expect(problem?.path, what).to.equal(`sign_in.providers.${path}`);
      expect(`${problem?.message} ${problem?.remedy}`, what).to.match(text);
      expect(JSON.stringify(problem), what).not.to.include('x y z');
    }
  });

  it('an invalid sign-in provider is not also reported as missing', () => {
    for (const wrong of [{ lable: 'x' }, { id: 'a/b' }]) {
      const providers = [{ ...ENTRY, ...wrong }];
      expect(pathsOf(`sign_in: ${JSON.stringify({ passwords: false, providers })}`)).to.deep.equal([
        `sign_in.providers.0.${Object.keys(wrong)}`,
      ]);
    }
  });

  it('settings with this service as a sign-in provider are refused', () => {
    const own = `issuer: http://localhost:3000\n${yamlOf({ ...ENTRY, issuer: 'http://localhost:3000' })}`;
    expect(problemsOf(own).map(({ path }) => path)).to.deep.equal(['sign_in.providers']);
    settingsOf(yamlOf({ ...ENTRY, issuer: 'http://127.0.0.1:8080/realms/a' }));
  });
});
