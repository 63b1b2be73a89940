/** Renders pages from the EJS files of `views/`. These files can use only the variables in `LOCALS`. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ejs from 'ejs';
import type { Context } from 'koa';
import { foundVisitor, type Visitor } from '../pages/page.ts';
import { STRONG_SIGN_IN } from '../pages/sign-in/sign-in-policy.ts';
import type { Render } from '../pages/view-data.ts';
import { type Moment, toMoment } from '../pages/words/moment.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { PRODUCT } from '../texts/name-rules.ts';
import { languages, textsFor } from '../texts/texts.ts';
import { assetUrls } from './assets.ts';
import { type Brand, createBrand } from './brand.ts';
import type { FormTokens } from './form-token.ts';

const directory = fileURLToPath(new URL('../../views', import.meta.url));

const LOCALS = ['page', 'frame', 't', 'assets', 'brand', 'keepAliveUrl'];
/** `strict` makes a misspelled name an error. */
const OPTIONS = { cache: true, strict: true, destructuredLocals: LOCALS };

// Compile all views at the start: an upgrade in place replaces the files while this process still
// runs, and the new views do not fit its data.
const viewsWithNavigation = new Set<string>();
for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.ejs')) continue;
  const file = path.join(directory, name);
  const source = readFileSync(file, 'utf8');
  // Do not set the option `filename`: EJS would then look for each include on the disk, for each page.
  const includer = (other: string) => ({ filename: path.join(path.dirname(file), `${other}.ejs`) });
  ejs.cache.set(file, ejs.compile(source, { ...OPTIONS, includer }));
  if (/profile-nav|client-top/.test(source)) viewsWithNavigation.add(name);
}

function draw(name: string, locals: ejs.Data): string {
  try {
    return (ejs.cache.get(path.join(directory, name)) as ejs.TemplateFunction)(locals);
  } catch (error) {
    throw new Error(`view ${name}: ${(error as Error).message}`, { cause: error });
  }
}

// Check the texts of all languages at the start.
languages();

/** The data that every page gets in addition to its own: the signed-in user, and the token of its forms. */
interface Frame {
  readonly person?: { readonly name: string; readonly email: string };
  /** True if the user owns a client or an API key, so that the navigation shows the pages of clients and API keys. */
  readonly isDeveloper: boolean;
  /** How many clients wait for a decision of an organization that the user owns or administers. */
  readonly waiting: number;
  /** Present if the user will soon need a stronger sign-in: from when, and the page on which to add one. */
  readonly demand?: { readonly until: Moment; readonly href: string };
  /** Read this only for pages with a form, because reading it sets a cookie if the browser has none. */
  readonly formToken: string;
  /** The languages between which the user can choose; empty if there is only one. */
  readonly languages: readonly { readonly tag: string; readonly name: string }[];
  /** False if the page only has a link to the page on which the user can choose a language. */
  readonly hasLanguageForm: boolean;
  /** The address of this page, to which the user returns after choosing a language. */
  readonly drawnAt: string;
}

/** Renders a view, also in contexts that skipped our middleware, like those of oidc-provider. */
export function createRender(parts: {
  formTokens: Pick<FormTokens, 'formToken'>;
  signedInOf(ctx: Context): Promise<Visitor | undefined>;
  /** If absent, all pages are in English. */
  languageOf?(ctx: Context, visitor: Visitor | undefined): string;
  navigationOf?(accountId: string): Promise<Pick<Frame, 'isDeveloper' | 'waiting'>>;
  readonly brand?: Pick<Brand, 'view' | 'stylesheet'>;
}): Render {
  const { formTokens, signedInOf, languageOf, navigationOf } = parts;
  const { view, stylesheet } = parts.brand ?? createBrand({ name: PRODUCT });
  const assets = { ...assetUrls, stylesheet };
  return async (ctx, name, page) => {
    // Show an error of the service at once, without asking a store.
    const visitor = ctx.status >= 500 ? foundVisitor(ctx) : await signedInOf(ctx);
    const hasNavigation = ctx.status < 500 && viewsWithNavigation.has(`${name}.ejs`);
    const { standing } = visitor ?? {};
    const navigation = visitor && hasNavigation && (await navigationOf?.(visitor.account.id).catch(() => undefined));
    const t = textsFor(languageOf?.(ctx, visitor));
    const frame: Frame = {
      ...(visitor && { person: visitor.account }),
      ...(navigation || { isDeveloper: false, waiting: 0 }),
      // Show this only in the grace period: afterwards, the page itself explains what to do.
      ...(standing?.is === 'warned' &&
        ctx.status < 500 &&
        ctx.path !== STRONG_SIGN_IN && {
          demand: { until: toMoment(standing.until), href: STRONG_SIGN_IN },
        }),
      get formToken() {
        return formTokens.formToken(ctx, visitor);
      },
      languages: languageOf ? languageNames() : [],
      // An error page has a link to the choice of languages instead of a form, because a form sets a cookie.
      hasLanguageForm: name !== 'error',
      drawnAt: ctx.originalUrl,
    };
    ctx.set('Content-Language', t.language);
    if (languageOf) ctx.vary('Accept-Language, Cookie');
    ctx.type = 'html';
    const brand = view(t.language);
    ctx.body = draw(`${name}.ejs`, { page, frame, t, assets, brand, keepAliveUrl: ENDPOINT.refreshSession });
  };
}

/** Returns each language with its own name for itself. */
function languageNames(): Frame['languages'] {
  const all = languages().map((tag) => ({ tag, name: textsFor(tag)('language.name') }));
  return all.length > 1 ? all : [];
}
