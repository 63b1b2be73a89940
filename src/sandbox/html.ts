/** HTML that is put together in code: what is put in is escaped, unless it is HTML already. */

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | undefined | readonly Html[];

/** Template tag. Of an undefined part nothing is printed. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const texts = parts.map(printed);
  return new Html(literals.map((literal, index) => literal + (texts[index] ?? '')).join(''));
}

/** To the millisecond: what is to be seen in the sandbox is how soon. */
export const clockTime = (time: Date): string =>
  `${time.toLocaleTimeString('en-GB')}.${String(time.getMilliseconds()).padStart(3, '0')}`;

function printed(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(({ text }) => text).join('');
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
