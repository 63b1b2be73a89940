/** The HTML templates of the partner app. */
import { expect } from 'chai';
import { html } from '../../examples/sandbox/html.ts';

describe('the pages of the partner app show inserted values as plain text', () => {
  it('an HTML template escapes every inserted value, but not its own markup', () => {
    const name = `<img src=x onerror="alert('&')">`;
    const row = html`<td title="${name}">${name}</td>`;
    const escaped = '&#60;img src=x onerror=&#34;alert(&#39;&#38;&#39;)&#34;&#62;';
    expect(html`<tr>${[row]}${undefined}${7}</tr>`.text).to.equal(`<tr><td title="${escaped}">${escaped}</td>7</tr>`);
  });
});
