/** `/profile/oauth-clients/new`: a user registers a client, always a confidential one. */
import type { Context, Next } from 'koa';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { OneTimeValues } from '../../accounts/one-time-values.ts';
import { message, type Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { normalizeClientName } from '../../clients/client-rules.ts';
import { formOf } from '../../provider/form.ts';
import { newCreationKey, sentFormFrom } from '../forms/sent-form.ts';
import { originInSession, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Redraw, type Route } from '../routes.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import {
  type ClientFormFindings,
  checkClientForm,
  clientFormView,
  isFine,
  readClientForm,
  refusedForm,
  type TypedClient,
} from './client-form.ts';
import { LIST, urlOf } from './own-client.ts';
import type { ShownSecret } from './secrets.ts';

const PATH = `${LIST}/new`;

/** Only the operator can add clients of other kinds. */
export const SELF_SERVICE = { kind: 'confidential', isNative: false } as const;

export function newClientPage(parts: {
  readonly kit: PageKit;
  readonly clients: ClientRegistry;
  readonly activity: Activity;
  readonly oneTimeValues: OneTimeValues;
  readonly limit: number;
}): Route[] {
  const { kit, clients, activity, oneTimeValues, limit } = parts;

  function draw(
    ctx: Context,
    typed: TypedClient,
    more: { findings?: ClientFormFindings; problem?: Text } = {},
  ): Promise<void> {
    const frame = { action: ctx.path, button: message('oauth-clients.create'), ...more };
    return kit.render(ctx, 'oauth-client-new', {
      notice: typedOf(ctx) && NOTHING_SENT,
      form: { ...clientFormView(typed, SELF_SERVICE, frame), creationKey: newCreationKey() },
    });
  }

  const redraw: Redraw = {
    isForEverybody: true,
    draw: (ctx, problem) => draw(ctx, readClientForm(formOf(ctx), SELF_SERVICE), { problem }),
  };

  function show(ctx: Context): Promise<void> {
    const typed = typedOf(ctx);
    if (typed) return draw(ctx, readClientForm(typed, SELF_SERVICE));
    return draw(ctx, { name: '', redirectUris: [], rows: 'changed' });
  }

  /** Continues if the form was submitted and is valid; otherwise renders it again. */
  async function check(ctx: Context, next: Next): Promise<void> {
    const typed = readClientForm(formOf(ctx), SELF_SERVICE);
    if (typed.rows !== 'sent') return draw(ctx, typed);
    const findings = checkClientForm(typed, SELF_SERVICE);
    if (isFine(findings)) return next();
    ctx.status = 422;
    await draw(ctx, typed, { findings });
  }

  async function create(ctx: Context): Promise<void> {
    const accountId = accountOf(ctx).id;
    const form = formOf(ctx);
    const typed = readClientForm(form, SELF_SERVICE);
    const { name, redirectUris } = typed;
    const sent = sentFormFrom(form, [name, ...redirectUris]);
    const draft = { ...SELF_SERVICE, name, redirectUris, ownerAccountId: accountId };
    try {
      const client = await clients.addOnce(
        { ...draft, maxOfOwner: limit },
        {
          key: sent.key,
          keep(clientId, value) {
            const shown: ShownSecret = { clientId, value, isOfNewClient: true };
            return oneTimeValues.store(accountId, shown, sent.shownAs(clientId));
          },
        },
        (tx, clientId) =>
          activity.record(
            {
              action: 'client_added',
              actor: 'person',
              accountId,
              details: {
                client_id: clientId,
                client_name: normalizeClientName(name),
                redirect_uris: redirectUris,
              },
              origin: originInSession(ctx),
            },
            tx,
          ),
      );
      const once = sent.shownAs(client.id);
      seeOther(ctx, `${urlOf(client)}/created?once=${once}`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      ctx.status = 422;
      await draw(ctx, typed, refusedForm(error, { max: limit }));
    }
  }

  return [
    get(PATH, kit.requireSignedIn, show),
    post(PATH, ...kit.ownForm(redraw), check, kit.requireRecentSignIn, create),
  ];
}
