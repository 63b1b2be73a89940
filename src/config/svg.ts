/** Refuses SVG files that could do more than draw. Corrects nothing: a file can be exported again. */
import { Parser } from 'htmlparser2';

/** Elements that only draw. Not here: script, foreignObject, a, use, animate, feImage, and more. */
const ELEMENTS = new Set(
  (
    'svg g defs title desc metadata path rect circle ellipse line polyline polygon text tspan image ' +
    'clipPath mask pattern marker linearGradient radialGradient stop style filter feBlend feFlood ' +
    'feColorMatrix feComposite feGaussianBlur feMerge feMergeNode feMorphology feOffset'
  ).split(' '),
);
const SVG = 'http://www.w3.org/2000/svg';
const DECLARATION =
  /^\?xml version="1\.[01]"(?: encoding="utf-8")?(?: standalone="(?:yes|no)")?\s?$/i;
const PLAIN_ATTRIBUTE = /^(?!on)(?:xml:)?(?!base$)[a-z][a-zA-Z0-9-]*$/;
/** A part of the same file, or an embedded PNG image, which can refer to nothing. */
const OWN_REFERENCE = /^#|^data:image\/png;base64,[a-z0-9+/=\s]*$/i;
/** CSS that loads something, or hides that: an escape, an at-rule, a function with a URL. */
const LOADING = /\\|@|(?:image|image-set|src|cross-fade|element)\(|url\((?!\s*['"]?#)/i;
const OWN_ENTITY = /&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-f]{1,6});)/i;

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Returns the size of a harmless SVG image, or the cause of the refusal, as the end of a sentence. */
export function checkSvg(source: string): Size | string {
  const refused: string[] = [];
  let root: Readonly<Record<string, string>> | undefined;
  let text = '';
  let isInStyle = false;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        // Browsers join the text before and after an element in a style sheet.
        if (isInStyle) refused.push(`the element <${name}> in <style>`);
        if (root ? !ELEMENTS.has(name) : name !== 'svg') refused.push(`the element <${name}>`);
        isInStyle = name === 'style';
        root ??= attributes;
        for (const [attribute, value] of Object.entries(attributes)) {
          const cause = `the attribute ${attribute}="${value.slice(0, 40)}" of <${name}>`;
          if (!isHarmless(attribute, value)) refused.push(cause);
        }
      },
      ontext(part) {
        text += part;
      },
      onclosetag(name, isImplied) {
        if (name === 'style') isInStyle = false;
        const isOpen = isImplied && source[parser.endIndex - 1] !== '/';
        if (isOpen) refused.push(`<${name}> without an end`);
      },
      onprocessinginstruction(name, data) {
        if (!DECLARATION.test(data)) refused.push(`the declaration <${name}>`);
      },
    },
    { xmlMode: true },
  );
  parser.end(source);
  // Check the text as a whole: style sheets may consist of parts.
  if (LOADING.test(text)) refused.push('a style sheet with url(), an @ rule or an escape');
  if (OWN_ENTITY.test(source)) refused.push('an entity');
  if (root?.xmlns !== SVG) refused.push(`no xmlns="${SVG}"`);
  const { viewBox = '', width, height } = root ?? {};
  const [, , across = width, down = height] = viewBox.trim().split(/[\s,]+/);
  const size = { width: Math.ceil(Number(across)), height: Math.ceil(Number(down)) };
  const isSize = (side: number): boolean => side > 0 && Number.isFinite(side);
  if (!(isSize(size.width) && isSize(size.height))) refused.push('no viewBox');
  return refused[0] ?? size;
}

function isHarmless(attribute: string, value: string): boolean {
  if (attribute === 'xmlns') return value === SVG;
  if (attribute === 'xmlns:xlink') return value === 'http://www.w3.org/1999/xlink';
  if (/^(?:xlink:)?href$/.test(attribute)) return OWN_REFERENCE.test(value);
  return PLAIN_ATTRIBUTE.test(attribute) && !LOADING.test(value);
}
