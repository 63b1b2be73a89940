/** `/profile/security/passkeys`: adds, renames and removes the passkeys of a user. */
import type { Context, Next } from 'koa';
import { describeBrowser } from '../../accounts/browser-names.ts';
import { displayName } from '../../accounts/display-name.ts';
import type { Passkey } from '../../accounts/passkeys/passkey.ts';
import { MAX_PASSKEYS, type Passkeys } from '../../accounts/passkeys/passkeys.ts';
import { isMessage, type Message, message } from '../../base/message.ts';
import { holdsSecret } from '../../base/random-id.ts';
import { Refusal } from '../../base/refusal.ts';
import { requestState } from '../../base/request-state.ts';
import { formOf } from '../../provider/form.ts';
import { formRoutes, problemOf, type Said } from '../form-step.ts';
import { requestOrigin, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route, SECURITY } from '../routes.ts';
import { PASSKEY_OPTIONS, type PasskeySignIns } from '../sign-in/passkey-sign-ins.ts';
import { isPaused } from '../sign-in/password-check.ts';
import type { ContinueIfSatisfied } from '../sign-in/sign-in-policy.ts';
import { accountOf, typedOf } from '../signed-in.ts';
import { momentOrNothing, toMoment } from '../words/moment.ts';

declare module '../view-data.ts' {
  interface ViewData {
    /** The page on which a user creates or renames a passkey. */
    readonly passkey: Said & {
      readonly heading: Message;
      readonly name: string;
      readonly action: string;
      /** The URL from which the page's script fetches the creation options; absent for an existing passkey. */
      readonly optionsUrl?: string;
      readonly button: Message;
      readonly cancel: string;
    };
  }
}

const PATH = `${SECURITY}/passkeys`;
const NEW = `${PATH}/new`;
/** The form field in which the page's script sends the new passkey. */
const NEW_PASSKEY_FIELD = 'made_passkey';
const MAX_NAME_LENGTH = 60;

export function passkeyRows(
  passkeys: readonly Passkey[],
  { isOnlySignInMethod }: { readonly isOnlySignInMethod: boolean },
) {
  return {
    passkeys: passkeys.map(({ id, name, isSynced, createdAt, lastUsedAt }) => ({
      name,
      isSynced,
      created: toMoment(createdAt),
      lastUsed: momentOrNothing(lastUsedAt),
      renameUrl: `${PATH}/${id}`,
      /** Undefined if the passkey is the user's only sign-in method. */
      removeUrl: isOnlySignInMethod ? undefined : `${PATH}/${id}/remove`,
    })),
    /** Undefined if the user has the maximum number of passkeys. */
    addUrl: passkeys.length < MAX_PASSKEYS ? NEW : undefined,
  };
}

const ownPasskeys = requestState<Passkey>('requireOwnPasskey');

