import assert from 'node:assert/strict';
import { test } from 'node:test';
import { htmlPage, plotlyPage } from '../../src/views/output_html';

const parts = { nonce: 'n0nce', cspSource: 'vscode-resource:', plotlyUri: 'vscode-resource:/plotly.min.js' };

test('a page lets nothing be loaded but what the extension brings', () => {
  for (const page of [plotlyPage({ data: [] }, parts), htmlPage('<p>x</p>', '', parts)]) {
    assert.match(page, /default-src 'none'/);
    assert.doesNotMatch(page, /https?:|unsafe-eval|script-src[^;]*unsafe-inline/);
  }
});

test('data of a cell cannot leave the element it stands in', () => {
  const hostile = '</script><script>alert(1)</script>';
  for (const page of [plotlyPage({ data: [{ name: hostile }] }, parts), htmlPage(hostile, '', parts)]) {
    assert.ok(!page.includes(hostile));
    assert.ok(page.includes('\\u003c/script>'));
  }
});

test('HTML of a cell is shown in a frame without rights, and scripts are told of', () => {
  const page = htmlPage('<script>1</script>', 'no scripts', parts);
  assert.match(page, /sandbox=""/);
  assert.match(page, /id="note"/);
  assert.doesNotMatch(htmlPage('<table></table>', 'no scripts', parts), /id="note"><\/div>/);
});
