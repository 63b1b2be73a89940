/** Builds HTML in code. Inserted values are escaped, unless they are HTML already. */

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | undefined | readonly Html[];

/** A template tag for HTML. An undefined value prints nothing. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const texts = parts.map(printed);
  return new Html(literals.map((literal, index) => literal + (texts[index] ?? '')).join(''));
}

/** Returns a page of the sandbox. @param about the program to which the page belongs, shown next to the title */
export const htmlPage = (title: string, about: string, stylesheet: string, main: Html): string =>
  html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width">
  <title>${title}</title>
  <link rel="stylesheet" href="${stylesheet}">
</head>
<body>
  <header>
    <p>${title}</p>
    <small>${about} in the sandbox of Gatehouse</small>
  </header>
  <main>${main}</main>
</body>
</html>`.text;

/** Formats a time with milliseconds, because the sandbox shows how fast it works. */
export const clockTime = (time: Date): string =>
  `${time.toLocaleTimeString('en-GB')}.${String(time.getMilliseconds()).padStart(3, '0')}`;

function printed(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(({ text }) => text).join('');
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
