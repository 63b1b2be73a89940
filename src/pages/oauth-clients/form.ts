/** The form for the name and the redirect URIs of a client: reading it, and drawing it again. */
import { createHash } from 'node:crypto';
import type { Problem, Refusal } from '../../base/refusal.ts';
import { type Client, redirectsPeople } from '../../clients/client.ts';
import type { ClientChanges } from '../../clients/client-edits.ts';
import {
  checkClientName,
  checkRedirectUris,
  MOST_REDIRECT_URIS,
  normalizeClientName,
} from '../../clients/client-rules.ts';
import type { ClientFormView, RedirectUriRow } from './view.ts';

/** What was typed, without the rows that were left empty. */
export interface TypedClient extends ClientChanges {
  /** A button for the rows was pressed, not the one that sends the form. */
  readonly rows: 'sent' | 'changed' | 'one more';
  /** What the client was when the form was drawn (`stampOf`); absent for a new client. */
  readonly drawnFrom?: string | undefined;
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
  const drawnFrom = form.get('drawn_from') ?? undefined;
  return { name: form.get('name') ?? '', redirectUris, rows, drawnFrom };
}

/**
 * What of a client the form changes, as a field of that form: a digest of the name, and one of each
 * redirect URI. The URIs themselves, twice, would be more than a form may hold.
 */
export const stampOf = ({ name, redirectUris }: Pick<Client, 'name' | 'redirectUris'>): string =>
  [name, ...redirectUris].map(digestOf).join('.');

const digestOf = (value: string): string =>
  createHash('sha256').update(value).digest('base64url').slice(0, 12);

/** What was changed by another tab or person after the form was drawn, with what was typed kept. */
export interface MergedClient {
  readonly typed: TypedClient;
  /** Sentences. */
  readonly changes: readonly string[];
}

/** @returns undefined where the client is still what the form was drawn from. */
export function mergeChanges(
  typed: TypedClient,
  client: Pick<Client, 'name' | 'redirectUris'>,
): MergedClient | undefined {
  const { drawnFrom } = typed;
  // A node of the version before draws none.
  if (drawnFrom === undefined || drawnFrom === stampOf(client)) return undefined;
  const [nameBefore, ...urisBefore] = drawnFrom.split('.');
  const urisNow = client.redirectUris.map(digestOf);
  const isRemoved = (uri: string): boolean =>
    urisBefore.includes(digestOf(uri)) && !urisNow.includes(digestOf(uri));
  const added = client.redirectUris.filter((uri) => !urisBefore.includes(digestOf(uri)));
  const removed = typed.redirectUris.filter(isRemoved);
  const isRenamed = digestOf(client.name) !== nameBefore;
  const isNameTyped = digestOf(normalizeClientName(typed.name)) !== nameBefore;
  const kept = typed.redirectUris.filter((uri) => !isRemoved(uri));
  return {
    typed: {
      name: isRenamed && !isNameTyped ? client.name : typed.name,
      redirectUris: kept.concat(added.filter((uri) => !kept.includes(uri))),
      rows: 'sent',
      drawnFrom: stampOf(client),
    },
    changes: [
      ...(isRenamed ? [`Its name is now “${client.name}”.`] : []),
      ...added.map((uri) => `Added: ${uri}`),
      ...removed.map((uri) => `Removed: ${uri}`),
    ],
  };
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
  client: Pick<Client, 'kind' | 'isNative'> & Partial<Pick<Client, 'name'>>,
): ClientFormFindings {
  const { kind, isNative, name } = client;
  const uris = checkRedirectUris(typed.redirectUris, { native: isNative });
  const isSame = normalizeClientName(typed.name) === name;
  return {
    name: checkClientName(typed.name, isSame ? 'as before' : 'by its owner'),
    redirectUris: redirectsPeople(kind) ? uris.problems : [],
  };
}

/** What a refusal says of the name belongs to its field. */
export function refusedForm({ problems, message, remedy }: Refusal): RefusedForm {
  const name = problems.filter(({ code }) => code.startsWith('name_'));
  if (name.length === 0 || name.length < problems.length)
    return { problem: `${message} ${remedy}` };
  return { findings: { name, redirectUris: [] } };
}

interface RefusedForm {
  readonly findings?: ClientFormFindings;
  readonly problem?: string;
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
    /** What was changed by another tab or person, under that. */
    readonly changes?: readonly string[];
  },
): ClientFormView {
  const { findings = NO_FINDINGS, problem, changes = [], ...rest } = frame;
  const [nameProblem] = findings.name;
  const hasRows = redirectsPeople(kind);
  const rows = hasRows ? rowsOf(typed, findings.redirectUris, isNative) : undefined;
  return {
    ...rest,
    problems: [
      ...(problem === undefined ? [] : [{ message: problem }]),
      ...changes.map((message) => ({ message })),
      ...findings.name.map(({ message }) => ({ field: 'name', message })),
      ...findings.redirectUris.map(({ index, message }) => ({
        field: `redirect-uri-${(index ?? 0) + 1}`,
        message: index === undefined ? message : `Redirect URI ${index + 1}: ${message}`,
      })),
    ],
    drawnFrom: typed.drawnFrom,
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
