import { expect } from 'chai';
import type { Route } from '../../src/pages/routes.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { startSeeded } from '../support/seeded.ts';
import { providerSettings } from '../support/upstream.ts';

/** Steps that many paths share, which the table abbreviates. */
const FORM = 'readForm requireFormToken keepResult';
const OWN_FORM = `${FORM} requireSignedIn requireOwnForm`;

/** All routes, in the order of matching. */
const TABLE = `
POST /oauth/introspect: readOAuthForm requireClient refusePublicClient answerIntrospection
GET /oauth/introspect/changes: readOAuthForm requireClient refuseOthers openStream
GET /oauth/verify: requireProxy answerVerification
POST /oauth/token: allowPages tellRefusal requireContentType readOAuthForm requireClient issueTokens
OPTIONS /oauth/token: preflight
POST /oauth/token/revoke: noteRequest allowPages challengeRefused readForm refuseTokenParameter requireBearer revoke
OPTIONS /oauth/token/revoke: preflight
POST /oauth/revoke: noteRequest allowPages readOAuthForm requireRevokingClient revokeToken
OPTIONS /oauth/revoke: preflight
POST /oauth/token/refresh: refuseOtherBodies readForm refuseOAuth requireSameOrigin keepAlive
OPTIONS /.well-known/oauth-authorization-server: preflight
GET /.well-known/oauth-authorization-server: answerMetadata
OPTIONS /openapi.json: preflight
GET /openapi.json: answerOpenApi
GET /oauth/authorize: pageToClient requireNavigationOrSilence ignoreOpenIdParameters recognize engine
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
GET /profile: requireSignedIn show
GET /profile/oauth-clients: requireSignedIn show
GET /profile/oauth-clients/new: requireSignedIn show
POST /profile/oauth-clients/new: OWN FORM checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id: requireSignedIn requireOwnClient show
GET /profile/oauth-clients/:id/requests: requireSignedIn requireOwnClient openStream
GET /profile/oauth-clients/:id/connect: requireSignedIn requireOwnClient show
GET /profile/oauth-clients/:id/settings: requireSignedIn requireOwnClient show
POST /profile/oauth-clients/:id/settings: OWN FORM requireOwnClient checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id/redirect-uris: requireSignedIn requireOwnClient show
POST /profile/oauth-clients/:id/redirect-uris: OWN FORM requireOwnClient checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id/settings/always-ask: requireSignedIn requireOwnClient show
POST /profile/oauth-clients/:id/settings/always-ask: OWN FORM requireOwnClient checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id/secrets: requireSignedIn requireOwnClient show
GET /profile/oauth-clients/:id/networks: requireSignedIn requireOwnClient show
POST /profile/oauth-clients/:id/networks: OWN FORM requireOwnClient checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id/rotate-secret: requireSignedIn requireOwnClient show
POST /profile/oauth-clients/:id/rotate-secret: OWN FORM requireOwnClient checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id/remove-secret: requireSignedIn requireOwnClient requireAnotherSecret requireSubject show
POST /profile/oauth-clients/:id/remove-secret: OWN FORM requireOwnClient requireAnotherSecret requireSubject checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id/renew: requireSignedIn requireOwnClient requireRenewable requireSubject show
POST /profile/oauth-clients/:id/renew: OWN FORM requireOwnClient requireRenewable requireSubject checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id/problems: requireSignedIn requireOwnClient show
GET /profile/oauth-clients/:id/created: requireSignedIn requireOwnClient show
GET /profile/oauth-clients/test/callback: requireSignedIn finish
GET /profile/oauth-clients/:id/test: requireSignedIn requireOwnClient show
POST /profile/oauth-clients/:id/test: OWN FORM requireOwnClient begin
GET /profile/oauth-clients/:id/test/join/:organization: requireSignedIn requireOwnClient backToTest
POST /profile/oauth-clients/:id/test/join/:organization: OWN FORM requireOwnClient requireRecentSignIn changeMembership
GET /profile/oauth-clients/:id/test/leave/:organization: requireSignedIn requireOwnClient backToTest
POST /profile/oauth-clients/:id/test/leave/:organization: OWN FORM requireOwnClient requireRecentSignIn changeMembership
GET /profile/oauth-clients/:id/links: requireSignedIn requireOwnClient show
POST /profile/oauth-clients/:id/links: OWN FORM requireOwnClient checkForm requireRecentSignIn save
GET /profile/oauth-clients/:id/delete: requireSignedIn requireOwnClient requireSubject show
POST /profile/oauth-clients/:id/delete: OWN FORM requireOwnClient requireSubject checkForm requireRecentSignIn save
GET /profile/connections: requireSignedIn showAll
GET /profile/connections/disconnect-all: requireSignedIn requireSubject show
POST /profile/connections/disconnect-all: OWN FORM requireSubject checkForm save
GET /profile/connections/disconnect-unused: requireSignedIn requireSubject show
POST /profile/connections/disconnect-unused: OWN FORM requireSubject checkForm save
GET /profile/connections/:id: requireSignedIn requireConnection show
POST /profile/connections/:id: OWN FORM requireConnection checkForm requireRecentSignIn save
GET /profile/connections/:id/disconnect: requireSignedIn requireSubject show
POST /profile/connections/:id/disconnect: OWN FORM requireSubject checkForm save
GET /profile/organizations: requireSignedIn list
GET /profile/organizations/:id: requireSignedIn requireAdmin show
GET /profile/organizations/:id/people/:person/end: requireSignedIn sayOwnEnded requireAdmin requireSubject show
POST /profile/organizations/:id/people/:person/end: OWN FORM sayOwnEnded requireAdmin requireSubject checkForm requireRecentSignIn save
GET /profile/organizations/:id/clients/:client/end: requireSignedIn requireAdmin requireSubject show
POST /profile/organizations/:id/clients/:client/end: OWN FORM requireAdmin requireSubject checkForm requireRecentSignIn save
GET /profile/organizations/:id/clients/:client/let-in: requireSignedIn requireAdmin requireSubject show
POST /profile/organizations/:id/clients/:client/let-in: OWN FORM requireAdmin requireSubject checkForm requireRecentSignIn save
GET /profile/organizations/:id/warehouses/:warehouse/clients/:client/end: requireSignedIn requireAdmin requireSubject show
POST /profile/organizations/:id/warehouses/:warehouse/clients/:client/end: OWN FORM requireAdmin requireSubject checkForm requireRecentSignIn save
GET /profile/organizations/:id/warehouses/:warehouse/clients/:client/let-in: requireSignedIn requireAdmin requireSubject show
POST /profile/organizations/:id/warehouses/:warehouse/clients/:client/let-in: OWN FORM requireAdmin requireSubject checkForm requireRecentSignIn save
GET /profile/organizations/:id/policy: requireSignedIn requireAdmin show
POST /profile/organizations/:id/policy: OWN FORM requireAdmin checkForm requireRecentSignIn save
GET /profile/organizations/:id/clients/:client: requireSignedIn requireAdmin show
POST /profile/organizations/:id/clients/:client: OWN FORM requireAdmin checkForm requireRecentSignIn save
GET /profile/api-keys/:id/limit: requireSignedIn requireOwnKey show
POST /profile/api-keys/:id/limit: OWN FORM requireOwnKey checkForm requireRecentSignIn save
GET /profile/api-keys: requireSignedIn show
POST /profile/api-keys: OWN FORM checkForm requireRecentSignIn save
GET /profile/api-keys/created: requireSignedIn showCreated
GET /profile/api-keys/:id/revoke: requireSignedIn requireSubject show
POST /profile/api-keys/:id/revoke: OWN FORM requireSubject checkForm requireRecentSignIn save
GET /profile/activity: requireSignedIn show
GET /profile/security: requireSignedIn show
GET /.well-known/change-password: toPage
GET /profile/security/password: requireSignedIn show
POST /profile/security/password: OWN FORM checkForm save
GET /profile/security/ways: requireSignedIn backToPage
POST /profile/security/ways: OWN FORM requireRecentSignIn link
GET /profile/security/ways/remove: requireSignedIn requireSubject show
POST /profile/security/ways/remove: OWN FORM requireSubject checkForm requireRecentSignIn save
GET /profile/security/passkeys/:id/remove: requireSignedIn requireSubject show
POST /profile/security/passkeys/:id/remove: OWN FORM requireSubject checkForm requireRecentSignIn save
GET /profile/security/password/reset: requireSignedIn backToPage
POST /profile/security/password/reset: OWN FORM reset
GET /profile/security/sessions/:uid/sign-out: requireSignedIn backToPage
POST /profile/security/sessions/:uid/sign-out: OWN FORM signOutThere
GET /profile/security/sign-out-everywhere: requireSignedIn backToPage
POST /profile/security/sign-out-everywhere: OWN FORM signOutEverywhere
GET /profile/security/mail: requireSignedIn show
POST /profile/security/mail: OWN FORM checkForm requireRecentSignIn save
GET /profile/security/first-sign-in: requireSignedIn show
POST /profile/security/first-sign-in: OWN FORM requireRecentSignIn end
GET /profile/stronger-sign-in: requireSignedIn show
GET /passkey-options/sign-in: optionsToSignIn
GET /passkey-options/confirm: requireSignedIn optionsToConfirm
GET /passkey-options/add: requireSignedIn optionsToAdd
GET /profile/security/passkeys/new: requireSignedIn requireRecentSignIn showNew
POST /profile/security/passkeys/new: OWN FORM requireRecentSignIn add
GET /profile/security/passkeys/:id: requireSignedIn requireOwnPasskey show
POST /profile/security/passkeys/:id: OWN FORM requireOwnPasskey checkForm requireRecentSignIn save
GET /errors: index
GET /errors/:code: show
GET /assets/:name: serveAsset
GET /favicon.ico: serveIcon
GET /apple-touch-icon.png: serveIcon
`;

