/** `operator clients reports`: what people reported about clients. */
import type { Command } from 'commander';
import type { ListedReport } from '../../clients/client-reports.ts';
import { clientNamed } from '../command/names.ts';
import type { Operator } from '../command/operator.ts';
import {
  type ListForm,
  type ListOptions,
  listed,
  listReport,
  requestedPage,
} from '../command/report.ts';

export function addReports(clients: Command, operator: Operator): void {
  listed(clients.command('reports'))
    .description('what people reported about clients in the last 90 days, the latest first')
    .option('--client <id>', 'only reports about this client')
    .addHelpText(
      'after',
      '\nThe owner of a client does not learn of reports. Do not say who sent one.',
    )
    .action((options: ListOptions & { readonly client?: string }) =>
      operator.run(async (registries) => {
        const clientId = options.client && (await clientNamed(registries, options.client)).id;
        const page = requestedPage(options, operator);
        return listReport(await registries.clientReports.list(clientId, page), FORM, options);
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
