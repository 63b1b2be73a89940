/** Creates all parts that depend on the settings, except the stores. A reload replaces these parts. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { createAccountMail } from '../accounts/mail/account-mail.ts';
import { createBackgroundMail, createSendMail } from '../accounts/mail/mail.ts';
import { createOneTimeValues } from '../accounts/one-time-values.ts';
import { createPasswordLinkRequests, MAX_LINKS_AN_HOUR } from '../accounts/password-links/link-mail.ts';
import { createStrongSignIns } from '../accounts/strong-sign-ins.ts';
import type { Endings } from '../authorizations/endings.ts';
import { createNetworkCheck } from '../base/network-address.ts';
import { createSeals } from '../base/seals.ts';
import type { Settings } from '../config/settings.ts';
import { createBrand } from '../host/brand.ts';
import { createFormTokens } from '../host/form-token.ts';
import { createHost } from '../host/host.ts';
import type { Metrics } from '../host/metrics/metrics.ts';
import { securityHeaders } from '../host/security-headers.ts';
import { createRender } from '../host/views.ts';
import { createErrorPage } from '../pages/error-page/error-page.ts';
import { createNotices } from '../pages/forms/notices.ts';
import { submitResults } from '../pages/forms/submit-results.ts';
import { createLanguageOf } from '../pages/language.ts';
import { foundVisitor, requestOrigin, signedInOf } from '../pages/page.ts';
import { refreshSession } from '../pages/sign-in/current-session.ts';
import { createKnownDevices } from '../pages/sign-in/known-devices.ts';
import { isOpenTo } from '../pages/sign-in/sign-in-policy.ts';
import { createPageKit } from '../pages/signed-in.ts';
import { createRightsInWords } from '../pages/words/rights.ts';
import { createWrongSecretLimit } from '../provider/failure-limits.ts';
import type { ChangeStreams } from '../provider/introspection-changes.ts';
import { createAuthorizationServer } from '../provider/provider.ts';
import { createStandings } from '../provider/standings.ts';
import type { NodeParts } from './common-registries.ts';
import { listPages } from './page-list.ts';
import { wireSignIn } from './sign-in.ts';

export type Application = ReturnType<typeof createApplication>;

/**
 * Creates the provider, the pages and the host. Opens no store and no listener.
 *
 * @param parts the settings, and the parts that a reload does not replace, such as stores and caches
 */
