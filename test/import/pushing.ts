/** Pushes lines to `POST /changes` as another system does, and reads the answers. */
import type { LineAnswer } from '../../src/changes/push.ts';
import { expectExplained } from '../clients/refusals.ts';
import { bodyOf, type Line } from './import-file.ts';

export const SECRET = 'secret-of-the-tests-0123456789abcdefghij';
export const SENDERS = { changes: [{ name: 'hr', secret: SECRET }] };

/** When the present test began. */
let began = 0;

/** Call it in each suite that uses `ago`. */
export function countFromBegin(): void {
  beforeEach(() => {
    began = Date.now();
  });
}

/**
 * Returns the time this many seconds before the present test, in the format of a line: it is older than each change of
 * the test, and two of these times keep their order, however slow the test is.
 */
export const ago = (seconds: number): string => new Date(began - seconds * 1_000).toISOString();

export interface PushAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly answers: readonly LineAnswer[];
  /** Returns the result of each line, or the code of the refusal instead of `refused`. */
  readonly results: readonly string[];
}

export async function push(
  { operatorsUrl }: { readonly operatorsUrl: string },
  body: readonly (Line | string | Buffer)[] | Buffer,
  { secret = SECRET }: { secret?: string } = {},
): Promise<PushAnswer> {
  const response = await fetch(`${operatorsUrl}/changes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}` },
    body: new Uint8Array(Buffer.isBuffer(body) ? body : bodyOf(body)),
  });
  const text = await response.text();
  const isLines = response.headers.get('content-type')?.startsWith('application/x-ndjson');
  const answers: LineAnswer[] = isLines
    ? text
        .split('\n')
        .filter(Boolean)
        .map((one) => JSON.parse(one))
    : [];
  for (const answer of answers) if (answer.code !== undefined) expectExplained(answer);
  const results = answers.map(({ result, code }) => (result === 'refused' ? `${code}` : result));
  return { status: response.status, headers: response.headers, text, answers, results };
}
