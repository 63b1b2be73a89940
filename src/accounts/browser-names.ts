/** Describes a User-Agent header in words that users recognize: `Firefox on Windows`. */
import { message, type Text } from '../base/message.ts';
import { inEnglish } from '../texts/texts.ts';

/** The first match is used, because a browser also names the older browsers from which it descends. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|HeadlessChrome|Chromium)\//, 'Chrome'],
  // `[^V]` stops at the next `Version`, so that a header with many of them is searched only once.
  [/\bVersion\/[\d.]+ [^V]*\bSafari\//, 'Safari'],
];

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
];

/** Describes the browser as its User-Agent header claims. Do not trust this text: a client can send any header. */
export function browserText(userAgent: string): Text {
  const browser = wordFor(userAgent, BROWSERS);
  const system = wordFor(userAgent, SYSTEMS);
  if (browser) return system ? message('browser.on', { browser, system }) : browser;
  const program = programIn(userAgent);
  if (program) return program;
  return system ? message('browser.unknown-on', { system }) : message('browser.unknown');
}

/** Like `browserText`, in English, for operators and for names that are stored. */
export const describeBrowser = (userAgent: string): string => inEnglish(browserText(userAgent));

/** Returns a name for all languages, for example `Firefox, Windows`; undefined if nothing is recognized. */
export function deviceName(userAgent: string): string | undefined {
  const browser = wordFor(userAgent, BROWSERS) ?? programIn(userAgent);
  const system = wordFor(userAgent, SYSTEMS);
  return [browser, system].filter(Boolean).join(', ') || undefined;
}

/** Returns an icon for the kind of device. Tablets with Android do not send the word *Mobile*. */
export function deviceIcon(userAgent: string): 'phone' | 'tablet' | 'computer' | 'app' {
  const system = wordFor(userAgent, SYSTEMS);
  if (system === 'iPad') return 'tablet';
  if (system === 'Android') return userAgent.includes('Mobile') ? 'phone' : 'tablet';
  if (system === 'iPhone') return 'phone';
  return system === undefined && programIn(userAgent) ? 'app' : 'computer';
}

/** The User-Agent of a program begins with the name of the program: `curl/8.5.0`, `python-requests/2.32`. */
const programIn = (userAgent: string): string | undefined =>
  /^(?!Mozilla\/)([A-Za-z][\w.-]{0,39})\//.exec(userAgent)?.[1];

const wordFor = (userAgent: string, words: readonly (readonly [RegExp, string])[]): string | undefined =>
  words.find(([pattern]) => pattern.test(userAgent))?.[1];
