/** `/profile/oauth-clients/:id`: the state of a user's client. */
import type { Context } from 'koa';
import type { ClientProblems } from '../../clients/client-problems.ts';
import { formerSecretsOf, peopleText } from '../../clients/client-row.ts';
import type { PageKit } from '../page-kit.ts';
import { get, type Route } from '../routes.ts';
import { momentOrNothing, toMoment } from '../words/moment.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';
import { problemGroupsOf } from './problems.ts';

export function clientPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clientProblems: Pick<ClientProblems, 'groups'>;
}): Route[] {
  const { kit, own, clientProblems } = parts;

  async function show(ctx: Context): Promise<void> {
    // The previous page may have shown a secret, which the browser would otherwise keep for its
    // Back button, even with `no-store`.
    if (ctx.query.from === 'secret') ctx.set('Clear-Site-Data', '"cache"');
    const client = ownClientOf(ctx);
    const groups = problemGroupsOf(await clientProblems.groups(client.id), client);
    const [latest, ...others] = groups.filter(({ isMended }) => !isMended);
    await kit.render(ctx, 'oauth-client', {
      head: await own.head(ctx, ''),
      notice: await kit.notices.take(ctx),
      client: {
        id: client.id,
        created: toMoment(client.createdAt),
        connectedPeople: peopleText(client.connectedPeople),
        lastUsed: momentOrNothing(client.lastUsedAt),
        ownedSince: momentOrNothing(client.ownedSince),
        formerSecrets: formerSecretsOf(client).length,
      },
      secretsUrl: urlOf(client, 'secrets'),
      connectUrl: urlOf(client, 'connect'),
      problems: latest && {
        url: urlOf(client, 'problems'),
        latest: { error: latest.error, cause: latest.cause, last: latest.last },
        others: others.length,
      },
    });
  }

  return [get(CLIENT, ...own.page, show)];
}
