/**
 * Pages for interactive outputs. Nothing in them reaches the network, and nothing that a cell wrote runs as script.
 */

/** What a page needs of its webview. */
export interface PageParts {
  /** Fresh random letters and digits. */
  nonce: string;
  /** The webview's `cspSource`. */
  cspSource: string;
  /** URI of the bundled Plotly, for the webview. */
  plotlyUri: string;
}

/** JSON that can stand inside a script element. */
function embed(value: unknown): string {
  return JSON.stringify(value).replace(/</g, '\\u003c').replace(/\u2028/g, '\\u2028').replace(/\u2029/g, '\\u2029');
}

function page(policy: string, style: string, body: string): string {
  return `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'; ${policy}">
<style>${style}</style></head>
<body>${body}</body></html>`;
}

/** A page that draws a Plotly figure (`application/vnd.plotly.v1+json`), in the colours of the theme unless the figure has its own. */
export function plotlyPage(figure: unknown, parts: PageParts): string {
  const { nonce, cspSource, plotlyUri } = parts;
  return page(
    `script-src 'nonce-${nonce}' ${cspSource}; style-src 'unsafe-inline'; img-src data: blob:`,
    'html,body,#chart{height:100%;margin:0}body{padding:8px;box-sizing:border-box;overflow:hidden}',
    `<div id="chart"></div>
<script type="application/json" id="figure">${embed(figure)}</script>
<script nonce="${nonce}" src="${plotlyUri}"></script>
<script nonce="${nonce}">
(function () {
  const figure = JSON.parse(document.getElementById('figure').textContent) || {};
  const layout = figure.layout || {};
  const own = Boolean(layout.paper_bgcolor || layout.plot_bgcolor);
  const color = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();
  function draw() {
    const themed = JSON.parse(JSON.stringify(layout));
    delete themed.width; delete themed.height;
    themed.autosize = true;
    if (!own) {
      const ink = color('--vscode-editor-foreground'), grid = color('--vscode-editorIndentGuide-background1') || 'rgba(128,128,128,.3)';
      themed.paper_bgcolor = themed.plot_bgcolor = 'rgba(0,0,0,0)';
      themed.font = Object.assign({ color: ink, family: color('--vscode-font-family') }, themed.font);
      for (const key of Object.keys(themed).concat('xaxis', 'yaxis').filter((key) => /^[xy]axis[0-9]*$/.test(key))) {
        themed[key] = Object.assign({ gridcolor: grid, zerolinecolor: grid, linecolor: grid }, themed[key]);
      }
    }
    Plotly.react('chart', figure.data || [], themed, { responsive: true, displaylogo: false });
  }
  draw();
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
})();
</script>`,
  );
}

/** A page that shows HTML of a cell, without its scripts, in a frame of no rights. `note` is said above when scripts were left out. */
export function htmlPage(html: string, note: string, parts: PageParts): string {
  const { nonce } = parts;
  const scripted = /<script[\s>]/i.test(html);
  return page(
    `script-src 'nonce-${nonce}'; style-src 'unsafe-inline'; img-src data:; font-src data:`,
    `html,body{height:100%;margin:0}body{display:flex;flex-direction:column;padding:0}
#note{padding:6px 12px;background:var(--vscode-editorWidget-background);color:var(--vscode-descriptionForeground)}
iframe{flex:1;border:0;width:100%}`,
    `${scripted ? `<div id="note"></div>` : ''}<iframe id="frame" sandbox="" title="output"></iframe>
<script type="application/json" id="html">${embed({ html, note })}</script>
<script nonce="${nonce}">
(function () {
  const { html, note } = JSON.parse(document.getElementById('html').textContent);
  const place = document.getElementById('note');
  if (place) { place.textContent = note; }
  function draw() {
    const style = getComputedStyle(document.body), get = (name) => style.getPropertyValue(name).trim();
    const dark = /vscode-(dark|high-contrast)/.test(document.body.className) && !/high-contrast-light/.test(document.body.className);
    document.getElementById('frame').srcdoc = '<!DOCTYPE html><meta charset="utf-8"><style>:root{color-scheme:' + (dark ? 'dark' : 'light') +
      ';background:' + get('--vscode-editor-background') + '}img:not([src^="data:"]){display:none}body{margin:12px;color:' + get('--vscode-editor-foreground') + ';font:13px ' + get('--vscode-font-family') +
      '}table{border-collapse:collapse}th,td{padding:3px 10px;border-bottom:1px solid rgba(128,128,128,.3);text-align:right}th{font-weight:600}</style>' + html;
  }
  draw();
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ['class'] });
})();
</script>`,
  );
}
