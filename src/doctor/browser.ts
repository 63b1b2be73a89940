/** A browser for the doctor: keeps the cookies that browsers keep, follows redirects, sends filled forms. */
import type { DoctorAnswer, Send } from './requests.ts';

export interface DoctorPage extends DoctorAnswer {
  readonly path: string;
  readonly location: URL | null;
}

const MAX_REDIRECTS = 10;

/** @param headers sent with every request */
export function createBrowser(issuer: string, send: Send, headers: Readonly<Record<string, string>>) {
  /** The latest `Set-Cookie` line by cookie name. No two cookies of Gatehouse differ only in their path. */
  const cookies = new Map<string, string>();

  async function open(path: string, form?: Readonly<Record<string, string>>, hops = 0): Promise<DoctorPage> {
    const pairs = [...cookies.values()].map((line) => line.split(';')[0] ?? '');
    const cookie = pairs.filter((pair) => pair.slice(pair.indexOf('=') + 1) !== '').join('; ');
    const sent = { accept: 'text/html', 'sec-fetch-site': 'same-origin', ...headers, ...(cookie && { cookie }) };
    const answer = await send(form ? { path, form, headers: { ...sent, origin: issuer } } : { path, headers: sent });
    for (const line of answer.headers.getSetCookie().filter(isKept)) cookies.set(nameOf(line), line);
    const target = answer.headers.get('location');
    const location = target === null ? null : URL.parse(target, issuer + path);
    if (location?.origin !== issuer || hops === MAX_REDIRECTS) return { ...answer, path, location };
    return open(location.pathname + location.search, undefined, hops + 1);
  }

  return {
    open: (path: string) => open(path),

    async submit(page: DoctorPage, fields: Readonly<Record<string, string>>): Promise<DoctorPage> {
      const form = formWith(page.text, Object.keys(fields));
      if (!form) return page;
      const { pathname, search } = new URL(form.action || page.path, issuer);
      return open(pathname + search, { ...form.hidden, ...fields });
    },
  };
}

const nameOf = (line: string): string => line.slice(0, line.indexOf('='));

export const hasField = (page: DoctorPage, name: string): boolean => formWith(page.text, [name]) !== undefined;

function formWith(html: string, names: readonly string[]) {
  for (const [, attributes = '', body = ''] of html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)) {
    const controls = [...body.matchAll(/<(?:input|button)\b([^>]*)>/gs)].map(([, text = '']) => text);
    if (!names.every((name) => controls.some((text) => attribute(text, 'name') === name))) continue;
    const hidden = controls.filter((text) => attribute(text, 'type') === 'hidden');
    const values = hidden.map((text) => [attribute(text, 'name') ?? '', attribute(text, 'value') ?? '']);
    return { action: attribute(attributes, 'action') ?? '', hidden: Object.fromEntries(values) };
  }
  return undefined;
}

/** Returns the value of an attribute in double quotes; our own pages write no other attributes. */
function attribute(text: string, name: string): string | undefined {
  const [, value] = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(text) ?? [];
  const plain = value?.replaceAll('&#34;', '"').replaceAll('&#39;', "'");
  return plain?.replace(/&(?:amp|#38);/g, '&');
}

/** Browsers reject a prefixed cookie without its required attributes, which a proxy may remove (RFC 6265bis §4.1.3). */
function isKept(line: string): boolean {
  const isSecure = /; *secure *(;|$)/i.test(line);
  if (!line.startsWith('__Host-')) return isSecure || !line.startsWith('__Secure-');
  return isSecure && /; *path=\/ *(;|$)/i.test(line) && !/; *domain *=/i.test(line);
}
