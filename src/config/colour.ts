/** Computes the contrast of colours such as `#0b5cad` (WCAG 2.2), and the nearest readable shade. */

/** WCAG 2.2 §1.4.3, level AA, for text. */
export const MIN_CONTRAST = 4.5;

/** The backgrounds of links and buttons in each theme, the same as in views/assets/gatehouse.css. */
export const GROUNDS = {
  light: ['#f1efe9', '#f6f4ee', '#fffefb'],
  dark: ['#101614', '#19211f', '#202a27'],
} as const;

type Theme = keyof typeof GROUNDS;

const channelsOf = (colour: string): number[] => [...Buffer.from(colour.slice(1), 'hex')];

/** Returns the relative luminance (WCAG 2.2). */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(colour).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Returns the contrast ratio, from 1 to 21. */
export function contrast(one: string, two: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(two)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

export const lowestContrast = (colour: string, theme: Theme): number =>
  Math.min(...GROUNDS[theme].map((ground) => contrast(colour, ground)));

/**
 * Returns the colour if it is readable. Otherwise returns the nearest readable shade, which is darker in the light
 * theme and lighter in the dark theme.
 */
export function nearestReadable(colour: string, theme: Theme): string {
  const [channels, end] = [channelsOf(colour), theme === 'light' ? 0 : 255];
  const shadeAt = (step: number): string => {
    const shaded = channels.map((one) => Math.round(one + ((end - one) * step) / 255));
    return `#${Buffer.from(shaded).toString('hex')}`;
  };
  // Use a binary search to save CPU time, because any caller can request the stylesheet in any colour.
  let [first, last] = [0, 255];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (lowestContrast(shadeAt(middle), theme) >= MIN_CONTRAST) last = middle;
    else first = middle + 1;
  }
  return shadeAt(last);
}
