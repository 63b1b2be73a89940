import { expect } from 'chai';
import type { Route } from '../../src/pages/routes.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { startSeeded } from '../support/seeded.ts';
import { providerSettings } from '../support/upstream.ts';

/** Steps that many paths share, which the table abbreviates. */
const FORM = 'readForm requireFormToken keepResult';
const OWN_FORM = `${FORM} requireSignedIn requireOwnForm`;

/** All routes but those of the profile, which follow the rules below, in the order of matching. */
const TABLE = `
POST /oauth/introspect: readOAuthForm requireClient refusePublicClient answerIntrospection
GET /oauth/introspect/changes: readOAuthForm requireClient refuseOthers openStream
GET /oauth/verify: requireProxy answerVerification
POST /oauth/token: allowPages tellRefusal requireContentType readOAuthForm requireClient issueTokens
OPTIONS /oauth/token: preflight
POST /oauth/token/revoke: allowPages challengeRefused readForm refuseTokenParameter requireBearer revoke
OPTIONS /oauth/token/revoke: preflight
POST /oauth/revoke: allowPages readOAuthForm requireRevokingClient revokeToken
OPTIONS /oauth/revoke: preflight
POST /oauth/token/refresh: refuseOtherBodies readForm refuseOAuth requireSameOrigin keepAlive
OPTIONS /.well-known/oauth-authorization-server: preflight
GET /.well-known/oauth-authorization-server: answerMetadata
OPTIONS /openapi.json: preflight
GET /openapi.json: answerOpenApi
GET /oauth/authorize: pageToClient requireNavigationOrSilence ignoreOpenIdParameters engine
GET /oauth/authorize/:uid: pageToClient requireNavigation engine
GET /interaction/:uid: pageToClient show
POST /interaction/:uid: pageToClient FORM submit
GET /login: requireNavigation show
POST /login: FORM submit
GET /login/platform: requireNavigation beginHere
GET /login/platform/callback: finish
GET /logout: show
POST /logout: FORM submit
GET /language: show
POST /language: FORM choose
GET /password: show
POST /password: FORM submit
GET /forgot-password: show
POST /forgot-password: FORM submit
GET /: toProfile
GET /.well-known/change-password: toPage
GET /passkey-options/sign-in: optionsToSignIn
GET /passkey-options/confirm: requireSignedIn optionsToConfirm
GET /passkey-options/add: requireSignedIn optionsToAdd
GET /errors: index
GET /errors/:code: show
GET /assets/:name: serveAsset
GET /favicon.ico: serveIcon
GET /apple-touch-icon.png: serveIcon
`;