export function createApplication(
  parts: NodeParts & {
    /** A reload must pass the same metrics again, because new metrics would reset every counter. */
    readonly metrics: Metrics;
    readonly endings: Endings;
    readonly changeStreams: ChangeStreams;
    readonly timeoutFactor?: number;
  },
) {
  const { settings, clock, log, database, store, registries, createAttemptLimit, metrics } = parts;
  const { accounts } = registries;
  const { issuer } = settings;
  const { providers, passwords } = settings.signIn;
  const keys = settings.secrets.cookieKeys;
  const { outcomes } = metrics;

  const formTokens = createFormTokens({ issuer, keys });
  // `server` is created below, because it needs `render`. If a store fails, use the user found earlier in the request.
  const findSignedIn = (ctx: Context) =>
    signedInOf(ctx, { sessions: server.sessions, standings }).catch(() => foundVisitor(ctx));
  const strongSignIns = createStrongSignIns({ database, clock, signIn: settings.signIn });
  const standings = createStandings({ ...strongSignIns, providers });
  const brand = createBrand(settings.brand);
  const languageOf = createLanguageOf(issuer);
  const render = createRender({
    formTokens,
    signedInOf: findSignedIn,
    languageOf,
    navigationOf: accounts.navigationOf,
    brand,
  });
  const notices = createNotices({ issuer, keys, clock, signedInOf: findSignedIn });
  const errorPage = createErrorPage({ render });

  const background = createBackgroundMail({ log, outcomes });
  const sendMail = settings.mail && createSendMail(settings.mail, settings.brand);
  const mail = sendMail && createAccountMail({ issuer, accounts, sendMail, background, clock });

  const isShared = createNetworkCheck(settings.sessions.sharedTerminals);
  const devices = createKnownDevices({ issuer, keys, clock, isShared });
  const server = createAuthorizationServer({
    ...parts,
    ...registries,
    standings,
    outcomes,
    requests: registries.clientRequests,
    isKnownBrowser: (ctx, account) => devices.find(ctx, account) !== undefined,
    mail: mail && {
      notifySilent(ctx, accountId, { name }) {
        // Send no mail, because on a shared terminal no browser is known, so each sign-in would cause a mail.
        if (isShared(ctx.ip)) return;
        mail.notify(accountId, 'silent_authorization', { origin: requestOrigin(ctx), about: name });
      },
      notifyNew(ctx, accountId, { name }) {
        mail.notify(accountId, 'new_connection', { origin: requestOrigin(ctx), about: name });
      },
    },
    showError: errorPage.showAuthorizationError,
    showHandover: (ctx, app) => render(ctx, 'handed-over', app),
  });
  const { sessions } = server;

  const signIn = wireSignIn({
    ...parts,
    outcomes,
    server,
    isShared,
    devices,
    standings,
    endGrace: strongSignIns.endGrace,
    browserOf: formTokens.browserOf,
    notices,
    errorPage,
    mail,
  });
  const { hourlyLimit, formDrafts } = signIn;

  const { keepResult, showResult } = submitResults({
    forms: formDrafts,
    signedInOf: (ctx) => signedInOf(ctx, { sessions, standings }),
    isOpenTo,
  });
  const kit = createPageKit({
    ...signIn,
    render,
    rightsInWords: createRightsInWords(settings.rights),
    languageOf,
    notices,
    pageToClient: securityHeaders(issuer).pageToClient,
    forms: formTokens,
    clock,
    accounts,
    sessions,
    standings,
    errorPage,
    keepResult,
  });
  const linkRequests =
    passwords && sendMail
      ? createPasswordLinkRequests({
          issuer,
          accounts,
          links: registries.passwordLinks,
          sendMail,
          perAccount: hourlyLimit('forgot_account', MAX_LINKS_AN_HOUR),
          background,
        })
      : undefined;
  const pages = listPages({
    ...parts,
    server,
    signIn,
    standings,
    isShared,
    kit,
    errorPage,
    mail,
    linkRequests,
    oneTimeValues: createOneTimeValues({ store, clock }),
    seals: createSeals('consent', keys),
  });

  const { requireSameOrigin } = formTokens;
  const { handle, routes } = createHost({
    settings,
    log,
    server,
    errorPage,
    showResult,
    observeRequest: metrics.observeRequest,
    refreshSession: refreshSession({ sessions, standings, requireSameOrigin }),
    brand,
    pages,
  });

  return {
    handle,
    routes,
    /** Undefined if the service sends no mail. */
    mail,
    wrongSecrets: createWrongSecretLimit(createAttemptLimit, settings.limits),
    /** Finishes the background work. Requests in progress can still be answered. */
    async close(): Promise<void> {
      await server.authorizations.close();
      await background.close();
    },
  };
}

/** Returns the application for the present settings. A reload replaces it. */
export function createCurrentApplication(parts: {
  readonly settings: Settings;
  readonly build: (settings: Settings) => Application;
  readonly log: Logger;
}) {
  const { build, log } = parts;
  let current = { settings: parts.settings, application: build(parts.settings) };
  const replacedClosing = new Set<Promise<void>>();

  return {
    get settings(): Settings {
      return current.settings;
    },
    get application(): Application {
      return current.application;
    },

    /** Requests in progress finish with the application that received them. */
    replace(settings: Settings): void {
      const replaced = current.application;
      current = { settings, application: build(settings) };
      log.level = settings.log.level;
      // Do not wait, because the background work of the old application, such as a mail, may take time.
      const closing = replaced
        .close()
        .catch((err: unknown) => log.error({ err }, 'the replaced parts could not be closed after a reload'))
        .finally(() => replacedClosing.delete(closing));
      replacedClosing.add(closing);
    },

    replacedClosed: async (): Promise<void> => {
      await Promise.all(replacedClosing);
    },

    close: (): Promise<void> => current.application.close(),
  };
}
