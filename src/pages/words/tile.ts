/** The tile that represents a client on pages: a letter on a color, instead of a picture. */

/** The number of colours, `.tile-0` and so on, in the stylesheet. */
export const TILE_COLOURS = 8;
const GRAPHEMES = new Intl.Segmenter();

export type Tile = ReturnType<typeof tileOf>;

/** Returns a tile with the first letter or digit, because a symbol such as ✔ could look like a verification by us. */
export function tileOf({ id, name }: { readonly id: string; readonly name: string }) {
  const graphemes = Array.from(GRAPHEMES.segment(name), ({ segment }) => segment);
  const letter = graphemes.find((one) => /[\p{L}\p{N}]/u.test(one)) ?? '?';
  const sum = [...id].reduce((all, character) => all + character.charCodeAt(0), 0);
  return { letter, colour: sum % TILE_COLOURS };
}