describe('every route checks the sign-in, form token and owner that it needs', () => {
  const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'gatehouse@localhost' };
  const on = startSeeded({ settings: { mail, signIn: { providers: [providerSettings()] } } });

  const row = ({ method, path, steps }: Route): string =>
    `${method} ${path}: ${steps.map(({ name }) => name).join(' ')}`;
  const rows = (): string[] => on.service.routes().map(row);
  const under = (prefix: string): string[] => rows().filter((row) => row.split(' ')[1]?.startsWith(prefix));
  /** The rows for the forms of pages, without the POST endpoints for programs. */
  const posts = (): string[] => rows().filter((row) => /^POST (?!\/oauth\/|\/login\/platform\/)/.test(row));

  it('the table of this test lists exactly the routes outside of the profile', () => {
    const others = rows().filter((row) => !row.split(' ')[1]?.startsWith('/profile'));
    const shown = others.map((row) => row.replace(FORM, 'FORM'));
    expect(shown.join('\n'), 'give a new path a row in TABLE, with its steps').to.equal(TABLE.trim());
  });

  /** The main pages of the profile. */
  const sections = (): string[] =>
    under('/profile/')
      .flatMap((row) => /^GET (\/profile\/[a-z-]+): /.exec(row)?.[1] ?? [])
      // Leave out this page, which replaces the others until the user has completed it.
      .filter((path) => path !== '/profile/stronger-sign-in');

  it('each main page of the profile has an entry in the navigation', async () => {
    const { html } = await (await signedIn(on.service, on.seeded.other)).get('/profile');
    const [navigation = ''] = /<nav class="sections"[\s\S]*?<\/nav>/.exec(html) ?? [];
    const missing = sections().filter((path) => !navigation.includes(`href="${path}"`));
    expect(missing, 'add an entry to views/partials/profile-nav.ejs').to.deep.equal([]);
  });

  it('every form requires a form token, and its result is stored for the Back button', () => {
    const form = new RegExp(`: (pageToClient )?${FORM} `);
    expect(posts()).to.have.length.above(10);
    expect(posts().filter((row) => !form.test(row))).to.deep.equal([]);
  });

  it('profile pages require a sign-in, and their forms require the user for whom they were rendered', () => {
    const own = new RegExp(`^GET [^ ]+ requireSignedIn |^POST [^ ]+ ${OWN_FORM} `);
    expect(under('/profile').filter((row) => !own.test(row))).to.deep.equal([]);
  });

  it('a profile form has the same requirements as the page at the same path, and checkForm runs before any save', () => {
    /** The paths with what they require, apart from what all pages or all forms require. */
    const required = (method: string): readonly string[] =>
      under('/profile')
        .filter((row) => row.startsWith(`${method} `))
        .map((row) =>
          row
            .replace(OWN_FORM, '')
            .replace(/ requireSignedIn| requireRecentSignIn/g, '')
            .split(' '),
        )
        .map(([, path, ...steps]) => [path, ...steps.filter((step) => step.startsWith('require'))].join(' '));
    expect(required('POST')).to.have.length.above(30);
    expect(required('GET')).to.include.members(required('POST'));
    const saving = posts().filter((row) => row.endsWith(' save'));
    expect(saving.filter((row) => !/ checkForm (requireRecentSignIn )?save$/.test(row))).to.deep.equal([]);
  });

  it('every GET route of a profile page ends with the step `show`, except the routes that this test lists', () => {
    const others = under('/profile').filter((row) => /^GET (?!.* show$)/.test(row));
    expect(others.map((row) => row.replace(/^GET \/profile(\S+): .* /, '$1 '))).to.deep.equal([
      '/oauth-clients/:id showOverview',
      '/oauth-clients/:id/problems showProblems',
      '/oauth-clients/:id/created showCreated',
      '/oauth-clients/:id/join/:organization backToConnect',
      '/oauth-clients/:id/leave/:organization backToConnect',
      '/connections showAll',
      '/organizations list',
      '/api-keys/created showCreated',
      '/security/ways backToSecurity',
      '/security/password/reset backToSecurity',
      '/security/sessions/:uid/sign-out backToSecurity',
      '/security/sign-out-everywhere backToSecurity',
      '/security/passkeys/new showNew',
    ]);
  });

  it('each access check (step named `require…`) occurs in the routes of the profile as often as expected', () => {
    const counts: Record<string, number> = {};
    for (const { steps } of on.service.routes().filter(({ path }) => path.startsWith('/profile'))) {
      for (const { name } of steps) if (name.startsWith('require')) counts[name] = (counts[name] ?? 0) + 1;
    }
    expect(counts).to.deep.equal({
      requireSignedIn: 84,
      requireFormToken: 35,
      requireOwnForm: 35,
      requireRecentSignIn: 30,
      requireSubject: 26,
      requireOwnClient: 25,
      requireAdmin: 15,
      requireAnotherSecret: 2,
      requireRenewable: 2,
      requireConnection: 2,
      requireOwnKey: 2,
      requireOwnPasskey: 2,
    });
  });

  it('forms that let a client or API key act for a user require a recent sign-in', () => {
    const without = posts().filter((row) => row.includes('requireSignedIn') && !row.includes('requireRecentSignIn'));
    // Exceptions: forms that only remove something, or ask for a proof themselves.
    expect(without.map((row) => row.split(': ')[0])).to.deep.equal([
      'POST /profile/connections/disconnect-all',
      'POST /profile/connections/:id/disconnect',
      'POST /profile/security/password',
      'POST /profile/security/password/reset',
      'POST /profile/security/sessions/:uid/sign-out',
      'POST /profile/security/sign-out-everywhere',
    ]);
  });

  it('a path with a NUL, which PostgreSQL refuses, is answered 404 on every profile page', async () => {
    const { organization, other } = on.seeded;
    await on.service.memberships.setRole({ accountId: other.accountId }, organization.id, 'owner');
    const owner = await signedIn(on.service, other);
    const paths = on.service.routes().flatMap(({ method, path }) => {
      const known = path.replace('/organizations/:id/', `/organizations/${organization.id}/`);
      return method === 'GET' && /^\/profile\/.*\/:/.test(known) ? [known.replaceAll(/:\w+/g, '%00')] : [];
    });
    expect(paths).to.have.length.above(10);
    for (const path of paths) expect((await owner.get(path)).status, path).to.equal(404);
  });

  it('only the owner opens the pages of a client; only owners and admins open the pages of an organization', () => {
    const others = [...under('/profile/oauth-clients/:id'), ...under('/profile/organizations/:id')].filter(
      (row) => !/requireSignedIn (requireOwnForm )?(sayOwnEnded )?require(OwnClient|Admin) /.test(row),
    );
    expect(others).to.deep.equal([]);
  });
});
