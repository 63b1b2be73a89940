/** The tile of a client on pages, which is a letter on a color instead of a picture. */

/** The number of colors in the stylesheet, which has the classes `.tile-0`, `.tile-1` and so on. */
export const TILE_COLOURS = 8;
const GRAPHEMES = new Intl.Segmenter();

export type Tile = ReturnType<typeof tileOf>;

/** Uses the first letter or digit, because a symbol such as ✔ could look like a sign of verification. */
export function tileOf({ id, name }: { readonly id: string; readonly name: string }) {
  const graphemes = Array.from(GRAPHEMES.segment(name), ({ segment }) => segment);
  const letter = graphemes.find((one) => /[\p{L}\p{N}]/u.test(one)) ?? '?';
  const sum = [...id].reduce((all, character) => all + character.charCodeAt(0), 0);
  return { letter, colour: sum % TILE_COLOURS };
}
