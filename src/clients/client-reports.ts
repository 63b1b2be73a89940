/** Users' reports about clients: for the operator, never for the owner of the client. */
import type { Clock } from '../base/clock.ts';
import { type Message, message } from '../base/texts.ts';
import { transactionOf } from '../storage/account-turns.ts';
import { expiryJob } from '../storage/cleaning.ts';
import { type Page, type PageRequest, pageOf } from '../storage/pages.ts';
import type { Database, InTransaction } from '../storage/queries.ts';
import { withoutSecrets } from './client-problems.ts';

/** The reasons of reports, as they are stored. They are also labels of a metric. */
export const REPORT_REASONS = ['unexpected', 'impersonation', 'misuse', 'other'] as const;

export type ReportReason = (typeof REPORT_REASONS)[number];

export interface ClientReport {
  readonly clientId: string;
  /** The user who reports the client. */
  readonly accountId: string;
  readonly reason: ReportReason;
  /** The user's text, after `withoutSecrets`; null if the user wrote none. */
  readonly sentence: string | null;
}

/** A report with its client and user, for the operator. */
export interface ListedReport extends ClientReport {
  /** Client ID and account ID, as `clientId/accountId`. */
  readonly id: string;
  readonly at: Date;
  readonly clientName: string;
  /** Null if the operator provides the client. */
  readonly ownerName: string | null;
  readonly email: string;
}

export type ClientReports = ReturnType<typeof createClientReports>;

export const MAX_SENTENCE_LENGTH = 300;
const LIFETIME_MS = 90 * 86_400_000;

type Typed = Pick<ClientReport, 'reason' | 'sentence'>;

/** Returns the report of a sent form, or what is wrong with one of its fields. */
export function reportFrom(
  form: URLSearchParams,
): Typed | { readonly field: keyof Typed; readonly message: Message } {
  const reason = form.get('reason') ?? '';
  const sentence = withoutSecrets((form.get('sentence') ?? '').trim().replace(/\s+/g, ' '));
  if (!isReason(reason)) return { field: 'reason', message: message('client-report.no-reason') };
  if (sentence.length > MAX_SENTENCE_LENGTH) {
    return {
      field: 'sentence',
      message: message('client-report.too-long', { max: MAX_SENTENCE_LENGTH }),
    };
  }
  return { reason, sentence: sentence || null };
}

const isReason = (text: string): text is ReportReason =>
  REPORT_REASONS.some((reason) => reason === text);

export function createClientReports(parts: { readonly database: Database; readonly clock: Clock }) {
  const { database, clock } = parts;
  return {
    /**
     * Stores the report in place of an earlier one of the same user about this client.
     *
     * @returns false if the client no longer exists (then nothing is stored)
     */
    add: (
      { clientId, accountId, reason, sentence }: ClientReport,
      inTransaction: InTransaction,
    ): Promise<boolean> =>
      transactionOf(database, accountId, async (tx) => {
        const added = await tx.query(
          `INSERT INTO client_reports (client_id, account_id, reason, sentence, at)
            SELECT id, $2, $3, $4, $5 FROM clients WHERE id = $1 FOR KEY SHARE
            ON CONFLICT (client_id, account_id) DO UPDATE
              SET reason = excluded.reason, sentence = excluded.sentence, at = excluded.at
            RETURNING 1`,
          [clientId, accountId, reason, sentence, new Date(clock())],
        );
        if (added.length > 0) await inTransaction(tx);
        return added.length > 0;
      }),

    /** Returns the reports of the last 90 days, latest first. @param clientId undefined for all */
    list: (clientId: string | undefined, page: PageRequest): Promise<Page<ListedReport>> =>
      pageOf<ListedReport>(
        database,
        {
          select: `SELECT r.client_id || '/' || r.account_id AS id, r.client_id AS "clientId",
              r.account_id AS "accountId", r.reason, r.sentence, r.at, c.name AS "clientName",
              o.name AS "ownerName", a.email
            FROM client_reports r JOIN clients c ON c.id = r.client_id
            JOIN accounts a ON a.id = r.account_id LEFT JOIN accounts o ON o.id = c.owner_account_id
            WHERE r.at > $1 AND (r.client_id = $2 OR $2::text IS NULL)`,
          order: ['at', 'id'],
          isDescending: true,
          cells: ['id', '"clientName"', '"ownerName"', 'email', 'reason', 'sentence'],
          values: [new Date(clock() - LIFETIME_MS), clientId ?? null],
        },
        page,
      ),

    /**
     * Deletes a report that needs no more attention. `inTransaction` receives the client's name.
     *
     * @returns false if there is no such report
     */
    remove: (
      { clientId, accountId }: Pick<ClientReport, 'clientId' | 'accountId'>,
      inTransaction: InTransaction<string>,
    ): Promise<boolean> =>
      transactionOf(database, accountId, async (tx) => {
        const [removed] = await tx.query<{ name: string }>(
          `DELETE FROM client_reports r USING clients c
            WHERE r.client_id = $1 AND r.account_id = $2 AND c.id = r.client_id RETURNING c.name`,
          [clientId, accountId],
        );
        if (removed) await inTransaction(tx, removed.name);
        return removed !== undefined;
      }),

    removeExpired: expiryJob(parts, [{ table: 'client_reports', column: 'at' }], LIFETIME_MS),
  };
}
