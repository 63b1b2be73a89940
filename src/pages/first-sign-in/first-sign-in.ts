/**
 * `/profile/security/first-sign-in`: after the first sign-in with a provider, lists sign-in methods,
 * sessions, clients and API keys for the user to end: an attacker may have used the invitation.
 */
import type { Context } from 'koa';
import type { SignInMethods } from '../../accounts/sign-in-methods.ts';
import { message, type Text } from '../../base/message.ts';
import { formOf } from '../../provider/form.ts';
import type { FormDrafts } from '../forms/form-drafts.ts';
import { originInSession, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import type { EndingChoice, EndingChoices } from '../password/recovery.ts';
import { get, post, type Route } from '../routes.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import { accountOf, typedOf } from '../signed-in.ts';
import { FIRST_SIGN_IN, type FirstSignIn, ONWARD, PASSWORD, SESSIONS, WAY } from './question.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'first-sign-in': {
      readonly label: string;
      readonly action: string;
      readonly choices: readonly EndingChoice[];
      /** Hidden fields: the parameters of the URL. */
      readonly fields: readonly { readonly name: string; readonly value: string }[];
      /** The URL to which the user continues. */
      readonly onward: string;
      readonly problem: Text | undefined;
    };
  }
}

const HOME = '/profile';
const LAST = message('first-sign-in.last');
const ENDED = message('first-sign-in.done');

export function firstSignInPage(parts: {
  readonly kit: PageKit;
  readonly firstSignIn: Pick<FirstSignIn, 'choices'>;
  readonly signInMethods: Pick<SignInMethods, 'of' | 'endUnrecognized'>;
  readonly endingChoices: Pick<EndingChoices, 'ending'>;
  readonly formDrafts: Pick<FormDrafts, 'find'>;
  readonly signIns: Pick<BrowserSignIns, 'keep'>;
  readonly passwords: boolean;
}): Route[] {
  const { kit, firstSignIn, signInMethods, endingChoices, formDrafts, signIns, passwords } = parts;

  /** Takes values from the form first: after a confirmation the URL has no parameters. */
  async function askedFor(ctx: Context) {
    const account = accountOf(ctx);
    const form = ctx.method === 'POST' ? formOf(ctx) : typedOf(ctx);
    const said = (name: string): string => form?.get(name) ?? String(ctx.query[name] ?? '');
    const [methodId, kept] = [said(WAY), said(ONWARD)];
    const onward = await formDrafts.find(ctx, 'onward', kept, account.id);
    const method = (await signInMethods.of(account.id)).find((one) => one.id === methodId);
    const choices = method ? await firstSignIn.choices(ctx, account, method.id) : [];
    return {
      method,
      kept,
      choices: choices.map((choice) => ({ ...choice, isChosen: isTicked(form, choice) })),
      onward: isOurs(onward) ? onward : HOME,
    };
  }

  async function draw(ctx: Context, problem?: Text): Promise<void> {
    const { method, kept, choices, onward } = await askedFor(ctx);
    if (!method || choices.length === 0) return seeOther(ctx, onward);
    // Allow redirects to clients: the target may be an authorization request.
    await kit.pageToClient(ctx, async () => {});
    await kit.render(ctx, 'first-sign-in', {
      label: method.label,
      action: FIRST_SIGN_IN,
      choices,
      fields: [
        { name: WAY, value: method.id },
        { name: ONWARD, value: kept },
      ],
      onward,
      problem,
    });
  }

  async function end(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const { choices, onward } = await askedFor(ctx);
    const form = formOf(ctx);
    const ticked = choices.filter(({ isChosen }) => isChosen);
    if (ticked.length === 0) return seeOther(ctx, onward);
    const { ways, run } = endingChoices.ending(ctx);
    const left = await signInMethods.endUnrecognized(account.id, {
      origin: originInSession(ctx),
      password: form.get(PASSWORD) === 'yes',
      sessions: form.get(SESSIONS) === 'yes',
      passwords,
      ways,
      rest: (tx, ended) => run(tx, { account: ended }),
    });
    if (left === 'last') {
      ctx.status = 422;
      return draw(ctx, LAST);
    }
    const more = [message('mail.removed-access'), { items: ticked.map(({ what }) => what) }];
    await signIns.keep(ctx, left, { what: 'unrecognized_ended', more });
    await kit.notices.redirect(ctx, onward, ENDED);
  }

  const show = (ctx: Context): Promise<void> => draw(ctx);

  return [
    get(FIRST_SIGN_IN, kit.requireSignedIn, show),
    post(FIRST_SIGN_IN, ...kit.ownForm(), kit.requireRecentSignIn, end),
  ];
}

const isTicked = (form: URLSearchParams | undefined, { name, value }: EndingChoice): boolean =>
  form?.getAll(name).includes(value) ?? false;

/** Accepts only one of our paths: the same store also keeps other drafts of this user. */
const isOurs = (onward: unknown): onward is string => typeof onward === 'string' && /^\/(?![/\\])/.test(onward);
