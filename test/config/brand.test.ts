/** The settings `brand` and `rights`: which logos, colours, links and words are refused, and why. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { contrast, GROUNDS, lowestContrast, nearestReadable } from '../../src/config/colour.ts';
import { operatorWith, valueFrom } from '../operator/run-operator.ts';
import { ACME_SVG, logoFile, png, SVG } from './brand-files.ts';
import { fileWith, problemsOf, settingsOf } from './configuration.ts';

const ROOT = path.join(import.meta.dirname, '../..');

/** Runs `check-config` with this logo. @returns its problems */
async function refusalsOf(name: string, content: string | Buffer) {
  const file = fileWith(`brand: { logo: ${logoFile(name, content)} }`, 'brand.yaml');
  const { error } = await valueFrom(operatorWith({}), `check-config ${file}`, { exitCode: 3 });
  return error.problems as { path: string; line: number; message: string; remedy: string }[];
}

describe('the logo of the brand', () => {
  it('a PNG and a plain SVG logo are accepted, with their sizes', () => {
    logoFile('acme.svg', ACME_SVG);
    logoFile('acme.png', png(96, 48));
    const { brand } = settingsOf('brand: { logo: acme.svg, logo_dark: acme.png }');
    expect(brand.logo).to.include({ type: 'svg', width: 240, height: 60 });
    const spaced = ACME_SVG.replace('viewBox="0 0 240 60"', 'viewBox=" 0 0 240 60 "');
    expect(settingsOf(`brand: { logo: ${logoFile('spaced.svg', spaced)} }`).brand.logo).to.include({
      width: 240,
      height: 60,
    });
    expect(brand.logoDark).to.include({ type: 'png', width: 96, height: 48 });
    expect(Buffer.from(brand.logo?.base64 ?? '', 'base64').toString()).to.equal(ACME_SVG);
  });

  const refused: Readonly<Record<string, readonly [svg: string, cause: string]>> = {
    'a script': [`<svg ${SVG}><script>alert(1)</script></svg>`, 'the element <script>'],
    'a script of another prefix': [
      `<svg ${SVG} xmlns:s="http://www.w3.org/2000/svg"><s:script>alert(1)</s:script></svg>`,
      'the attribute xmlns:s=',
    ],
    'an event handler': [`<svg ${SVG} onload="alert(1)"/>`, 'the attribute onload="alert(1)"'],
    'a foreign object': [`<svg ${SVG}><foreignObject/></svg>`, 'the element <foreignObject>'],
    'an HTML namespace': [
      `<svg ${SVG}><g xmlns="http://www.w3.org/1999/xhtml"/></svg>`,
      'the attribute xmlns="http://www.w3.org/1999/xhtml"',
    ],
    'a link': [`<svg ${SVG}><a href="https://evil.example/"/></svg>`, 'the element <a>'],
    'an external image': [
      `<svg ${SVG}><image href="https://evil.example/x.png"/></svg>`,
      'the attribute href="https://evil.example/x.png" of <image>',
    ],
    'an external use': [
      `<svg ${SVG}><use xlink:href="https://evil.example/x.svg#a"/></svg>`,
      'the element <use>',
    ],
    'an HTML document in a data URL': [
      `<svg ${SVG}><image href="data:text/html,%3Cscript%3Ealert(1)%3C/script%3E"/></svg>`,
      'the attribute href="data:text/html,',
    ],
    'an SVG image in a data URL': [
      `<svg ${SVG}><image href="data:image/svg+xml;base64,PHN2Zy8+"/></svg>`,
      'the attribute href="data:image/svg+xml',
    ],
    'an encoded script URL': [
      `<svg ${SVG}><image href="&#106;avascript:alert(1)"/></svg>`,
      'the attribute href="javascript:alert(1)"',
    ],
    'an animation': [`<svg ${SVG}><set attributeName="href"/></svg>`, 'the element <set>'],
    'another base': [`<svg ${SVG} xml:base="https://evil.example/"/>`, 'the attribute xml:base='],
    'an import': [
      `<svg ${SVG}><style>@import "https://evil.example/x.css";</style></svg>`,
      'a style sheet with url(), an @ rule or an escape',
    ],
    'an import in two parts': [
      `<svg ${SVG}><style>@imp<!-- -->ort "https://evil.example/x.css";</style></svg>`,
      'a style sheet with url(), an @ rule or an escape',
    ],
    'an external URL around an element in the style sheet': [
      `<svg ${SVG}><style>path { fill: u<title>x</title>rl(//evil.example/x.svg#a) }</style></svg>`,
      'the element <title> in <style>',
    ],
    'an external URL in a style sheet': [
      `<svg ${SVG}><style>path { fill: url( "//evil.example/x.svg#a") }</style></svg>`,
      'a style sheet with url(), an @ rule or an escape',
    ],
    'an escaped function in a style': [
      String.raw`<svg ${SVG}><path style="fill: \75rl(//evil.example)"/></svg>`,
      'the attribute style=',
    ],
    'an external URL in an attribute': [
      `<svg ${SVG}><path fill="url(https://evil.example/x.svg#a)"/></svg>`,
      'the attribute fill="url(https://evil.example/x.svg#a)"',
    ],
    'an image set': [
      `<svg ${SVG}><path style="mask: image-set('//evil.example' 1x)"/></svg>`,
      'the attribute style=',
    ],
    'a style sheet of another file': [
      `<?xml-stylesheet href="https://evil.example/x.css"?><svg ${SVG}/>`,
      'the declaration <?xml-stylesheet>',
    ],
    'an entity bomb': [
      `<!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><svg ${SVG}><text>&b;</text></svg>`,
      'the declaration <!DOCTYPE>',
    ],
    'an unknown entity': [`<svg ${SVG}><text>&b;</text></svg>`, 'an entity'],
    'another root': [`<html><svg ${SVG}/></html>`, 'the element <html>'],
    'no namespace': ['<svg viewBox="0 0 9 9"/>', 'no xmlns='],
    'an infinite size': [
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 Infinity 9"/>',
      'no viewBox',
    ],
    'no size': ['<svg xmlns="http://www.w3.org/2000/svg" width="100%"/>', 'no viewBox'],
    'a missing end': [`<svg ${SVG}><g><path d="M0 0"/></svg>`, '<g> without an end'],
  };
  for (const [what, [svg, cause]] of Object.entries(refused)) {
    it(`\`check-config\` refuses an SVG logo with ${what}, and names it`, async () => {
      const [problem, ...others] = await refusalsOf('evil.svg', svg);
      expect(others).to.deep.equal([]);
      expect(problem).to.include({ path: 'brand.logo', line: 1 });
      expect(problem?.message).to.include('names an SVG image that is refused');
      expect(problem?.message).to.include(cause);
      expect(problem?.remedy).to.include(
        'name a PNG file, or an SVG file exported as plain shapes',
      );
    });
  }

  it('`check-config` refuses a file that is missing, too large, damaged or no image', async () => {
    const large = `<svg ${SVG}><path d="${'M0 0'.repeat(8_200)}"/></svg>`;
    const wrong: readonly (readonly [string, string | Buffer, string])[] = [
      ['large.svg', large, 'names a file of 33 kB'],
      ['text.png', 'PNG', 'names a file that is neither a PNG nor an SVG image'],
      ['jpeg.png', Buffer.from('ffd8ffe000104a46', 'hex'), 'neither a PNG nor an SVG image'],
      ['cut.png', png(9, 9).subarray(0, 20), 'neither a PNG nor an SVG image'],
      ['flat.png', png(9, 0), 'names a PNG image of 9 by 0 pixels'],
      ['huge.png', png(4_097, 1), 'names a PNG image of 4097 by 1 pixels'],
    ];
    for (const [name, content, message] of wrong) {
      const [problem] = await refusalsOf(name, content);
      expect(problem?.message, name).to.include(message);
    }
    const of = (name: string) => problemsOf(`brand: { logo: ${name} }`)[0]?.message;
    expect(of('missing.svg')).to.equal('names a file that cannot be read (ENOENT)');
    expect(of('/dev/zero')).to.equal('does not name a file');
    expect(of('.')).to.equal('does not name a file');
  });
});

