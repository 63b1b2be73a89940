/** `/profile/connections/:id/report`: a user reports a client that misbehaves to the operator. */

import type { Context } from 'koa';
import type { Activity } from '../accounts/activity/activity.ts';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import { message, type Text } from '../base/texts.ts';
import { type Client, redirectsPeople } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import {
  type ClientReports,
  MAX_SENTENCE_LENGTH,
  REPORT_REASONS,
  type ReportReason,
  reportFrom,
} from '../clients/client-reports.ts';
import { formOf } from '../provider/form.ts';
import { originInSession } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, post, type Route } from './routes.ts';
import { accountOf, NOTHING_SENT, typedOf } from './signed-in.ts';
import type { FormProblem } from './view-data.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly 'client-report': {
      readonly name: string;
      /** The owner's name; undefined if the operator provides the client. */
      readonly owner: string | undefined;
      readonly notice: Text | undefined;
      readonly action: string;
      readonly problem: FormProblem | undefined;
      readonly reasons: readonly ReportReason[];
      readonly reason: string | undefined;
      readonly sentence: string;
      readonly maxLength: number;
    };
  }
}

/** Counts reports by reason. */
export interface ReportOutcomes {
  clientReported(reason: ReportReason): void;
}

const CONNECTIONS = '/profile/connections';
const PATH = `${CONNECTIONS}/:id/report`;
const SENT = message('client-report.sent');
const TOO_MANY = message('client-report.too-many');

/** The values of the label of the metric. */
export const REPORTED_REASONS: readonly string[] = REPORT_REASONS;

/** Returns the page on which to report the client, connected or not. */
export const reportUrlOf = (clientId: string): string => `${CONNECTIONS}/${clientId}/report`;

export function clientReportPage(parts: {
  readonly kit: PageKit;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly clientReports: Pick<ClientReports, 'add'>;
  readonly activity: Activity;
  /** Limits the reports of each account. */
  readonly limit: AttemptLimit;
  readonly outcomes: ReportOutcomes;
}): Route[] {
  const { kit, clients, clientReports, activity, limit, outcomes } = parts;

  /** Returns the client that the path names; for one without a redirect flow Koa answers 404. */
  async function clientIn(ctx: Context): Promise<Client | undefined> {
    const client = await clients.find(String(ctx.params.id));
    return client && redirectsPeople(client.kind) ? client : undefined;
  }

  async function draw(ctx: Context, typed: URLSearchParams, problem?: FormProblem): Promise<void> {
    const client = await clientIn(ctx);
    if (!client) return;
    await kit.render(ctx, 'client-report', {
      name: client.name,
      owner: client.ownerName,
      notice: typedOf(ctx) ? NOTHING_SENT : undefined,
      action: ctx.path,
      problem,
      reasons: REPORT_REASONS,
      reason: typed.get('reason') ?? undefined,
      sentence: typed.get('sentence') ?? '',
      maxLength: MAX_SENTENCE_LENGTH,
    });
  }

  const show = (ctx: Context): Promise<void> => draw(ctx, typedOf(ctx) ?? new URLSearchParams());

  async function send(ctx: Context): Promise<void> {
    const client = await clientIn(ctx);
    if (!client) return;
    const { id: clientId, name } = client;
    const accountId = accountOf(ctx).id;
    const form = formOf(ctx);
    const report = reportFrom(form);
    if ('message' in report) {
      ctx.status = 422;
      return draw(ctx, form, report);
    }
    const over = await limit.count(accountId);
    if (over) {
      ctx.status = 429;
      ctx.set('Retry-After', String(over.seconds));
      return draw(ctx, form, { message: TOO_MANY });
    }
    // Do not add an action: nodes of the previous version show only the actions that they know.
    const details = { changed: `report about ${name}`, client_id: clientId };
    const entry = { action: 'account_changed', actor: 'person', accountId, details } as const;
    const isAdded = await clientReports.add({ clientId, accountId, ...report }, (tx) =>
      activity.record({ ...entry, origin: originInSession(ctx) }, tx),
    );
    if (!isAdded) return;
    outcomes.clientReported(report.reason);
    await kit.notices.redirect(ctx, CONNECTIONS, SENT);
  }

  const redraw = {
    isForEverybody: true,
    draw: (ctx: Context, problem: Text) => draw(ctx, formOf(ctx), { message: problem }),
  };
  return [get(PATH, kit.requireSignedIn, show), post(PATH, ...kit.ownForm(redraw), send)];
}