export function passkeysPage(parts: {
  readonly kit: PageKit;
  readonly passkeySignIns: PasskeySignIns;
  readonly passkeys: Pick<Passkeys, 'of' | 'rename'>;
  readonly continueIfSatisfied: ContinueIfSatisfied;
}): Route[] {
  const { kit, passkeySignIns, passkeys, continueIfSatisfied } = parts;

  /** @throws 404 unless the path names a passkey of the user */
  async function requireOwnPasskey(ctx: Context, next: Next): Promise<void> {
    const passkey = (await passkeys.of(accountOf(ctx).id)).find(({ id }) => id === ctx.params.id);
    if (!passkey) ctx.throw(404, 'no such passkey of this person');
    ownPasskeys.set(ctx, passkey);
    await next();
  }

  async function optionsToSignIn(ctx: Context): Promise<void> {
    ctx.body = passkeySignIns.optionsToSignIn(ctx);
  }

  async function optionsToConfirm(ctx: Context): Promise<void> {
    ctx.body = await passkeySignIns.optionsToConfirm(ctx, accountOf(ctx));
  }

  /** Requires a recent sign-in, like the page whose script fetches these options. */
  async function optionsToAdd(ctx: Context): Promise<void> {
    if (await kit.isRecent(ctx)) ctx.body = await passkeySignIns.optionsToAdd(ctx, accountOf(ctx));
    else ctx.throw(403, 'the sign-in is not recent');
  }

  const drawNew = (ctx: Context, name: string, said: Said): Promise<void> =>
    kit.render(ctx, 'passkey', {
      heading: message('passkey.add'),
      name,
      ...said,
      action: NEW,
      optionsUrl: PASSKEY_OPTIONS.add,
      button: message('passkey.create'),
      cancel: SECURITY,
    });

  const defaultName = (ctx: Context): string => describeBrowser(requestOrigin(ctx).browser);

  async function showNew(ctx: Context): Promise<void> {
    const name = typedOf(ctx)?.get('name') ?? defaultName(ctx);
    await drawNew(ctx, name, { notice: await kit.notices.take(ctx), problems: [] });
  }

  async function add(ctx: Context): Promise<void> {
    const form = formOf(ctx);
    const answer = form.get(NEW_PASSKEY_FIELD) ?? '';
    // The form has no passkey if it was sent again after a re-authentication.
    if (answer === '') return seeOther(ctx, NEW);
    const account = accountOf(ctx);
    // Replace an invalid name instead of refusing the passkey, because the authenticator has already stored it.
    const name = acceptable(form.get('name') ?? '') ?? defaultName(ctx);
    const added = await passkeySignIns.add(ctx, account, answer, name);
    if (isMessage(added)) {
      if (!isPaused(ctx)) ctx.status = 422;
      return drawNew(ctx, name, { notice: undefined, problems: [{ message: added }] });
    }
    const onward = await continueIfSatisfied(ctx, 'passkey');
    if (onward !== undefined) return seeOther(ctx, onward);
    await kit.notices.redirect(ctx, SECURITY, message('passkey.added'));
  }

  const renaming = formRoutes<{ readonly name: string }>(kit, {
    path: `${PATH}/:id`,
    admit: [requireOwnPasskey],
    isForEverybody: false,
    read: (form) => ({ name: form.get('name') ?? '' }),
    stored: (ctx) => ({ name: ownPasskeys.get(ctx).name }),
    draw: (ctx, { name }, said) =>
      kit.render(ctx, 'passkey', {
        heading: message('passkey.rename'),
        name,
        ...said,
        action: ctx.path,
        button: message('passkey.save'),
        cancel: SECURITY,
      }),
    fieldOf: () => ({ field: 'name' }),
    check(_ctx, { name }) {
      if (acceptable(name) !== undefined) return undefined;
      const isSecret = holdsSecret(name);
      const text = message(isSecret ? 'names.secret' : 'passkey.name-problem', { max: MAX_NAME_LENGTH });
      return { problems: [problemOf(isSecret ? 'name_secret' : 'name_invalid', text)] };
    },
    async save(ctx, { name }) {
      const isRenamed = await passkeys.rename(accountOf(ctx).id, ownPasskeys.get(ctx).id, displayName(name));
      return { url: SECURITY, said: message(isRenamed ? 'passkey.renamed' : 'security.already-removed') };
    },
  });

  return [
    get(PASSKEY_OPTIONS.signIn, optionsToSignIn),
    get(PASSKEY_OPTIONS.confirm, kit.requireSignedIn, optionsToConfirm),
    get(PASSKEY_OPTIONS.add, kit.requireSignedIn, optionsToAdd),
    get(NEW, kit.requireSignedIn, kit.requireRecentSignIn, showNew),
    post(NEW, ...kit.ownForm(), kit.requireRecentSignIn, add),
    ...renaming,
  ];
}

/** Returns undefined if the entered name is invalid. */
function acceptable(entered: string): string | undefined {
  try {
    const name = displayName(entered);
    return [...name].length <= MAX_NAME_LENGTH ? name : undefined;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
