/** `/profile/oauth-clients/:id/join/:organization` and `leave`: the forms for test organizations on *Connect*. */
import type { Context } from 'koa';
import { message } from '../../base/message.ts';
import type { TestOrganizations } from '../../changes/test-organizations.ts';
import { redirectsPeople } from '../../clients/client.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

/** Lists the test organizations that the user can join or, as a viewer, leave. Empty for a suspended client. */
export async function testOrganizationsFor(ctx: Context, { listFor }: Pick<TestOrganizations, 'listFor'>) {
  const client = ownClientOf(ctx);
  if (client.isSuspended || !redirectsPeople(client.kind)) return [];
  const organizations = await listFor(accountOf(ctx).id);
  return organizations.map(({ id, name, isViewer }) => ({
    id,
    name,
    isViewer,
    action: `${urlOf(client)}/${isViewer ? 'leave' : 'join'}/${id}`,
  }));
}

export function testOrganizationsPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly testOrganizations: TestOrganizations;
}): Route[] {
  const { kit, own, testOrganizations } = parts;

  const backToConnect = (ctx: Context): void => seeOther(ctx, urlOf(ownClientOf(ctx), 'connect'));

  function changing(to: 'join' | 'leave'): Route[] {
    const path = `${CLIENT}/${to}/:organization`;
    /** Lets the user join or leave a test organization. Any other organization gets a 404. */
    async function changeMembership(ctx: Context): Promise<void> {
      const offered = await testOrganizationsFor(ctx, testOrganizations);
      const place = offered.find(({ id }) => id === ctx.params.organization);
      if (!place) return;
      const details = { organization_id: place.id, organization_name: place.name };
      await testOrganizations.change(to, [accountOf(ctx).id, place.id], (tx) =>
        to === 'join'
          ? own.record(ctx, 'membership_set', { ...details, role: 'viewer' }, tx)
          : own.record(ctx, 'membership_removed', details, tx),
      );
      const said = message(to === 'join' ? 'test-organizations.joined' : 'test-organizations.left', {
        organization: place.name,
      });
      await kit.notices.redirect(ctx, urlOf(ownClientOf(ctx), 'connect'), said);
    }
    const steps = [...own.form(), kit.requireRecentSignIn, changeMembership];
    return [get(path, ...own.page, backToConnect), post(path, ...steps)];
  }

  return [...changing('join'), ...changing('leave')];
}
