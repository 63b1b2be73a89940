/** What a wrong or missing answer says about the connection to the service, and how to fix it. */
import { problem, type Verdict } from './findings.ts';
import type { DoctorAnswer } from './requests.ts';

export interface Trouble {
  readonly message: string;
  readonly remedy: string;
}

export const troubled = ({ message, remedy }: Trouble): Verdict => problem(message, remedy);

/** The command that starts the service: for the systemd unit of the docs, or for a checkout. */
export const START = 'start the service (`systemctl start gatehouse.target`, in a checkout `npm start`)';

/** Returns the visible part of an answer: status, error or heading of the page, request id. */
export function described({ status, body, text, requestId, headers }: DoctorAnswer): string {
  if (requestId === undefined) {
    const server = headers.get('server');
    return `${status} from a server in front of the service${server ? ` (${server})` : ''}`;
  }
  const { error, error_description: description } = body;
  const [, heading] = /<h1[^>]*>(.*?)<\/h1>/s.exec(text) ?? [];
  const page = heading
    ?.replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  const words = error === undefined ? page && `the page “${page}”` : `${error} (${description})`;
  return [`${status}${words ? ` ${words}` : ''}`, `request ${requestId}`].join(', ');
}

/** Returns the problem between the doctor and the service; undefined if the answer shows none. */
export function explainConnectionError(answer: DoctorAnswer): Trouble | undefined {
  const message = `the answer was ${described(answer)}`;
  const remedy = answer.requestId === undefined ? proxyRemedy(answer) : ownRemedy(answer);
  return remedy === undefined ? undefined : { message, remedy };
}

function proxyRemedy({ status, text }: DoctorAnswer): string {
  if (/plain HTTP request was sent to HTTPS port/i.test(text)) {
    return 'the port speaks TLS, but the issuer says http: set GATEHOUSE_ISSUER (issuer) to the https origin';
  }
  if (status === 504) {
    return (
      'the proxy did not wait for the answer of a node: make it wait for a minute (nginx: ' +
      'proxy_read_timeout 60s), and check with `gatehouse nodes` that the nodes are running'
    );
  }
  if (status === 502 || status === 503) {
    return (
      'the proxy cannot reach a node: check that the nodes are running, and that the proxy ' +
      'forwards to their host and port (nginx: upstream)'
    );
  }
  if (status === 413) return 'raise the maximum body size of the proxy (nginx: client_max_body_size)';
  if (status === 414 || status === 431 || status === 400) {
    return 'raise the maximum size of request line and headers of the proxy (nginx: large_client_header_buffers 4 16k)';
  }
  if (status === 401 || status === 403) {
    return 'a firewall, or a proxy that asks for a password, refuses the request: allow every path of the issuer';
  }
  if (status >= 300 && status < 400) {
    return 'the proxy redirects elsewhere: the issuer must be the address that answers itself';
  }
  return (
    'check which server answers at that address: the proxy must forward every path of the ' +
    'issuer to the nodes, and keep X-Request-Id in the answers'
  );
}

function ownRemedy({ status, text, body }: DoctorAnswer): string | undefined {
  if (status === 421) {
    const [, other = 'another one'] = /answers only at ([^\s,]+)/.exec(text) ?? [];
    return (
      'pass the Host header on unchanged (nginx: proxy_set_header Host $http_host); the ' +
      `issuer of the node that answered is ${other}`
    );
  }
  if (status === 429) return 'too many failures came from this address: wait, and try again';
  if (status === 503 || body.error === 'temporarily_unavailable') {
    return 'a store of that node is unavailable: `/readyz` on its operators’ listener names the store';
  }
  if (status >= 500) return 'search the log of the nodes for the request id';
  return undefined;
}

/** Returns why no answer arrived, with the code of the error and a remedy. */
export function unreachable(error: unknown): Trouble {
  const { code, message } = errorOf(error);
  const known = CONNECTION_ERRORS.find(({ codes }) => codes.test(code));
  if (known) return { message: `${known.message} (${code})`, remedy: known.remedy };
  return {
    message: `no answer arrived: ${message || code}`,
    remedy: 'check that the proxy and the nodes are running, and that this machine can reach them',
  };
}

/** Returns the first error, because a host with several addresses fails with one for each. */
function errorOf(error: unknown): { code: string; message: string } {
  const single = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  if (!(single instanceof Error)) return { code: '', message: String(single) };
  const code = 'code' in single ? String(single.code) : single.name;
  return { code, message: single.message };
}

const CONNECTION_ERRORS: readonly (Trouble & { readonly codes: RegExp })[] = [
  {
    codes: /^(ENOTFOUND|EAI_AGAIN|EAI_NODATA)$/,
    message: 'the host name of the issuer does not resolve',
    remedy: 'add the host name to the DNS (or to /etc/hosts here), or correct the issuer',
  },
  {
    codes: /^ECONNREFUSED$/,
    message: 'no server listens at the public address',
    remedy: `${START}, and the proxy in front of it if there is one`,
  },
  {
    codes: /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|TimeoutError|ABORT_ERR|23)$/,
    message: 'the public address does not answer',
    remedy: 'check firewalls and routes in between; `--address` connects to one node directly',
  },
  {
    codes: /^(ECONNRESET|EPIPE|HPE_.*)$/,
    message: 'the connection was closed without an answer',
    remedy: 'see the log of the proxy, and check the scheme: a TLS port does not answer http, nor a plain port https',
  },
  {
    codes: /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/,
    message: 'the certificate was issued by an authority that this machine does not trust',
    remedy:
      'for your own authority, set NODE_EXTRA_CA_CERTS=/path/to/ca.pem, here and for every client; otherwise send ' +
      'the intermediate certificates, too (nginx: the full chain in ssl_certificate)',
  },
  {
    codes: /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    message: 'the certificate has expired or is not yet valid',
    remedy: 'renew the certificate, reload the proxy, and check the clocks of both machines',
  },
  {
    codes: /ERR_TLS_CERT_ALTNAME_INVALID/,
    message: 'the certificate is for a host name other than that of the issuer',
    remedy: 'get a certificate for the host of the issuer, or correct the issuer',
  },
  {
    codes: /^(EPROTO|ERR_SSL_.*)$/,
    message: 'the server at the public address does not speak TLS correctly',
    remedy: 'the issuer says https: make the proxy listen with TLS on that port (nginx: listen 443 ssl)',
  },
];
