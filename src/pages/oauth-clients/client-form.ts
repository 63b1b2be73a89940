/** Reads, checks and renders the form for the name and the redirect URIs of a client. */
import { type Message, message } from '../../base/message.ts';
import { sha256 } from '../../base/random-id.ts';
import { type Client, redirectsPeople } from '../../clients/client.ts';
import type { ClientChanges } from '../../clients/client-edits.ts';
import {
  checkClientName,
  checkRedirectUris,
  MAX_REDIRECT_URIS,
  normalizeClientName,
} from '../../clients/client-rules.ts';
import { type Answer, type Form, problemText } from '../form-step.ts';
import type { FormProblem } from '../view-data.ts';

export interface TypedClient extends ClientChanges {
  /** What the pressed button does: `sent` saves the form, `changed` removes a row, `one more` adds a row. */
  readonly rows: 'sent' | 'changed' | 'one more';
  /** The result of `stampOf` when the form was rendered; undefined for a new client. */
  readonly drawnFrom?: string | undefined;
}

/** Reads only these fields of the form, so that a form cannot change, for example, the kind of a client. */
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

/** Returns a digest of the values, for a hidden field: the values themselves could make the form too large. */
export const stampOf = ({ name, redirectUris }: Pick<Client, 'name' | 'redirectUris'>): string =>
  sha256(JSON.stringify([name, redirectUris]));

/** The codes of problems that concern the whole list of redirect URIs. */
const LIST_CODES = ['none', 'too_many'];

export const fieldOfClient: NonNullable<Form<TypedClient>['fieldOf']> = (problem) => {
  const { code, index } = problem;
  if (code.startsWith('name_')) return { field: 'name' };
  if (index === undefined) return LIST_CODES.includes(code) ? { field: 'redirect-uri-1' } : undefined;
  const row = index + 1;
  const summary = message('client-form.uri-problem', { row, problem: problemText(problem) });
  return { field: `redirect-uri-${row}`, summary };
};

/**
 * Checks the typed values by the rules of the client's kind. If a button that adds or removes a row sent the form,
 * nothing is checked, and the form is shown again.
 */
export function checkClientForm(
  typed: TypedClient,
  { kind, isNative, name }: Pick<Client, 'kind' | 'isNative'> & Partial<Pick<Client, 'name'>>,
): Answer<TypedClient> | undefined {
  if (typed.rows !== 'sent') return {};
  const isSame = name !== undefined && normalizeClientName(typed.name) === name;
  const problems = [
    ...checkClientName(typed.name, isSame ? 'as before' : 'by its owner'),
    ...(redirectsPeople(kind) ? checkRedirectUris(typed.redirectUris, { native: isNative }).problems : []),
  ];
  return problems.length > 0 ? { problems } : undefined;
}

export type ClientFormView = ReturnType<typeof clientFormView>;

export function clientFormView(
  typed: TypedClient,
  { kind, isNative }: Pick<Client, 'kind' | 'isNative'>,
  frame: {
    readonly action: string;
    readonly button: Message;
    readonly problems: readonly FormProblem[];
    /** Only for a new client: a value that is unique to each rendered form. */
    readonly creationKey?: string;
  },
) {
  const { redirectUris, drawnFrom, name } = typed;
  const { warnings } = checkRedirectUris(redirectUris, { native: isNative });
  const entered = redirectUris.map((uri, row) => ({
    uri,
    warnings: warnings.filter(({ index }) => index === row).map(problemText),
    isNew: false,
  }));
  const isOneMore = typed.rows === 'one more' && redirectUris.length < MAX_REDIRECT_URIS;
  const empty = { uri: '', warnings: [], isNew: typed.rows === 'one more' };
  const rows = isOneMore || entered.length === 0 ? [...entered, empty] : entered;
  const hasRows = redirectsPeople(kind);
  return {
    ...frame,
    drawnFrom,
    name,
    /** Undefined for a client that has no redirect URIs. */
    rows: hasRows ? rows : undefined,
    canAddRow: hasRows && rows.length < MAX_REDIRECT_URIS,
  };
}
