/** The form for the name and the redirect URIs of a client: reading it, and drawing it again. */
import { type Client, redirectsPeople } from '../../clients/client.ts';
import type { ClientChanges } from '../../clients/client-registry.ts';
import {
  checkClientName,
  checkRedirectUris,
  MOST_REDIRECT_URIS,
} from '../../clients/client-rules.ts';
import type { Problem } from '../../refusal.ts';
import type { ClientFormView, RedirectUriRow } from './view.ts';

/** What was typed, without the rows that were left empty. */
export interface TypedClient extends ClientChanges {
  /** A button for the rows was pressed, not the one that sends the form. */
  readonly rows: 'sent' | 'changed' | 'one more';
}

/** Any other field is nobody's business: what a client is, no form can change. */
export function readClientForm(form: URLSearchParams, { kind }: Pick<Client, 'kind'>): TypedClient {
  const removed = form.get('remove');
  const entered = redirectsPeople(kind) ? form.getAll('redirect_uris') : [];
  const redirectUris = entered
    .filter((_, row) => String(row) !== removed)
    .map((uri) => uri.trim())
    .filter((uri) => uri !== '');
  const rows = form.has('more') ? 'one more' : removed === null ? 'sent' : 'changed';
  return { name: form.get('name') ?? '', redirectUris, rows };
}

/** What is wrong with it, by the rules of its kind. */
export interface ClientFormFindings {
  readonly name: readonly Problem[];
  /** Those without `index` are about the list. */
  readonly redirectUris: readonly Problem[];
}

export const NO_FINDINGS: ClientFormFindings = { name: [], redirectUris: [] };

export function checkClientForm(
  typed: ClientChanges,
  { kind, isNative }: Pick<Client, 'kind' | 'isNative'>,
): ClientFormFindings {
  const uris = checkRedirectUris(typed.redirectUris, { native: isNative });
  return {
    name: checkClientName(typed.name),
    redirectUris: redirectsPeople(kind) ? uris.problems : [],
  };
}

export const isFine = ({ name, redirectUris }: ClientFormFindings): boolean =>
  name.length === 0 && redirectUris.length === 0;

export function clientFormView(
  typed: TypedClient,
  { kind, isNative }: Pick<Client, 'kind' | 'isNative'>,
  frame: Pick<ClientFormView, 'action' | 'button'> & {
    readonly findings?: ClientFormFindings;
    /** What is wrong beyond the fields. */
    readonly problem?: string | undefined;
  },
): ClientFormView {
  const { findings = NO_FINDINGS, problem, ...rest } = frame;
  const [nameProblem] = findings.name;
  const hasRows = redirectsPeople(kind);
  const rows = hasRows ? rowsOf(typed, findings.redirectUris, isNative) : undefined;
  return {
    ...rest,
    problems: [
      ...(problem === undefined ? [] : [{ message: problem }]),
      ...findings.name.map(({ message }) => ({ field: 'name', message })),
      ...findings.redirectUris.map(({ index, message }) => ({
        field: `redirect-uri-${(index ?? 0) + 1}`,
        message: index === undefined ? message : `Redirect URI ${index + 1}: ${message}`,
      })),
    ],
    name: typed.name,
    nameProblem: nameProblem?.message,
    rows,
    canAddRow: rows !== undefined && rows.length < MOST_REDIRECT_URIS,
  };
}

function rowsOf(
  { redirectUris, rows }: TypedClient,
  problems: readonly Problem[],
  isNative: boolean,
): RedirectUriRow[] {
  const { warnings } = checkRedirectUris(redirectUris, { native: isNative });
  const typed = redirectUris.map((uri, row) => ({
    uri,
    problem: problems.find(({ index }) => index === row)?.message,
    warnings: warnings.filter(({ index }) => index === row).map(({ message }) => message),
    isNew: false,
  }));
  const problem = problems.find(({ code }) => code === 'none')?.message;
  const empty = { uri: '', problem, warnings: [], isNew: rows === 'one more' };
  const needsEmpty = rows === 'one more' && redirectUris.length < MOST_REDIRECT_URIS;
  return needsEmpty || typed.length === 0 ? [...typed, empty] : typed;
}
