/** A User-Agent header in words a person recognizes: `Firefox on Windows`. */

/** The first that fits: browsers name those they descend from as well. */
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

/** Anybody may send anything as this header: it says what was claimed, no more. */
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
