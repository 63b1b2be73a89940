/** A log of requests and answers for display, with shortened tokens. */

export interface Exchange {
  /** One line, such as `POST http://localhost:4400/oauth/token → 200 OK`. */
  readonly title: string;
  readonly request: string;
  /** Status, relevant headers and body; undefined for a redirect of the browser. */
  readonly answer?: string;
}

export interface WireLog {
  /** The exchanges, latest first. */
  readonly exchanges: readonly Exchange[];
  /** A `fetch` that records request and answer. */
  readonly fetch: (url: string, options: WireRequest) => Promise<Response>;
  /** A `fetch` for an answer that stays open: records only status and headers. */
  readonly fetchStream: (url: string, options: WireRequest) => Promise<Response>;
  /** Records a redirect through the browser. */
  recordRedirect(url: URL): void;
}

/** The request options that openid-client and this app use. */
interface WireRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: RequestInit['body'] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The headers that matter to an integration. */
const SHOWN_HEADERS = ['authorization', 'content-type', 'www-authenticate', 'retry-after'];
const MAX_EXCHANGES = 30;
const TIMEOUT_MS = 10_000;

export function createWireLog(): WireLog {
  const exchanges: Exchange[] = [];
  const keep = (exchange: Exchange): void => {
    exchanges.unshift(exchange);
    exchanges.length = Math.min(exchanges.length, MAX_EXCHANGES);
  };

  async function recorded(url: string, options: WireRequest, isStream: boolean): Promise<Response> {
    const { method, headers, body = null } = options;
    const signal = (isStream && options.signal) || AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { method, headers, body, signal, redirect: 'manual' });
    const staysOpen = isStream && response.status === 200;
    const asked = `${method} ${url}`;
    const answered = `${response.status} ${response.statusText}`;
    const shown = staysOpen ? 'stays open' : await response.clone().text();
    keep({
      title: `${asked} → ${answered}${staysOpen ? ', stays open' : ''}`,
      request: message(asked, new Headers(headers), String(body ?? '')),
      answer: message(answered, response.headers, shown),
    });
    return response;
  }

  return {
    exchanges,
    fetch: (url, options) => recorded(url, options, false),
    fetchStream: (url, options) => recorded(url, options, true),

    recordRedirect(url) {
      const address = `${url.origin}${url.pathname}`;
      const request = `GET ${address}\n${parameters(url.searchParams, '?')}`;
      keep({ title: `The browser goes to ${address}`, request: shortened(request) });
    },
  };
}

/** Shortens secret values so that they can still be distinguished. Client ids are not secret. */
export const shortened = (text: string): string =>
  text.replace(/(gate_(?!ci_)[a-z]+_[\w-]{4})[\w-]{8,}([\w-]{4})/g, '$1…$2');

function message(firstLine: string, headers: Headers, body: string): string {
  const lines = SHOWN_HEADERS.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [`${name}: ${value}`];
  });
  const type = headers.get('content-type') ?? '';
  return shortened([firstLine, ...lines, '', readable(body, type)].join('\n').trimEnd());
}

function readable(body: string, type: string): string {
  if (type.startsWith('application/x-www-form-urlencoded')) {
    return parameters(new URLSearchParams(body), '');
  }
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

/** Formats form fields, decoded, one per line. */
function parameters(all: URLSearchParams, first: string): string {
  const lines = [...all].map(([name, value]) => `${name}=${value}`);
  return lines.map((line, index) => `${index === 0 ? first : '&'}${line}`).join('\n');
}
