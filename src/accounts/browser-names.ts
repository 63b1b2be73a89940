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
  // Programs begin with their own name: `curl/8.5.0`, `python-requests/2.32`.
  const [, program] = /^(?!Mozilla\/)([A-Za-z][\w.-]{0,39})\//.exec(userAgent) ?? [];
  return program ?? (system ? `A browser on ${system}` : 'An unknown browser');
}

const wordFor = (
  userAgent: string,
  words: readonly (readonly [RegExp, string])[],
): string | undefined => words.find(([pattern]) => pattern.test(userAgent))?.[1];
