/** The providers that people come from, as the settings file says them. */
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
const yamlOf = (...entries: object[]): string =>
  `sign_in: ${JSON.stringify({ providers: entries })}`;

describe('the settings of sign-in providers', () => {
  it('have defaults, and the secret out of a file of its own', () => {
    const client_secret_file = fileWith('the secret\n', 'secret');
    const file = yamlOf({ ...ENTRY, client_secret_file });
    expect(settingsOf(file).signIn.providers).to.deep.equal([
      {
        ...{ id: 'platform', label: 'Platform', issuer: ENTRY.issuer, clientId: 'gatehouse' },
        ...{ clientSecret: 'the secret', match: 'none', accountClaim: 'sub' },
        ...{ scopes: ['openid', 'email', 'profile'], hintDomains: [] },
        ...{ create: false, endConnections: false, endpointHosts: [], acrValues: [] },
        ...{ isStrong: true, strongAcr: [], strongAmr: [] },
      },
    ]);
    expect(settingsOf('').signIn).to.deep.equal({
      ...{ passwords: true, passkeys: true, providers: [] },
      ...{ require: 'off', requireGraceSeconds: 14 * 86_400 },
      recoveryWaitSeconds: 72 * 3_600,
    });
    chmodSync(client_secret_file, 0o644);
    const inspection = inspectSettings({ environment: {}, file: fileWith(file) });
    expect(inspection.warnings.map(({ path }) => path)).to.deep.equal([
      'sign_in.providers.0.client_secret_file',
    ]);
    expect(JSON.stringify(inspection.effectiveSettings)).not.to.include('the secret');
    // A command that signs nobody in need not be able to read it.
    const gone = fileWith(yamlOf({ ...ENTRY, client_secret_file: '/nonexistent/secret' }));
    const { signIn } = loadSettingsWithoutSecrets({ environment: {}, file: gone });
    expect(signIn.providers[0]).not.to.have.property('clientSecret');
  });

  it('have passkeys where the issuer has a name, and check-config says where it has none', () => {
    const inspected = (issuer: string, yaml = '') =>
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

  it('must prove what is asked for, unless it is said what else counts', () => {
    const [first, second] = settingsOf(
      yamlOf(
        { ...ENTRY, acr_values: ['phr', 'phrh'] },
        {
          ...{ ...ENTRY, id: 'b', issuer: 'https://b.example' },
          ...{ acr_values: ['gold'], strong_acr: ['gold', 'silver'], strong_amr: ['mfa'] },
          ...{ strong: false, endpoint_hosts: ['keys.example.com', '[2001:db8::1]'] },
        },
      ),
    ).signIn.providers;
    expect(first).to.deep.include({ acrValues: ['phr', 'phrh'], strongAcr: ['phr', 'phrh'] });
    expect(second).to.deep.include({
      ...{ acrValues: ['gold'], strongAcr: ['gold', 'silver'], strongAmr: ['mfa'] },
      ...{ isStrong: false, endpointHosts: ['keys.example.com', '[2001:db8::1]'] },
    });
  });

  const WRONG: readonly (readonly [what: string, yaml: string, path: string, said: RegExp])[] = [
    ['an http issuer', yamlOf({ ...ENTRY, issuer: 'http://id.example.com' }), '0.issuer', /https/],
    ['a query', yamlOf({ ...ENTRY, issuer: 'https://id.example.com/?a' }), '0.issuer', /query/],
    ['a login', yamlOf({ ...ENTRY, issuer: 'https://a:b@id.example.com' }), '0.issuer', /https/],
    ['no issuer', yamlOf({ ...ENTRY, issuer: undefined }), '0.issuer', /no value/],
    ['an id for an address', yamlOf({ ...ENTRY, id: 'a/b' }), '0.id', /id of lower-case/],
    ['a secret', yamlOf({ ...ENTRY, client_secret: 'x y z' }), '0.client_secret', /secret_file/],
    ['a slip', yamlOf({ ...ENTRY, lable: 'x' }), '0.lable', /did you mean `label`/],
    ['another match', yamlOf({ ...ENTRY, match: 'email' }), '0.match', /verified_email/],
    [
      'a missing file',
      yamlOf({ ...ENTRY, client_secret_file: '/nonexistent' }),
      '0.client_secret_file',
      /cannot be read/,
    ],
    [
      'a URL for a host',
      yamlOf({ ...ENTRY, endpoint_hosts: ['https://keys.example.com'] }),
      '0.endpoint_hosts.0',
      /host name/,
    ],
    ['two contexts in one', yamlOf({ ...ENTRY, acr_values: ['a b'] }), '0.acr_values.0', /context/],
    ['the name of another way in', yamlOf({ ...ENTRY, id: 'password' }), '0.id', /other than/],
    [
      'an address for a domain',
      yamlOf({ ...ENTRY, prompt_hint_domains: ['a@b.example'] }),
      '0.prompt_hint_domains.0',
      /domain of email addresses/,
    ],
    [
      'a domain of two providers',
      yamlOf(
        { ...ENTRY, prompt_hint_domains: ['a.example', 'bücher.example'] },
        {
          ...{ ...ENTRY, id: 'b', issuer: 'https://b.example' },
          prompt_hint_domains: ['c.example', 'XN--bcher-kva.example'],
        },
      ),
      '1.prompt_hint_domains.1',
      /platform as well/,
    ],
    ['one id twice', yamlOf(ENTRY, { ...ENTRY, issuer: 'https://b.example' }), '1.id', /earlier/],
    ['one issuer twice', yamlOf(ENTRY, { ...ENTRY, id: 'b' }), '1.issuer', /earlier/],
  ];
  for (const [what, yaml, path, said] of WRONG) {
    it(`refuse ${what}`, () => {
      const [problem, ...others] = problemsOf(yaml);
      expect(others).to.deep.equal([]);
      expect(problem?.path).to.equal(`sign_in.providers.${path}`);
      expect(`${problem?.message} ${problem?.remedy}`).to.match(said);
      expect(JSON.stringify(problem)).not.to.include('x y z');
    });
  }

  it('are not said to be missing where one of them is wrong', () => {
    for (const wrong of [{ lable: 'x' }, { id: 'a/b' }]) {
      const providers = [{ ...ENTRY, ...wrong }];
      expect(pathsOf(`sign_in: ${JSON.stringify({ passwords: false, providers })}`)).to.deep.equal([
        `sign_in.providers.0.${Object.keys(wrong)}`,
      ]);
    }
  });

  it('ask for more than a password only where there is more', () => {
    const { signIn } = settingsOf('sign_in: { require: passkey-or-upstream, require_grace: 2d }');
    expect(signIn.requireGraceSeconds).to.equal(2 * 86_400);
    expect(settingsOf('').signIn.require).to.equal('off');
    const refused = problemsOf('sign_in: { require: passkey-or-upstream, passkeys: false }');
    expect(refused.map(({ path }) => path)).to.deep.equal(['sign_in.require']);
  });

  it('leave some way in, and lead to another service', () => {
    expect(problemsOf('sign_in: { passwords: false }').map(({ path }) => path)).to.deep.equal([
      'sign_in.passwords',
    ]);
    const own = `issuer: http://localhost:3000\n${yamlOf({ ...ENTRY, issuer: 'http://localhost:3000' })}`;
    expect(problemsOf(own).map(({ path }) => path)).to.deep.equal(['sign_in.providers']);
    settingsOf(yamlOf({ ...ENTRY, issuer: 'http://127.0.0.1:8080/realms/a' }));
  });
});
