/** Asks the owner to type the name of a client, before what cannot be undone. */
import type { Context, Next } from 'koa';
import type { Text } from '../../base/message.ts';
import type { OwnedClient } from '../../clients/client-row.ts';
import { normalizeClientName } from '../../clients/client-rules.ts';
import { formOf } from '../../provider/form.ts';
import { newCreationKey } from '../forms/sent-form.ts';
import type { PageKit } from '../page-kit.ts';
import { NOTHING_SENT, typedOf } from '../signed-in.ts';
import { type ClientPart, ownClientOf, urlOf } from './own-client.ts';

interface Question {
  /** The verb in the heading and on the button. */
  readonly act: 'Delete' | 'Renew';
  readonly lead: string;
  readonly consequences: readonly string[];
}

/** @param back the page of the client from which the owner came */
export function createNameConfirmation(kit: PageKit, back: ClientPart, questionOf: (client: OwnedClient) => Question) {
  function draw(ctx: Context, typedName = '', problem?: Text, isWrongName = false): Promise<void> {
    const client = ownClientOf(ctx);
    return kit.render(ctx, 'oauth-client-confirm', {
      ...questionOf(client),
      name: client.name,
      notice: typedOf(ctx) && NOTHING_SENT,
      action: ctx.path,
      creationKey: newCreationKey(),
      typedName,
      problem,
      isWrongName,
      cancel: urlOf(client, back),
    });
  }

  return {
    draw,
    show: (ctx: Context): Promise<void> => draw(ctx, typedOf(ctx)?.get('confirm_name') ?? ''),

    /** Continues if the name of the client was typed. */
    async check(ctx: Context, next: Next): Promise<void> {
      const typed = formOf(ctx).get('confirm_name') ?? '';
      if (normalizeClientName(typed) === ownClientOf(ctx).name) return next();
      ctx.status = 422;
      await draw(ctx, typed, 'This is not the name of the client. Type it exactly as shown above.', true);
    },
  };
}
