/** Reads the forms of a page as a browser would fill and send them. */

export interface Form {
  readonly action: string;
  readonly method: string;
  /** The values sent if the user changes nothing: hidden fields, filled-in fields, checked boxes. */
  readonly values: readonly [name: string, value: string][];
  /** The names of all fields and buttons. */
  readonly names: ReadonlySet<string>;
}

export function formsOf(html: string): Form[] {
  return [...html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)].map(([, attributes = '', body = '']) =>
    readForm(attributesOf(attributes), body),
  );
}

function readForm(form: Attributes, body: string): Form {
  const values: [string, string][] = [];
  const names = new Set<string>();
  for (const [, input, tag = 'input', text = '', content = ''] of body.matchAll(CONTROL)) {
    const control = attributesOf(input ?? text);
    const name = control.get('name');
    if (name === undefined) continue;
    names.add(name);
    const value = valueSent(tag.toLowerCase(), control, content);
    if (value !== undefined) values.push([name, value]);
  }
  const method = (form.get('method') ?? 'get').toUpperCase();
  return { action: form.get('action') ?? '', method, values, names };
}

type Attributes = ReadonlyMap<string, string>;

// An input has no end tag: the search for one would read the rest of the page again for each input.
const CONTROL = /<input\b([^>]*)>|<(button|textarea|select)\b([^>]*)>(.*?)<\/\2>/gis;
const ATTRIBUTE = /([a-z-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/gi;
const SENT_ONLY_WHEN_PRESSED = new Set(['submit', 'button', 'image', 'reset']);

function valueSent(tag: string, control: Attributes, content: string): string | undefined {
  if (tag === 'button') return undefined;
  if (tag === 'textarea') return decode(content);
  if (tag === 'select') return selectedOption(content);
  const type = control.get('type') ?? 'text';
  if (SENT_ONLY_WHEN_PRESSED.has(type)) return undefined;
  if (type !== 'checkbox' && type !== 'radio') return control.get('value') ?? '';
  return control.has('checked') ? (control.get('value') ?? 'on') : undefined;
}

function selectedOption(content: string): string | undefined {
  const options = [...content.matchAll(/<option\b([^>]*)>/gi)].map(([, text = '']) => attributesOf(text));
  return (options.find((option) => option.has('selected')) ?? options[0])?.get('value');
}

function attributesOf(text: string): Attributes {
  const pairs = [...text.matchAll(ATTRIBUTE)].map(
    ([, name = '', a, b, c]) => [name.toLowerCase(), decode(a ?? b ?? c ?? '')] as const,
  );
  return new Map(pairs);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

/** Decodes character references as EJS writes them. */
function decode(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (decimal) return String.fromCodePoint(Number(decimal));
    if (hex) return String.fromCodePoint(Number.parseInt(hex, 16));
    return ENTITIES[name] ?? whole;
  });
}
