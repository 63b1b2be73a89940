/** The docs are up to date and complete. `docs.slow.ts` runs their commands and programs. */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import manifest from '../package.json' with { type: 'json' };
import { linesOf, nameOf, OPERATOR, pages, ROOT, textOf } from './documentation.ts';
import { writtenDocs } from './write-docs.ts';
import { FOLDER, NAMES } from './write-pictures.ts';

/** Returns the anchor that GitHub gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

describe('the documentation', () => {
  it('the docs generated from the JSON Schema are up to date', () => {
    for (const [file, text] of writtenDocs()) {
      expect(textOf(file), `${nameOf(file)}: npm run docs`).to.equal(text);
    }
  });

  it('the docs have no broken links within the repository', () => {
    for (const page of pages) {
      for (const [, link = ''] of textOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(link)) continue;
        const [file = '', anchor] = link.split('#');
        const target = file === '' ? page : path.resolve(path.dirname(page), file);
        expect(existsSync(target), `${nameOf(page)}: ${link}`).to.equal(true);
        if (anchor === undefined) continue;
        const headings = [...textOf(target).matchAll(/^#+ (.*)$/gm)];
        const anchors = headings.map(([, heading = '']) => anchorOf(heading));
        expect(anchors, `${nameOf(page)}: ${link}`).to.include(anchor);
      }
    }
  });

  it('the docs about architecture, threats and decisions name only existing source files', () => {
    const described = pages.filter((page) => /architecture|threats|decisions/.test(nameOf(page)));
    const missing = described.flatMap((page) =>
      [...textOf(page).matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|sql|yaml|md|json))`/g)]
        .map(([, file = '']) => file)
        .filter((file) => !['', 'src'].some((folder) => existsSync(path.join(ROOT, folder, file))))
        .map((file) => `${nameOf(page)}: ${file}`),
    );
    expect(missing).to.deep.equal([]);
  });

  it('the docs use each picture that `npm run pictures` takes', () => {
    const files = readdirSync(FOLDER);
    expect(files.sort()).to.deep.equal(NAMES.map((name) => `${name}.webp`).sort());
    const text = pages.map(textOf).join('\n');
    const unused = files.filter((file) => !new RegExp(`!\\[[^\\]]{20,}\\]\\([^)]*pictures/${file}\\)`).test(text));
    expect(unused, 'each picture is in a page of the docs, with a description').to.deep.equal([]);
  });

  it('each file with the Gatehouse version agrees with package.json, and the CHANGELOG begins with this version', () => {
    const { version } = manifest;
    const isReleased = !version.endsWith('-next');
    for (const [name, text] of [
      ['package-lock.json', `"version": "${version}"`],
      ['Dockerfile', `image.version="${version}"`],
      ['modules/python/pyproject.toml', `version = "${version.replace('-next', '.dev0')}"`],
      ['docs/graphql-api.md', `gatehouse-${version}.tgz`],
    ] as const) {
      expect(textOf(path.join(ROOT, name)), name).to.include(text);
    }
    const [, heading, first] = /^## (.*)\n\n((?:.+\n)+)/m.exec(textOf(path.join(ROOT, 'CHANGELOG.md'))) ?? [];
    expect(heading).to.equal(isReleased ? version : `${version.replace('-next', '')} (unreleased)`);
    expect(first, 'the section begins with what an upgrade does').to.match(/^[A-Z][\s\S]*\bupgrade\b/);
  });

  it('every command in the docs that no test runs is listed with a reason', () => {
    for (const page of pages) {
      const parts = textOf(page).split(/```sh\n(.*?)```\n/s);
      for (let index = 1; index < parts.length; index += 2) {
        const isRun = linesOf(parts[index] ?? '').every((line) => OPERATOR.test(line));
        const isExplained = parts[index - 1]?.trimEnd().endsWith('-->');
        expect(isRun || isExplained, `${nameOf(page)}:\n${parts[index]}`).to.equal(true);
      }
    }
  });
});
