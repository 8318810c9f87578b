// Bundles the extension into dist/main.js and dist/client.js, and copies Plotly beside it: a chart's webview loads it on demand, so it never costs
// anything at activation.
import { build } from 'esbuild';
import { copyFile, mkdir, stat } from 'node:fs/promises';

const production = process.argv.includes('--production');
/** The most code of ours that we accept, in bytes. */
const LIMIT = 1_000_000;

await mkdir('dist', { recursive: true });
await build({
  entryPoints: ['src/main.ts', 'src/client.ts'],
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  external: ['vscode'],
  minify: production,
  sourcemap: !production,
  legalComments: 'none',
  // The language client is a bundle of its own, loaded when the server starts.
  plugins: [{ name: 'client', setup: ({ onResolve }) => onResolve({ filter: /^\.\/client\.js$/ }, ({ importer }) => (importer.endsWith('main.ts') ? { path: './client.js', external: true } : undefined)) }],
});
await copyFile('node_modules/plotly.js-strict-dist-min/plotly-strict.min.js', 'dist/plotly.min.js');
await copyFile('../../LICENSE', 'LICENSE');

const sizes = await Promise.all(['main', 'client'].map(async (name) => (await stat(`dist/${name}.js`)).size));
const size = sizes.reduce((sum, one) => sum + one, 0);
if (production && size > LIMIT) {
  throw new Error(`dist/main.js and dist/client.js have ${size} bytes, more than ${LIMIT}: find what was pulled in with esbuild --analyze`);
}
console.log(`dist/main.js: ${sizes[0]} bytes, dist/client.js: ${sizes[1]} bytes`);
