/** A made-up language, in which a test sees what is not translated and what needs more room. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { addLanguage, languages } from '../../src/texts/texts.ts';

/** The tag of the language. */
export const PSEUDO = 'en-XA';

const file = new URL('../../views/texts/en.yaml', import.meta.url);
const PLAIN = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const ACCENTED = 'àƀçđéƒĝĥïĵķļɱñöþǫŕšţũṽŵẋýžÀƁÇĐÉƑĜĤÏĴĶĻḾÑÖÞǪŔŠŢŨṼŴẊÝŽ';

/** Runs `work` while the language is installed. */
export async function pseudoLanguage(work: () => Promise<void>): Promise<void> {
  expect(languages(), 'read the files first').to.include('en');
  const remove = addLanguage(PSEUDO, pseudoTexts(parse(readFileSync(file, 'utf8'))));
  try {
    await work();
  } finally {
    remove();
  }
}

type Texts = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Returns the texts with accents, in marks, and 40 % longer: `[!! Šïĝñ ïñ ~~~~ !!]`. */
function pseudoTexts(texts: Texts): Texts {
  const pages = Object.entries(texts).map(([page, own]) => {
    const pseudo = Object.entries(own).map(([key, text]) => [key, pseudoText(text)]);
    return [page, Object.fromEntries(pseudo)] as const;
  });
  const made = Object.fromEntries(pages);
  return { ...made, language: { ...made.language, name: 'Pseudo', locale: PSEUDO } };
}

function pseudoText(text: string): string {
  let depth = 0;
  let isTag = false;
  let letters = 0;
  const accented = [...text].map((character) => {
    if (character === '{') depth += 1;
    else if (character === '}') depth -= 1;
    else if (character === '<') isTag = true;
    else if (character === '>') isTag = false;
    // At even depths are words; between them are names of arguments and of their choices.
    else if (depth % 2 === 0 && !isTag) {
      letters += 1;
      return ACCENTED[PLAIN.indexOf(character)] ?? character;
    }
    return character;
  });
  // In words of at most five letters, because real languages can break their lines, too.
  const longer = '~~~~ '.repeat(Math.ceil((letters * 0.4) / 5));
  return `[!! ${accented.join('')} ${longer}!!]`;
}
