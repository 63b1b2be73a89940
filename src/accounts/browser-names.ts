/** Describes a User-Agent header in words that users recognize: `Firefox on Windows`. */

/** The first match is used, because browsers also name those that they descend from. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|HeadlessChrome|Chromium)\//, 'Chrome'],
  // `[^V]` ends before another version, so a long header of many versions is read once.
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

/** Only repeats what the header claims: any client can send anything in it. */
export function browserInWords(userAgent: string): string {
  const browser = wordFor(userAgent, BROWSERS);
  const system = wordFor(userAgent, SYSTEMS);
  if (browser) return system ? `${browser} on ${system}` : browser;
  // Programs give their own name first: `curl/8.5.0`, `python-requests/2.32`.
  const [, program] = /^(?!Mozilla\/)([A-Za-z][\w.-]{0,39})\//.exec(userAgent) ?? [];
  return program ?? (system ? `A browser on ${system}` : 'An unknown browser');
}

const wordFor = (
  userAgent: string,
  words: readonly (readonly [RegExp, string])[],
): string | undefined => words.find(([pattern]) => pattern.test(userAgent))?.[1];
