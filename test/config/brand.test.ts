/** The settings `brand` and `rights`: which logos, colours, links and words are refused, and why. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { contrast, GROUNDS, lowestContrast, nearestReadable } from '../../src/config/colour.ts';
import { operatorWith, valueFrom } from '../operator/run-operator.ts';
import { logoFile, png, WEBP } from './brand-files.ts';
import { fileWith, problemsOf, settingsOf } from './configuration.ts';

const ROOT = path.join(import.meta.dirname, '../..');

/** Runs `check-config` with this logo. @returns its problems */
async function refusalsOf(name: string, content: string | Buffer) {
  const file = fileWith(`brand: { logo: ${logoFile(name, content)} }`, 'brand.yaml');
  const { error } = await valueFrom(operatorWith({}), `check-config ${file}`, { exitCode: 3 });
  return error.problems as { path: string; line: number; message: string; remedy: string }[];
}

describe('the logo of the brand', () => {
  it('PNG and WebP logos are recognized by their signature, with their sizes', () => {
    logoFile('acme.png', png(96, 48));
    for (const [kind, base64] of Object.entries(WEBP)) {
      logoFile('webp.png', Buffer.from(base64, 'base64'));
      const { brand } = settingsOf('brand: { logo: webp.png, logo_dark: acme.png }');
      expect(brand.logo, kind).to.deep.equal({ type: 'webp', width: 1, height: 1, base64 });
      expect(brand.logoDark).to.include({ type: 'png', width: 96, height: 48 });
    }
  });

  it('the width and height of a WebP logo are read from its header', () => {
    const sized: readonly (readonly [keyof typeof WEBP, number, Buffer])[] = [
      ['lossy', 26, Buffer.from([0x2c, 0x41, 0x34, 0x02])],
      ['lossless', 21, Buffer.from([0x2b, 0xc1, 0x8c, 0x10])],
      ['extended', 24, Buffer.from([0x2b, 0x01, 0x00, 0x33, 0x02, 0x00])],
    ];
    const sizes = sized.map(([kind, at, header]) => {
      const bytes = Buffer.from(WEBP[kind], 'base64');
      header.copy(bytes, at);
      const { brand } = settingsOf(`brand: { logo: ${logoFile('sized.webp', bytes)} }`);
      return [brand.logo?.width, brand.logo?.height];
    });
    expect(sizes).to.deep.equal(sizes.map(() => [300, 564]));
  });

  it('`check-config` refuses a file that is missing, too large, damaged or no image', async () => {
    const large = Buffer.concat([png(9, 9), Buffer.alloc(100 * 1_024)]);
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>';
    const riff = Buffer.from(WEBP.lossy, 'base64');
    riff.write('AVI ', 8);
    const wrong: readonly (readonly [string, string | Buffer, string])[] = [
      ['large.png', large, 'names a file of 101 kB'],
      ['text.png', 'PNG', 'names a file that is neither a PNG nor a WebP image'],
      ['vector.png', svg, 'neither a PNG nor a WebP image'],
      ['jpeg.png', Buffer.from('ffd8ffe000104a46', 'hex'), 'neither a PNG nor a WebP image'],
      ['riff.webp', riff, 'neither a PNG nor a WebP image'],
      ['cut.png', png(9, 9).subarray(0, 20), 'neither a PNG nor a WebP image'],
      ['cut.webp', Buffer.from(WEBP.lossy, 'base64').subarray(0, 20), 'neither a PNG nor a WebP'],
      ['flat.png', png(9, 0), 'names an image of 9 by 0 pixels'],
      ['huge.png', png(4_097, 1), 'names an image of 4097 by 1 pixels'],
    ];
    for (const [name, content, message] of wrong) {
      const [problem] = await refusalsOf(name, content);
      expect(problem?.message, name).to.include(message);
    }
    const of = (name: string) => problemsOf(`brand: { logo: ${name} }`)[0]?.message;
    expect(of('missing.png')).to.equal('names a file that cannot be read (ENOENT)');
    expect(of('/dev/zero')).to.equal('does not name a file');
    expect(of('.')).to.equal('does not name a file');
  });
});

describe('the colour of the brand', () => {
  it('contrast is calculated as WCAG defines it', () => {
    expect(contrast('#000000', '#ffffff')).to.equal(21);
    expect(contrast('#777777', '#FFFFFF')).to.be.closeTo(4.478, 0.0005);
    expect(contrast('#767676', '#ffffff')).to.be.closeTo(4.542, 0.0005);
    expect(contrast('#ff0000', '#ffffff')).to.be.closeTo(3.998, 0.0005);
    expect(contrast('#ffffff', '#0000ff')).to.be.closeTo(8.592, 0.0005);
  });

  it('colours are checked against the backgrounds of the stylesheet', () => {
    const css = readFileSync(path.join(ROOT, 'views/assets/gatehouse.css'), 'utf8');
    const valuesOf = (name: string) =>
      [...css.matchAll(new RegExp(`--${name}: (#[0-9a-f]{6});`, 'g'))].map(([, value]) => value);
    const [light, dark] = [0, 1].map((theme) => ['ground', 'sheet', 'inset'].map((name) => valuesOf(name)[theme]));
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

  it('every colour gets a readable shade in each theme, and a readable colour is not changed', () => {
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
  it('links must be https URLs without a login (for support also an email address), and a name must be one line', () => {
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

  it('the text for a right can be one string, or one string per language', () => {
    const { rights } = settingsOf('rights: { read: { de: Bestand sehen }, write: change stock }');
    expect(rights).to.deep.equal({
      read: { de: 'Bestand sehen' },
      write: 'change stock',
    });
    for (const wrong of ['{ fr: voir }', '{ de: 5 }', '{ de: "" }', '""', '[see]']) {
      expect(problemsOf(`rights: { read: ${wrong} }`)[0]?.path, wrong).to.equal('rights.read');
      expect(problemsOf(`brand: { name: ${wrong} }`)[0]?.path, wrong).to.equal('brand.name');
    }
  });

  it('the example of a brand in the docs is accepted', () => {
    const page = readFileSync(path.join(ROOT, 'docs/operations/brand.md'), 'utf8');
    const [, example = ''] = /```yaml\n(.*?)```/s.exec(page) ?? [];
    logoFile('acme.png', png(240, 60));
    logoFile('acme-dark.png', png(240, 60));
    const { brand, rights } = settingsOf(example);
    expect(brand).to.include({ name: 'Acme Storage', support: 'help@acme.example' });
    expect(rights.read).to.deep.equal({ en: 'see stock', de: 'Bestand sehen' });
  });
});
