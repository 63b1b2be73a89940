/** `operator clients reports` and `remove-report`: what people reported about clients. */
import type { Command } from 'commander';
import { Refusal } from '../../base/refusal.ts';
import type { ListedReport } from '../../clients/client-reports.ts';
import type { PageRequest } from '../../storage/pages.ts';
import { addYesOption } from '../command/confirmation.ts';
import { clientNamed } from '../command/names.ts';
import type { Operator } from '../command/operator.ts';
import { addList, type ListForm } from '../command/report.ts';
import type { Registries } from '../registries.ts';

interface Filters {
  readonly client?: string;
}

export function addReports(clients: Command, operator: Operator): void {
  const find = async (registries: Registries, page: PageRequest, { client }: Filters) => {
    const clientId = client && (await clientNamed(registries, client)).id;
    return registries.clientReports.list(clientId, page);
  };
  addList(clients, operator, FORM, find, 'reports')
    .description('what people reported about clients in the last 90 days, the latest first')
    .option('--client <id>', 'only reports about this client')
    .addHelpText(
      'after',
      '\nThe owner of a client does not learn of reports. Do not say who sent one.',
    );

  addYesOption(clients.command('remove-report'))
    .description('remove a report that needs no more attention')
    .argument('<report>', 'its ID, as in `clients reports`')
    .action((id: string) =>
      operator.run(async ({ clientReports, recordChange }) => {
        await operator.confirm(`Removes the report ${id}.`);
        const [clientId = '', accountId = ''] = id.split('/');
        const isRemoved = await clientReports.remove({ clientId, accountId }, (tx, name) => {
          const details = { changed: `removed report about ${name}`, client_id: clientId };
          return recordChange('account_changed', { accountId, details })(tx);
        });
        const remedy = 'See `clients reports`.';
        if (!isRemoved) throw new Refusal('report_unknown', `There is no report ${id}.`, remedy);
        return { value: { id, removed: true }, text: `Removed the report ${id}.` };
      }),
    );
}

const FORM: ListForm<ListedReport> = {
  heading: ['ID', 'AT', 'CLIENT', 'OWNER', 'REASON', 'SENTENCE', 'REPORTED BY'],
  row: (report) => [
    report.id,
    report.at.toISOString(),
    report.clientName,
    report.ownerName ?? '(operator)',
    report.reason,
    report.sentence ?? '',
    report.email,
  ],
  value: (report) => ({
    id: report.id,
    at: report.at,
    client_id: report.clientId,
    client_name: report.clientName,
    owner_name: report.ownerName,
    reason: report.reason,
    sentence: report.sentence,
    account_id: report.accountId,
    email: report.email,
  }),
  nothing: 'Nothing was reported in the last 90 days.',
  filters: ['client'],
};