describe('the colour of the brand', () => {
  it('contrasts are those of WCAG', () => {
    expect(contrast('#000000', '#ffffff')).to.equal(21);
    expect(contrast('#777777', '#FFFFFF')).to.be.closeTo(4.478, 0.0005);
    expect(contrast('#767676', '#ffffff')).to.be.closeTo(4.542, 0.0005);
    expect(contrast('#ff0000', '#ffffff')).to.be.closeTo(3.998, 0.0005);
    expect(contrast('#ffffff', '#0000ff')).to.be.closeTo(8.592, 0.0005);
  });

  it('the backgrounds are those of the stylesheet', () => {
    const css = readFileSync(path.join(ROOT, 'views/assets/gatehouse.css'), 'utf8');
    const valuesOf = (name: string) =>
      [...css.matchAll(new RegExp(`--${name}: (#[0-9a-f]{6});`, 'g'))].map(([, value]) => value);
    const [light, dark] = [0, 1].map((theme) =>
      ['ground', 'sheet', 'inset'].map((name) => valuesOf(name)[theme]),
    );
    expect([...GROUNDS.light]).to.have.members(light ?? []);
    expect([...GROUNDS.dark]).to.have.members(dark ?? []);
  });

  it('a colour that is hard to read on light pages is refused, with the nearest shade that passes', () => {
    const [problem] = problemsOf('brand: { colour: "#ffcc00" }');
    expect(problem).to.deep.include({
      path: 'brand.colour',
      value: '#ffcc00',
      message: 'is hard to read on light pages: its contrast is 1.31, less than 4.5 (WCAG AA)',
      remedy: 'write `"#846a00"`, the nearest shade that passes',
    });
    expect(settingsOf('brand: { colour: "#846a00" }').brand.colour).to.equal('#846a00');
    expect(problemsOf('brand: { colour: "#856b00" }')).to.have.length(1);
  });

  it('the shades of 2,000 colours are found within a second, because anyone can ask for any colour', () => {
    const startedAt = performance.now();
    for (let index = 0; index < 1_000; index += 1) {
      const colour = `#${(index * 16_777).toString(16).padStart(6, '0')}`;
      for (const theme of ['light', 'dark'] as const) nearestReadable(colour, theme);
    }
    expect(performance.now() - startedAt).to.be.below(1_000);
  });

  it('every colour has a readable shade in each theme, and a readable colour is kept', () => {
    for (const colour of ['#000000', '#ffffff', '#ffcc00', '#e4002b', '#0b5cad', '#00a0df']) {
      for (const theme of ['light', 'dark'] as const) {
        const shade = nearestReadable(colour, theme);
        expect(lowestContrast(shade, theme), `${colour} ${theme}`).to.be.at.least(4.5);
        const isReadable = lowestContrast(colour, theme) >= 4.5;
        expect(shade === colour, `${colour} ${theme}`).to.equal(isReadable);
      }
    }
  });
});

