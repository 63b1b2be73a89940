/** Sends requests that `fetch` would not allow: with any Host, from any local address. */
import { request } from 'node:http';

interface RawRequest {
  readonly method?: string;
  /**
   * Headers that are sent unchanged, with any `host`; only those of a body are added. In a list
   * (alternating names and values, only without a body) a name may occur twice.
   */
  readonly headers?: Readonly<Record<string, string>> | readonly string[];
  readonly form?: Readonly<Record<string, string>>;
  /** The local address to connect from, such as 127.0.0.2. */
  readonly from?: string;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Sends a request to this port of 127.0.0.1. Does not follow redirects. */
export function rawRequest(port: number, path: string, raw: RawRequest = {}): Promise<RawAnswer> {
  const { method = raw.form ? 'POST' : 'GET', headers = {}, form, from } = raw;
  const body = form && new URLSearchParams(form).toString();
  const type = body === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        headers: isList(headers) ? [...headers] : { ...type, ...headers },
        agent: false,
        ...(from !== undefined && { localAddress: from }),
      },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        answer.on('error', reject);
        answer.on('end', () => {
          const { statusCode = 0, rawHeaders } = answer;
          resolve({ status: statusCode, headers: headersOf(rawHeaders), text });
        });
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

const isList = (headers: NonNullable<RawRequest['headers']>): headers is readonly string[] => Array.isArray(headers);

/** @param raw alternating names and values, so that a repeated header stays repeated */
function headersOf(raw: readonly string[]): Headers {
  const headers = new Headers();
  for (let index = 0; index < raw.length; index += 2) {
    headers.append(raw[index] ?? '', raw[index + 1] ?? '');
  }
  return headers;
}
