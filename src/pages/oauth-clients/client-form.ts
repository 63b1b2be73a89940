/** Reads and renders the form for the name and the redirect URIs of a client. */
import { createHash } from 'node:crypto';
import { type Message, message, type Text, type Values } from '../../base/message.ts';
import type { Problem, Refusal } from '../../base/refusal.ts';
import { type Client, redirectsPeople } from '../../clients/client.ts';
import type { ClientChanges } from '../../clients/client-edits.ts';
import {
  checkClientName,
  checkRedirectUris,
  MAX_REDIRECT_URIS,
  normalizeClientName,
} from '../../clients/client-rules.ts';
import { isUnknown } from '../../texts/texts.ts';
import type { ClientFormView, RedirectUriRow } from './view.ts';

/** The entered values, without empty rows. */
export interface TypedClient extends ClientChanges {
  /** `sent` with the submit button; the others with a button that removes or adds a row. */
  readonly rows: 'sent' | 'changed' | 'one more';
  /** The `stampOf` value of the client when the form was rendered; undefined for a new client. */
  readonly drawnFrom?: string | undefined;
}

/** Reads only these fields: no form can change, for example, the kind of a client. */
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
 * Returns, for a hidden field, a digest of the name and of each redirect URI. If the form also
 * contained the earlier URIs themselves, it could exceed the maximum size.
 */
export const stampOf = ({ name, redirectUris }: Pick<Client, 'name' | 'redirectUris'>): string =>
  [name, ...redirectUris].map(digestOf).join('.');

const digestOf = (value: string): string => createHash('sha256').update(value).digest('base64url').slice(0, 12);

/** The entered values, merged with changes from another tab or user since the form was rendered. */
export interface MergedClient {
  readonly typed: TypedClient;
  /** The changes from the other tab or user, as sentences. */
  readonly changes: readonly Message[];
}

/** @returns undefined if the client has not changed since the form was rendered. */
export function mergeChanges(
  typed: TypedClient,
  client: Pick<Client, 'name' | 'redirectUris'>,
): MergedClient | undefined {
  const { drawnFrom } = typed;
  // Without the field, which every form of ours has, nothing can be compared.
  if (drawnFrom === undefined || drawnFrom === stampOf(client)) return undefined;
  const [nameBefore, ...urisBefore] = drawnFrom.split('.');
  const urisNow = client.redirectUris.map(digestOf);
  const isRemoved = (uri: string): boolean => urisBefore.includes(digestOf(uri)) && !urisNow.includes(digestOf(uri));
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
      ...(isRenamed ? [message('client-form.now-named', { name: client.name })] : []),
      ...added.map((uri) => message('client-form.added', { uri })),
      ...removed.map((uri) => message('client-form.removed', { uri })),
    ],
  };
}

/** The problems of a form, by the rules of the client's kind. */
export interface ClientFormFindings {
  readonly name: readonly Problem[];
  /** Problems without `index` are about the whole list. */
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

/** Assigns a refusal that is only about the name to the name's field. */
export function refusedForm(refusal: Refusal, values?: Values): RefusedForm {
  const { problems } = refusal;
  const name = problems.filter(({ code }) => code.startsWith('name_'));
  if (name.length === 0 || name.length < problems.length) return { problem: refusalText(refusal, values) };
  return { findings: { name, redirectUris: [] } };
}

const textOf = (problem: Problem): Text => problem.text ?? problem.message;

/** Returns a refusal in the language of the page; one that no page expects is in English. */
export function refusalText({ code, message: said, remedy, problems: [problem] }: Refusal, values?: Values): Text {
  if (problem) return textOf(problem);
  const text = message(`client-refusals.${code}`, values);
  return isUnknown(text) ? `${said} ${remedy}` : text;
}

interface RefusedForm {
  readonly findings?: ClientFormFindings;
  readonly problem?: Text;
}

export const isFine = ({ name, redirectUris }: ClientFormFindings): boolean =>
  name.length === 0 && redirectUris.length === 0;

export function clientFormView(
  typed: TypedClient,
  { kind, isNative }: Pick<Client, 'kind' | 'isNative'>,
  frame: Pick<ClientFormView, 'action' | 'button'> & {
    readonly findings?: ClientFormFindings;
    /** A problem that belongs to no field. */
    readonly problem?: Text | undefined;
    /** Changes from another tab or user, listed below the problem. */
    readonly changes?: readonly Text[];
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
      ...findings.name.map((one) => ({ field: 'name', message: textOf(one) })),
      ...findings.redirectUris.map((one) => {
        const row = (one.index ?? 0) + 1;
        const problem = textOf(one);
        const inRow = message('client-form.uri-problem', { row, problem });
        return { field: `redirect-uri-${row}`, message: one.index === undefined ? problem : inRow };
      }),
    ],
    drawnFrom: typed.drawnFrom,
    name: typed.name,
    nameProblem: nameProblem && textOf(nameProblem),
    rows,
    canAddRow: rows !== undefined && rows.length < MAX_REDIRECT_URIS,
  };
}

function rowsOf(
  { redirectUris, rows }: TypedClient,
  problems: readonly Problem[],
  isNative: boolean,
): RedirectUriRow[] {
  const { warnings } = checkRedirectUris(redirectUris, { native: isNative });
  const at = (found: readonly Problem[], row: number): Text[] => found.filter(({ index }) => index === row).map(textOf);
  const typed = redirectUris.map((uri, row) => ({
    uri,
    problem: at(problems, row)[0],
    warnings: at(warnings, row),
    isNew: false,
  }));
  const [problem] = problems.filter(({ code }) => code === 'none').map(textOf);
  const empty = { uri: '', problem, warnings: [], isNew: rows === 'one more' };
  const needsEmpty = rows === 'one more' && redirectUris.length < MAX_REDIRECT_URIS;
  return needsEmpty || typed.length === 0 ? [...typed, empty] : typed;
}
