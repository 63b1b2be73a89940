/** Explains wrong and missing answers by problems of the connection to the service, with a remedy for each. */
import { connectionRemedy } from '../service/startup-errors.ts';
import { problem, type Verdict } from './findings.ts';
import type { DoctorAnswer } from './requests.ts';

export const START = 'start the service (`systemctl start gatehouse.target`, in a checkout `npm start`)';

export const PROXY_HELP = 'docs/first-aid.md, part "The doctor blames the proxy", has the lines to write';

/** Returns the status, the error and the request id of an answer as text. */
export function described({ status, body, requestId, headers }: DoctorAnswer): string {
  if (requestId === undefined) {
    const server = headers.get('server');
    return `${status} from a server in front of the service${server ? ` (${server})` : ''}`;
  }
  const words = body.error === undefined ? '' : ` ${body.error} (${body.error_description})`;
  return `${status}${words}, request ${requestId}`;
}

/** Returns undefined if the answer shows no problem of the connection. */
export function explainConnectionError(answer: DoctorAnswer): Verdict | undefined {
  const remedy = answer.requestId === undefined ? proxyRemedy(answer) : ownRemedy(answer);
  return remedy === undefined ? undefined : problem`the answer was ${described(answer)} → ${remedy}`;
}

function proxyRemedy({ status, text }: DoctorAnswer): string {
  if (/plain HTTP request was sent to HTTPS port/i.test(text)) {
    return 'the port speaks TLS, but the issuer says http: set GATEHOUSE_ISSUER (issuer) to the https origin';
  }
  if (status === 401 || status === 403) {
    return 'a firewall, or a proxy that asks for a password, refuses the request: allow every path of the issuer';
  }
  if (status >= 300 && status < 400) {
    return 'the proxy redirects elsewhere: the issuer must be the address that answers without a redirect';
  }
  if (status === 502 || status === 503) return `the proxy cannot reach a node: ${CHECK_NODES}`;
  if (status === 504) return `the proxy did not wait for the answer of a node: ${CHECK_NODES}`;
  return (
    'check which server answers there: the proxy must forward every path of the issuer to the nodes, and keep ' +
    'X-Request-Id in the answers'
  );
}

const CHECK_NODES = `check with \`gatehouse nodes\` that they run; ${PROXY_HELP}`;

function ownRemedy({ status, text, body }: DoctorAnswer): string | undefined {
  if (status === 421) {
    const [, other = 'another one'] = /answers only at ([^\s,]+)/.exec(text) ?? [];
    return `pass the Host header on unchanged; the issuer of the node that answered is ${other}; ${PROXY_HELP}`;
  }
  if (status === 429) return 'too many failures came from this address: wait, and try again';
  if (status === 503 || body.error === 'temporarily_unavailable') {
    return (
      'a store of that node is unavailable: `/readyz` on its operators’ listener names the store; if it says ready, and ' +
      'only the change stream fails, notifications do not arrive: connect without the pooler, or use `pool_mode = session`'
    );
  }
  return status >= 500 ? 'search the log of the nodes for the request id' : undefined;
}

/** Returns what the doctor reports for a request that received no response. @param error why the request failed */
export function unreachable(error: unknown): Verdict {
  // If the host has several addresses, Node reports one error for each address.
  const single = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const known = single instanceof Error ? single : new Error(String(single));
  const code = 'code' in known ? String(known.code) : known.name;
  const verdict = byCode(CONNECTION_ERRORS, code);
  if (verdict) return { ...verdict, message: `${verdict.message} (${code})` };
  const remedy = connectionRemedy(known, 'the issuer');
  return problem`no answer arrived: ${known.message} (${code}) →
    ${remedy ?? 'check that the proxy and the nodes run, and the routes to them'}`;
}

/** Maps error codes to verdicts. A key lists whole codes, or parts of codes, separated by spaces. */
export type CodeTable = Readonly<Record<string, Verdict>>;

export const byCode = (table: CodeTable, code: string): Verdict | undefined =>
  Object.entries(table).find(([parts]) => parts.split(' ').some((part) => code.includes(part)))?.[1];

const CONNECTION_ERRORS: CodeTable = {
  ECONNREFUSED: problem`no server listens at the public address →
    ${START}, and the proxy in front of it if there is one`,
  // 23 is the code of a DOMException after a timeout.
  'ETIMEDOUT EHOSTUNREACH ENETUNREACH TimeoutError ABORT_ERR 23': problem`the public address does not answer →
    check firewalls and routes in between; \`--address\` connects to one node directly`,
  'EPROTO ERR_SSL_ ECONNRESET EPIPE HPE_': problem`the connection was closed without an answer that can be read →
    see the log of the proxy, and check that the port speaks TLS exactly if the issuer says https; ${PROXY_HELP}`,
};
