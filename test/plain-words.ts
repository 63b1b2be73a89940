/** `npm run check` refuses words for which this field has plainer ones: in comments, and in titles of tests. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '..');

/** Each word, and what to write instead. `docs/how-we-write.md` has examples. */
const WORDS: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\bwhoever\b/gi, 'the user, client, caller, attacker or operator who'],
  [/\bnobody\b/gi, 'no user, client, caller, attacker or operator'],
  [/\bsomebody\b/gi, 'a user, client, caller, attacker or operator'],
  [/\banybody\b/gi, 'any user, an unauthenticated caller'],
  [/\beverybody\b/gi, 'all users, every client'],
  [/\balongside\b/gi, 'in the transaction, together with'],
  [/\bbeside\b/gi, 'in the background, next to, together with'],
  [/\banew\b/gi, 'again'],
  [/\btold\b|\btell(s|ing)?\s+of\b/gi, 'receives, is notified of, announces, the answer says'],
  [/\bnoted\b/gi, 'recorded, queued'],
  [/\bheld\s+back\b/gi, 'blocked, buffered'],
  [/\b(not|no|still|stays?)\s+good\b|\bgood\s+for\b/gi, 'valid, invalid, active, expires after'],
  [/(?<!keep-)\balive\b/gi, 'active, valid, running'],
  [/\blets?\s+in\b|\b(comes?|came)\s+in\b(?!\s+between)|\bstays?\s+out\b(?!\s+of)/gi, 'accepts, signs in, is refused'],
  [/\b(goes|go|went)\s+on\b/gi, 'continues, still works'],
  [/\b(is|are|was|were)\s+over\b(?!\s+(a|the|other)\b)/gi, 'has ended, has expired'],
  [/\bmanieth\b/gi, 'number, position'],
  [/\b(Null|Undefined|True|False)\s+of\b/g, 'null for, undefined if'],
  [/(?<=^\W*)As\s+of\b/g, 'see, like'],
  [/\bmade\s+by\s+hand\b/gi, 'created manually'],
];

/** Places that need such a word. An entry that no longer matches is refused, too. */
const EXCEPTIONS: readonly { file: string; text: string; reason: string }[] = [];

const FOLDERS = ['src', 'test', 'bench', 'modules/node', 'examples'];

const TEMPLATE = /[`}](?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y;
const COMMENT = String.raw`\/\/.*|\/\*[\s\S]*?\*\/`;
const QUOTED = String.raw`'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"`;
// A slash begins a regular expression only where a value can begin.
const PATTERN = String.raw`(?<=(?:[(,=>:[!&|?{};]|\breturn)\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^\/\\[\n])+\/`;
const TOKEN = new RegExp(`${COMMENT}|${QUOTED}|${PATTERN}|\\w+|\\s+|[\\s\\S]`, 'y');

/** Matches the call before a title. `'` stands for the first part of a title that is joined with `+`. */
const BEFORE_TITLE = /\b(?:describe|it)(?:[A-Z]\w*)?(?:\.\w+)?\(\s*(?:(?:[\w.]+|\[[^\]]*\]),\s*)?(?:'\s*\+\s*)*$/;

interface Text {
  readonly kind: 'comment' | 'title';
  readonly at: number;
  readonly text: string;
}

/** Returns the comments and titles of a source, in their order. */
function textsOf(source: string): readonly Text[] {
  const texts: Text[] = [];
  // One entry for each open brace. For a brace in a template: true if the template is a title.
  const open: (boolean | undefined)[] = [];
  let code = '';
  for (let at = 0; at < source.length; ) {
    const first = source[at] ?? '';
    const ofTemplate = first === '}' ? open.pop() : undefined;
    const rule = first === '`' || ofTemplate !== undefined ? TEMPLATE : TOKEN;
    rule.lastIndex = at;
    const [text = first] = rule.exec(source) ?? [];
    const isString = rule === TEMPLATE || /^['"]/.test(text);
    const isTitle = ofTemplate ?? (isString && BEFORE_TITLE.test(code.slice(-300)));
    if (isTitle) texts.push({ kind: 'title', at, text });
    else if (/^\/[/*]/.test(text)) texts.push({ kind: 'comment', at, text });

    if (rule === TEMPLATE && text.endsWith('${')) open.push(isTitle);
    else if (text === '{') open.push(undefined);
    code += isString ? "'" : text;
    at += text.length;
  }
  return texts;
}

/** Replaces code and stars in a comment with spaces, so that phrases are found across line breaks. */
const proseOf = ({ kind, text }: Text): string =>
  kind === 'title' ? text : text.replace(/`[^`\n]*`|(?<=\n)\s*\*/g, (found) => found.replace(/[^\n]/g, ' '));

const unused = new Set(EXCEPTIONS);
const isException = (file: string, line: string): boolean => {
  const found = EXCEPTIONS.find((entry) => entry.file === file && line.includes(entry.text));
  if (found) unused.delete(found);
  return found !== undefined;
};

const fail = (message: string): void => {
  console.error(message);
  process.exitCode = 1;
};

for (const folder of FOLDERS) {
  for (const name of readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue;
    const file = `${folder}/${name}`;
    const source = readFileSync(path.join(ROOT, file), 'utf8');
    for (const text of textsOf(source)) {
      for (const [word, instead] of WORDS) {
        for (const { 0: found, index } of proseOf(text).matchAll(word)) {
          const number = source.slice(0, text.at + index).split('\n').length;
          if (isException(file, source.split('\n')[number - 1] ?? '')) continue;
          const said = found.replace(/\s+/g, ' ');
          fail(`${file}:${number}: "${said}" in a ${text.kind}: say ${instead}`);
        }
      }
    }
  }
}
for (const { file, text } of unused) fail(`${file} has no line with the exception "${text}" any more`);
