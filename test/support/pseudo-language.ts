/** A made-up language, in which a test sees what is not translated and what needs more room. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { addLanguage, languages, removeLanguage } from '../../src/base/texts.ts';

/** The tag of the language. */
export const PSEUDO = 'en-XA';

const file = new URL('../../views/texts/en.yaml', import.meta.url);
const PLAIN = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const ACCENTED = 'àƀçđéƒĝĥïĵķļɱñöþǫŕšţũṽŵẋýžÀƁÇĐÉƑĜĤÏĴĶĻḾÑÖÞǪŔŠŢŨṼŴẊÝŽ';

/** Runs `work` while the language is installed. */
export async function pseudoLanguage(work: () => Promise<void>): Promise<void> {
  expect(languages(), 'read the files first').to.include('en');
  addLanguage(PSEUDO, pseudoTexts(parse(readFileSync(file, 'utf8'))));
  try {
    await work();
  } finally {
    removeLanguage(PSEUDO);
  }
}

/** Returns the texts with accents, in marks, and 40 % longer: `[!! Šïĝñ ïñ ~~~ !!]`. */
function pseudoTexts(tree: unknown): unknown {
  if (typeof tree === 'string') return pseudoText(tree);
  const entries = Object.entries(tree as object).filter(([page]) => page !== 'language');
  const { language } = tree as { language?: object };
  return {
    ...Object.fromEntries(entries.map(([name, one]) => [name, pseudoTexts(one)])),
    ...(language && {
      language: { ...(pseudoTexts({ ...language }) as object), name: 'Pseudo', locale: PSEUDO },
    }),
  };
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
  return `[!! ${accented.join('')} ${'~'.repeat(Math.ceil(letters * 0.4))} !!]`;
}
