/** Describes a User-Agent header in words that users recognize: `Firefox on Windows`. */

/** The first match wins, because browsers also claim to be the browsers that they descend from. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|HeadlessChrome|Chromium)\//, 'Chrome'],
  // `[^V]` stops at the next `Version`: a header with many of them is searched only once.
  [/\bVersion\/[\d.]+ [^V]*\bSafari\//, 'Safari'],
];

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'an iPhone'],
  [/\biPad\b/, 'an iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
];

/** Only repeats a claim: any client can send any header. */
export function describeBrowser(userAgent: string): string {
  const browser = wordFor(userAgent, BROWSERS);
  const system = wordFor(userAgent, SYSTEMS);
  if (browser) return system ? `${browser} on ${system}` : browser;
  return programIn(userAgent) ?? (system ? `A browser on ${system}` : 'An unknown browser');
}

/** Like `describeBrowser` in no language: `Firefox, Windows`. Undefined if nothing is known. */
export function deviceName(userAgent: string): string | undefined {
  const browser = wordFor(userAgent, BROWSERS) ?? programIn(userAgent);
  const system = wordFor(userAgent, SYSTEMS)?.replace('an ', '');
  return [browser, system].filter(Boolean).join(', ') || undefined;
}

/** Programs begin with their own name: `curl/8.5.0`, `python-requests/2.32`. */
const programIn = (userAgent: string): string | undefined =>
  /^(?!Mozilla\/)([A-Za-z][\w.-]{0,39})\//.exec(userAgent)?.[1];

const wordFor = (
  userAgent: string,
  words: readonly (readonly [RegExp, string])[],
): string | undefined => words.find(([pattern]) => pattern.test(userAgent))?.[1];