describe('routes', () => {
  const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'gatehouse@localhost' };
  const on = startSeeded({ settings: { mail, signIn: { providers: [providerSettings()] } } });

  const row = ({ method, path, steps }: Route): string =>
    `${method} ${path}: ${steps.map(({ name }) => name).join(' ')}`;
  const rows = (): string[] => on.service.routes().map(row);
  const under = (prefix: string): string[] => rows().filter((row) => row.split(' ')[1]?.startsWith(prefix));
  /** The rows for the forms of pages, without the POST endpoints for programs. */
  const posts = (): string[] => rows().filter((row) => /^POST (?!\/oauth\/|\/login\/platform\/)/.test(row));

  it('the service has exactly the routes in the table', () => {
    const shown = rows().map((row) => row.replace(OWN_FORM, 'OWN FORM').replace(FORM, 'FORM'));
    const next = 'give a new path a row in TABLE, with its steps, and its view a sample in views.test.ts';
    expect(shown.join('\n'), next).to.equal(TABLE.trim());
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

  it('forms that let a client or API key act for a user require a recent sign-in', () => {
    const without = posts().filter((row) => row.includes('requireSignedIn') && !row.includes('requireRecentSignIn'));
    // Exceptions: forms that only remove or test something, or ask for a proof themselves.
    expect(without.map((row) => row.split(': ')[0])).to.deep.equal([
      'POST /profile/oauth-clients/:id/test',
      'POST /profile/connections/disconnect-all',
      'POST /profile/connections/disconnect-unused',
      'POST /profile/connections/:id/disconnect',
      'POST /profile/security/password',
      'POST /profile/security/password/reset',
      'POST /profile/security/sessions/:uid/sign-out',
      'POST /profile/security/sign-out-everywhere',
    ]);
  });

  it('each form of a signed-in user has a page at its own URL, for the time after a new sign-in', () => {
    const pathsOf = (searched: string): string[] =>
      on.service
        .routes()
        .filter(({ method }) => method === searched)
        .filter(({ steps }) => steps.some(({ name }) => name === 'requireSignedIn'))
        .map((route) => route.path);
    expect(pathsOf('GET')).to.include.members(pathsOf('POST'));
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

  it('only its owner can open the pages of a client, and only owners and admins those of an organization', () => {
    const others = [...under('/profile/oauth-clients/:id'), ...under('/profile/organizations/:id')].filter(
      (row) => !/requireSignedIn (requireOwnForm )?(sayOwnEnded )?require(OwnClient|Admin) /.test(row),
    );
    expect(others).to.deep.equal([]);
  });
});