describe('the texts and links of the brand', () => {
  it('links are https URLs without a login, support may be an address, and a name is one line', () => {
    const wrong = {
      home_url: ['javascript:alert(1)', 'http://www.example.com/', 'https://a:b@example.com/'],
      privacy_url: ['data:text/html,x', 'privacy.html'],
      terms_url: ['//example.com/terms'],
      support: ['help@', 'mailto:help@example.com', 'Help <help@example.com>'],
      name: ['', ' ', 'x'.repeat(61), 'Acme\u202e', 'two\nlines'],
      colour: ['red', '#fff', '0b5cad'],
    };
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values) {
        const [problem, ...others] = problemsOf(`brand: { ${name}: ${JSON.stringify(value)} }`);
        expect(others).to.deep.equal([]);
        expect(problem?.path, value).to.equal(`brand.${name}`);
        expect(problem?.message, value).to.match(/^is not /);
      }
    }
    expect(problemsOf('brand:\n  colour: #0b5cad\n')[0]).to.deep.include({
      message: 'has no value',
      remedy: 'write `"#0b5cad"`, with the quotes, because # begins a comment',
    });
  });

  it('a right has one text, or one for each language of the pages', () => {
    const { rights } = settingsOf('rights: { read: { de: Bestand sehen }, write: change stock }');
    expect(rights).to.deep.equal({
      read: { de: 'Bestand sehen' },
      write: 'change stock',
      manage: 'manage',
    });
    for (const wrong of ['{ fr: voir }', '{ de: 5 }', '{ de: "" }', '""', '[see]']) {
      expect(problemsOf(`rights: { read: ${wrong} }`)[0]?.path, wrong).to.equal('rights.read');
      expect(problemsOf(`brand: { name: ${wrong} }`)[0]?.path, wrong).to.equal('brand.name');
    }
  });

  it('the example of the docs is accepted', () => {
    const page = readFileSync(path.join(ROOT, 'docs/operations/brand.md'), 'utf8');
    const [, example = ''] = /```yaml\n(.*?)```/s.exec(page) ?? [];
    logoFile('acme.svg', ACME_SVG);
    logoFile('acme-dark.png', png(240, 60));
    const { brand, rights } = settingsOf(example);
    expect(brand).to.include({ name: 'Acme Storage', support: 'help@acme.example' });
    expect(rights.read).to.deep.equal({ en: 'see stock', de: 'Bestand sehen' });
  });
});
