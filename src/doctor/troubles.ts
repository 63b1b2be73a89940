/** What a wrong or missing answer means for the way to the service, and how to fix it. */
import { problem, type Verdict } from './findings.ts';
import type { DoctorAnswer } from './requests.ts';

export interface Trouble {
  readonly message: string;
  readonly remedy: string;
}

export const troubled = ({ message, remedy }: Trouble): Verdict => problem(message, remedy);

/** For the systemd unit of the docs, or for a checkout. */
export const START =
  'start the service (`systemctl start gatehouse.target`, in a checkout `npm start`)';

/** Returns the visible part of an answer: status, error or heading of the page, request id. */
export function described({ status, body, text, requestId, headers }: DoctorAnswer): string {
  if (requestId === undefined) {
    const server = headers.get('server');
    return `${status} from something in front of the service${server ? ` (${server})` : ''}`;
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

/** Returns what is wrong between here and the service, or undefined if the answer shows nothing. */
export function troubleOnTheWay(answer: DoctorAnswer): Trouble | undefined {
  const message = `the answer was ${described(answer)}`;
  const remedy = answer.requestId === undefined ? proxyRemedy(answer) : ownRemedy(answer);
  return remedy === undefined ? undefined : { message, remedy };
}

function proxyRemedy({ status, text }: DoctorAnswer): string {
  if (/plain HTTP request was sent to HTTPS port/i.test(text)) {
    return 'TLS is spoken there, and the issuer says http: set GATEHOUSE_ISSUER (issuer) to the https origin';
  }
  if (status === 504) {
    return 'the proxy did not wait for the answer of a node: let it wait for a minute (nginx: proxy_read_timeout 60s), and see in `gatehouse nodes` that the nodes run';
  }
  if (status === 502 || status === 503) {
    return 'the proxy reaches no node: see that the nodes run, and that the proxy leads to their host and port (nginx: upstream)';
  }
  if (status === 413) return 'raise what the proxy takes as a body (nginx: client_max_body_size)';
  if (status === 414 || status === 431 || status === 400) {
    return 'raise what the proxy takes as a request line and headers (nginx: large_client_header_buffers 4 16k)';
  }
  if (status === 401 || status === 403) {
    return 'a firewall, or a password that the proxy asks for, is in the way: let every path of the issuer pass';
  }
  if (status >= 300 && status < 400) {
    return 'the proxy sends elsewhere: the issuer must be the very address that answers';
  }
  return 'see what answers at that address: the proxy must lead every path of the issuer to the nodes, and leave X-Request-Id in the answers';
}

function ownRemedy({ status, text, body }: DoctorAnswer): string | undefined {
  if (status === 421) {
    const [, other] = /answers at (\S+) only/.exec(text) ?? [];
    return `pass the Host header on unchanged (nginx: proxy_set_header Host $http_host); the node that answered has the issuer ${other}`;
  }
  if (status === 429) return 'too many failures came from this address: wait, and try again';
  if (status === 503 || body.error === 'temporarily_unavailable') {
    return 'a store of that node is away: `/readyz` on its listener for operators names which';
  }
  if (status >= 500) return 'look for the request id in the log of the nodes';
  return undefined;
}

/** Returns why no answer arrived, with the code of the error and a remedy. */
export function unreachable(error: unknown): Trouble {
  const { code, message } = errorOf(error);
  const known = CONNECTION_TROUBLES.find(({ codes }) => codes.test(code));
  if (known) return { message: `${known.message} (${code})`, remedy: known.remedy };
  return {
    message: `no answer came: ${message || code}`,
    remedy: 'see that the proxy and the nodes run, and that this machine may reach them',
  };
}

/** A host with several addresses fails with one error for each. */
function errorOf(error: unknown): { code: string; message: string } {
  const single = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  if (!(single instanceof Error)) return { code: '', message: String(single) };
  const code = 'code' in single ? String(single.code) : single.name;
  return { code, message: single.message };
}

const CONNECTION_TROUBLES: readonly (Trouble & { readonly codes: RegExp })[] = [
  {
    codes: /^(ENOTFOUND|EAI_AGAIN|EAI_NODATA)$/,
    message: 'the name of the issuer leads to no address',
    remedy: 'enter it in the DNS (or in /etc/hosts here), or correct the issuer',
  },
  {
    codes: /^ECONNREFUSED$/,
    message: 'nothing listens at the public address',
    remedy: `${START}, and the proxy in front of it where there is one`,
  },
  {
    codes: /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|TimeoutError|ABORT_ERR|23)$/,
    message: 'the public address does not answer',
    remedy: 'see firewalls and routes between here and there; `--address` asks one node directly',
  },
  {
    codes: /^(ECONNRESET|EPIPE|HPE_.*)$/,
    message: 'the connection was cut instead of answered',
    remedy:
      'see the log of the proxy; http is not answered on a port for TLS, nor TLS on one for http',
  },
  {
    codes: /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/,
    message: 'the certificate is of an authority that this machine does not know',
    remedy:
      'where the authority is your own: NODE_EXTRA_CA_CERTS=/path/to/ca.pem, here and for every client; else send the intermediate certificates too (nginx: the full chain in ssl_certificate)',
  },
  {
    codes: /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    message: 'the certificate is not valid today',
    remedy: 'renew it, reload the proxy, and see that the clocks of both machines are right',
  },
  {
    codes: /ERR_TLS_CERT_ALTNAME_INVALID/,
    message: 'the certificate is for another name than the issuer’s',
    remedy: 'get one for the host of the issuer, or correct the issuer',
  },
  {
    codes: /^(EPROTO|ERR_SSL_.*)$/,
    message: 'what answers there does not speak TLS as it should',
    remedy:
      'the issuer says https: let the proxy listen with TLS on that port (nginx: listen 443 ssl)',
  },
];
